"""The same for connections that are async."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.ext import asyncio as alchemy

from rota import DefinitionError, KeyConflict, QueueFull
from tests.support.waiting import eventually
from tests.transaction.callers import alchemy_session, django_atomic, plain
from tests.transaction.shop import Shop

WRITE = "INSERT INTO ledger (entry) VALUES ('paid')"


class AsyncCaller(NamedTuple):
    connection: Any
    run: Callable[[str], Awaitable[Any]]
    commit: Callable[[], Awaitable[None]]
    rollback: Callable[[], Awaitable[None]]


@contextlib.asynccontextmanager
async def of_psycopg(url: str) -> AsyncIterator[AsyncCaller]:
    async with await psycopg.AsyncConnection.connect(url, row_factory=dict_row) as connection:
        run = lambda text: connection.execute(text.encode())  # noqa: E731
        yield AsyncCaller(connection, run, connection.commit, connection.rollback)


@contextlib.asynccontextmanager
async def of_cursor(url: str) -> AsyncIterator[AsyncCaller]:
    async with of_psycopg(url) as caller:
        yield caller._replace(connection=caller.connection.cursor())


@contextlib.asynccontextmanager
async def _engine(url: str) -> AsyncIterator[alchemy.AsyncEngine]:
    engine = alchemy.create_async_engine(url.replace("postgresql", "postgresql+psycopg", 1))
    try:
        yield engine
    finally:
        await engine.dispose()


@contextlib.asynccontextmanager
async def of_alchemy_connection(url: str) -> AsyncIterator[AsyncCaller]:
    async with _engine(url) as engine, engine.connect() as connection:
        run = lambda text: connection.execute(sqlalchemy.text(text))  # noqa: E731
        yield AsyncCaller(connection, run, connection.commit, connection.rollback)


@contextlib.asynccontextmanager
async def of_alchemy_session(url: str) -> AsyncIterator[AsyncCaller]:
    async with _engine(url) as engine, alchemy.AsyncSession(engine) as session:
        run = lambda text: session.execute(sqlalchemy.text(text))  # noqa: E731
        yield AsyncCaller(session, run, session.commit, session.rollback)


CALLERS: dict[str, Callable[[str], contextlib.AbstractAsyncContextManager[AsyncCaller]]] = {
    "psycopg": of_psycopg,
    "psycopg cursor": of_cursor,
    "alchemy connection": of_alchemy_connection,
    "alchemy session": of_alchemy_session,
}


@pytest.fixture(params=CALLERS)
async def caller(request: pytest.FixtureRequest, shop: Shop) -> AsyncIterator[AsyncCaller]:
    async with CALLERS[request.param](shop.url) as caller:
        yield caller


async def test_an_async_enqueue_is_committed_with_the_caller(shop: Shop, caller: AsyncCaller) -> None:
    await caller.run(WRITE)
    x = await shop.send.within(caller.connection).aenqueue("a@b.c")
    xs = await shop.send.within(caller.connection).aenqueue_many([("b@b.c",), ("c@b.c",)])
    assert await shop.send.within(caller.connection).aenqueue_many([]) == []
    assert (shop.ledger(), shop.count()) == ([], 0)
    await caller.commit()
    assert (shop.ledger(), shop.count()) == (["paid"], 3)
    assert {one.status() for one in (x, *xs)} == {"queued"}


async def test_rolled_back_means_never_enqueued(shop: Shop, caller: AsyncCaller) -> None:
    await shop.send.within(caller.connection).aenqueue("a@b.c")
    await caller.rollback()
    assert shop.count() == 0


async def test_a_refused_enqueue_does_not_fail_the_transaction(shop: Shop, caller: AsyncCaller) -> None:
    await caller.run(WRITE)
    with pytest.raises(QueueFull):
        await shop.wrap.within(caller.connection).aenqueue_many([1, 2, 3])
    keyed = shop.send.options(key="k").within(caller.connection)
    await keyed.aenqueue("a")
    with pytest.raises(KeyConflict):
        await keyed.aenqueue("b")
    await caller.commit()
    assert (shop.ledger(), shop.count()) == (["paid"], 1)


async def test_a_cancelled_enqueue_runs_no_further_statement(shop: Shop) -> None:
    """A thread that kept running would write into the next transaction of the connection."""
    async with await psycopg.AsyncConnection.connect(shop.url) as connection:
        await shop.send.within(connection).aenqueue("warm")
        await connection.commit()
        # Another transaction holds the key, so the enqueue waits in the middle.
        async with await psycopg.AsyncConnection.connect(shop.url) as other:
            await shop.send.options(key="k").within(other).aenqueue("a")
            waiting = asyncio.create_task(shop.send.options(key="k").within(connection).aenqueue("a"))
            await until_a_session_waits(shop)
            waiting.cancel()
            await other.rollback()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        await connection.rollback()
        await connection.execute(WRITE)
        await connection.commit()
    assert (shop.ledger(), shop.count()) == (["paid"], 1)


async def until_a_session_waits(shop: Shop) -> None:
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()"
    await asyncio.to_thread(eventually, lambda: shop.query(waiting), what="a session that waits for the key")


async def test_sync_connections_are_refused_for_async_calls_and_vice_versa(shop: Shop) -> None:
    for open_one in (plain, alchemy_session("psycopg")):
        with open_one(shop.url) as sync, pytest.raises(DefinitionError, match=r"not async: use enqueue\(\)"):
            await shop.send.within(sync.connection).aenqueue("a")
    async with of_psycopg(shop.url) as caller, of_alchemy_session(shop.url) as session:
        for connection in (caller.connection, caller.connection.cursor(), session.connection):
            with pytest.raises(DefinitionError, match=r"is async: use `await"):
                shop.send.within(connection).enqueue("a")
    with pytest.raises(DefinitionError, match=r"builtins.object is not a connection"):
        await shop.send.within(object()).aenqueue("a")


def test_django_is_refused_where_it_would_be_unsafe(shop: Shop) -> None:
    with django_atomic(shop.url) as caller, pytest.raises(DefinitionError, match="sync_to_async"):
        asyncio.run(shop.send.within(caller.connection).aenqueue("a"))
