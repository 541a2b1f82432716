"""An enqueue in the caller's transaction: with its commit, with its rollback, and without a trace in its session."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from rota import KeyConflict, NotUnique, QueueFull, Status, Unique
from tests.transaction.callers import CALLERS, Caller
from tests.transaction.shop import Shop

SETTINGS = "SELECT name, setting FROM pg_settings WHERE name <> 'transaction_isolation' ORDER BY name"
WRITE = "INSERT INTO ledger (entry) VALUES ('paid')"


@pytest.fixture(params=CALLERS)
def caller(request: pytest.FixtureRequest, shop: Shop) -> Iterator[Caller]:
    with CALLERS[request.param](shop.url) as caller:
        yield caller


def test_an_enqueue_is_committed_with_the_caller(shop: Shop, caller: Caller) -> None:
    caller.run(WRITE)
    x = shop.send.within(caller.connection).enqueue("a@b.c", subject="yo")
    assert (shop.ledger(), shop.count()) == ([], 0)
    caller.commit()
    assert (shop.ledger(), shop.count()) == (["paid"], 1)
    assert x.status() is Status.QUEUED
    assert x.created


def test_rolled_back_means_never_enqueued(shop: Shop, caller: Caller) -> None:
    caller.run(WRITE)
    shop.send.within(caller.connection).enqueue("a@b.c")
    shop.send.options(key="once", queue="new").within(caller.connection).enqueue("a@b.c")
    caller.rollback()
    assert (shop.ledger(), shop.count()) == ([], 0)
    assert shop.query("SELECT count(*) FROM rota.unique_key") == [(0,)]
    assert shop.query("SELECT count(*) FROM rota.queue WHERE name = 'new'") == [(0,)]


def test_an_enqueue_may_be_the_first_statement_of_a_transaction(shop: Shop, caller: Caller) -> None:
    shop.send.within(caller.connection).enqueue("a@b.c")
    caller.run(WRITE)
    caller.commit()
    assert (shop.ledger(), shop.count()) == (["paid"], 1)


def test_an_enqueue_writes_the_same_rows_as_one_without_a_caller(shop: Shop, caller: Caller) -> None:
    at = datetime(2040, 1, 1, tzinfo=UTC)
    choices: list[dict[str, Any]] = [
        {},
        {"delay": "90s", "priority": "high", "tags": ["a", 'b "c" \\ é']},
        {"at": at, "start_within": "2h", "queue": "elsewhere"},
        {"start_by": at, "key": "k"},
        {"unique": True},
        {"unique": Unique(key="u", scope="forever"), "priority": -3},
    ]
    for number, options in enumerate(choices):
        text = f'{number} "quoted" \\ {{1,2}} % %s :a é €'
        inside = shop.send.options(**options).within(caller.connection).enqueue("a", subject=text)
        caller.commit()
        (theirs,) = shop.rows(inside.id)
        shop.query("DELETE FROM rota.unique_key")
        (ours,) = shop.rows(shop.send.options(**options).enqueue("a", subject=text).id)
        if "at" in options or "start_by" in options:
            # Times relative to the moment of the call.
            assert [a == b for a, b in zip(ours, theirs, strict=True)].count(False) <= 3
        else:
            assert theirs == ours


def test_many_executions_are_enqueued_in_one_transaction(shop: Shop, caller: Caller) -> None:
    xs = shop.send.within(caller.connection).enqueue_many([{"to": f"{n}@b.c"} for n in range(500)])
    assert shop.send.within(caller.connection).enqueue_many([]) == []
    caller.commit()
    assert len({x.id for x in xs}) == shop.count() == 500


def test_a_full_queue_does_not_fail_the_transaction(shop: Shop, caller: Caller) -> None:
    caller.run(WRITE)
    wrap = shop.wrap.within(caller.connection)
    for order in range(2):
        wrap.enqueue(order)
    with pytest.raises(QueueFull, match="2 of 2"):
        wrap.enqueue(3)
    caller.commit()
    assert (shop.ledger(), shop.count()) == (["paid"], 2)


def test_a_key_conflict_does_not_fail_the_transaction(shop: Shop, caller: Caller) -> None:
    caller.run(WRITE)
    keyed = shop.send.options(key="k").within(caller.connection)
    first = keyed.enqueue("a@b.c")
    again = keyed.enqueue("a@b.c")
    assert (again.id, again.created) == (first.id, False)
    with pytest.raises(KeyConflict, match="belongs to execution"):
        keyed.enqueue("other@example.org")
    caller.commit()
    assert (shop.ledger(), shop.count()) == (["paid"], 1)


def test_an_enqueue_that_is_refused_half_way_writes_nothing(shop: Shop, caller: Caller) -> None:
    caller.run(WRITE)
    strict = shop.send.options(unique=Unique(on_conflict="reject")).within(caller.connection)
    with pytest.raises(NotUnique):
        strict.enqueue_many([{"to": "a"}, {"to": "b"}, {"to": "a"}])
    caller.commit()
    assert (shop.ledger(), shop.count()) == (["paid"], 0)


def test_replace_and_debounce(shop: Shop, caller: Caller) -> None:
    old = shop.send.options(unique=Unique(key="r", on_conflict="replace")).enqueue("a")
    new = shop.send.options(unique=Unique(key="r", on_conflict="replace")).within(caller.connection).enqueue("a")
    quiet = shop.send.options(unique=Unique(key="d", on_conflict="debounce"), delay="10s")
    first = quiet.enqueue("a")
    assert quiet.within(caller.connection).enqueue("a").id == first.id
    assert old.status() is Status.QUEUED
    caller.commit()
    assert (old.status(), new.status()) == (Status.CANCELLED, Status.QUEUED)


def test_the_session_of_the_caller_is_not_changed(shop: Shop, caller: Caller) -> None:
    before = caller.run(SETTINGS)
    shop.send.options(key="k").within(caller.connection, notify=True).enqueue("a@b.c")
    after = caller.run(SETTINGS)
    assert after == before
    caller.commit()
    assert caller.run(SETTINGS) == before
    assert caller.run("SELECT 1 AS one") == [(1,)]
    caller.rollback()
