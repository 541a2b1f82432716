"""Events in the caller's transaction, and in that of a job."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import psycopg
import pytest

from rota import KeyConflict
from rota.ops.events.chores import work_on_events
from tests.transaction.callers import CALLERS, Caller
from tests.transaction.shop import Shop


@pytest.fixture(params=CALLERS)
def caller(request: pytest.FixtureRequest, shop: Shop) -> Iterator[Caller]:
    with CALLERS[request.param](shop.url) as caller:
        yield caller


@pytest.fixture(autouse=True)
def no_events(shop: Shop) -> None:
    with psycopg.connect(shop.url) as connection:
        connection.execute("TRUNCATE rota.event, rota.event_open, rota.delivery, rota.subscription")


def events(shop: Shop) -> list[tuple[object, ...]]:
    return shop.query("SELECT name, payload::jsonb, subject FROM rota.event ORDER BY id")


def test_an_event_is_committed_with_the_caller_and_delivered_after(shop: Shop, caller: Caller) -> None:
    """The transaction of the caller holds no row that others wait for."""
    handle = shop.app.within(caller.connection).emit("order.paid", {"id": 1}, subject="A-1")
    assert events(shop) == []
    caller.commit()
    assert events(shop) == [("order.paid", {"id": 1}, "A-1")]
    assert not handle.info().is_delivered
    assert shop.store.transact(work_on_events)
    assert handle.info().is_delivered


def test_rolled_back_means_never_emitted(shop: Shop, caller: Caller) -> None:
    shop.app.within(caller.connection).emit("order.paid", key="k")
    shop.app.within(caller.connection).emit_many(["order.paid", "order.paid"])
    caller.rollback()
    assert events(shop) == []
    assert shop.app.emit("order.paid", 5, key="k").created


def test_a_key_that_is_refused_leaves_the_transaction_usable(shop: Shop, caller: Caller) -> None:
    shop.app.emit("order.paid", 1, key="k")
    with pytest.raises(KeyConflict):
        shop.app.within(caller.connection).emit("order.paid", 2, key="k")
    shop.app.within(caller.connection).emit("order.lost")
    caller.commit()
    assert [name for name, *_ in events(shop)] == ["order.paid", "order.lost"]


def test_an_async_connection(shop: Shop) -> None:
    async def scene() -> None:
        async with await psycopg.AsyncConnection.connect(shop.url) as connection:
            handle = await shop.app.within(connection, notify=True).aemit("order.paid", 1)
            assert events(shop) == []
            await connection.commit()
            assert [name for name, *_ in events(shop)] == ["order.paid"]
            assert handle.created

    asyncio.run(scene())


@pytest.mark.parametrize("fails", [False, True])
def test_an_event_in_the_transaction_of_a_job(shop: Shop, fails: bool) -> None:
    """It is emitted if the job completes, and not otherwise."""
    ctx = shop.start(shop.send, "a")
    with contextlib.suppress(ZeroDivisionError), ctx.transaction() as connection:
        shop.app.within(connection).emit("order.paid", 1)
        assert events(shop) == []
        if fails:
            raise ZeroDivisionError
    assert len(events(shop)) == (not fails)
