"""Emits and waits at the same time on PostgreSQL, each in the order that hurts most."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any
from unittest import mock

import msgspec
import psycopg
import pytest

from rota.ops import claim, upkeep
from rota.ops.events import unsure
from rota.ops.events.chores import work_on_events
from rota.ops.events.emit import Emission, emit
from rota.ops.submission import Accepted
from rota.store.port import Tx
from rota.store.postgres import borrowed, url
from tests.events.scene import HEADER, Scene, emit_one, subscriber
from tests.store.arena import Arena
from tests.support.tables import table
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.world import World

WAIT = {"id": "w", "event": {"names": ["paid"], "timeout": "1h"}}


@pytest.fixture
def arena() -> Iterator[Arena]:
    with Arena() as arena:
        yield arena


@pytest.fixture
def scene(arena: Arena) -> Scene:
    scene = Scene(arena.world)
    scene.workflow("main", WAIT, result={"$": "w.payload"})
    return scene


def open_run(tx: Tx, worker: int, served: Any) -> None:
    """Opens the run that was started: its first step begins to wait."""
    assert not claim.claim(tx, worker, served, 1).claims


class Opening:
    """A run that is started and not opened."""

    def __init__(self, scene: Scene) -> None:
        self.id = scene.start("main")
        scene.world.clock.advance(0.001)
        self.op: tuple[Any, ...] = (open_run, scene.worker, scene.world.served(jobs=["no job"]))


@contextmanager
def stopped(arena: Arena, after: str, op: Callable[..., Any], *args: Any) -> Iterator[None]:
    """Inside the block the operation has run up to and including a statement; then it continues and commits."""
    reached, go = threading.Event(), threading.Event()

    def watched(tx: Tx) -> Any:
        originals = {name: getattr(tx, name) for name in ("run", "rows", "records", "one")}

        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def called(name: str, /, *rest: Any, **params: Any) -> Any:
                answer = call(name, *rest, **params)
                if name == after and not reached.is_set():
                    reached.set()
                    assert go.wait(PATIENCE_S), "an operation was not released"
                return answer

            return called

        for name, call in originals.items():
            setattr(tx, name, wrap(call))
        try:
            return op(tx, *args)
        finally:
            for name in originals:
                delattr(tx, name)

    future = arena.start(watched)
    assert reached.wait(PATIENCE_S), future.exception() if future.done() else f"statement {after} was not reached"
    try:
        yield
    finally:
        go.set()
        future.result(PATIENCE_S)


def settled(scene: Scene) -> bool:
    """Ids of transactions are those of the whole server: a transaction of another test may delay the settling."""
    scene.settle()
    return not unsure_rows(scene)


def check_woken_once(scene: Scene, id: str) -> None:
    eventually(lambda: settled(scene), what="waits that are sure")
    assert scene.result(id) == 1
    assert len(table(scene.store, "delivery")) == 1
    assert [row for row in table(scene.store, "subscription") if row["execution"]] == []
    scene.check()


# --- Case 20 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", ["add_waits", "events_of_names", "add_steps"])
def test_the_event_commits_while_the_wait_begins(arena: Arena, scene: Scene, after: str) -> None:
    """At every point of the wait: before its look back, after it, and just before its commit."""
    opening = Opening(scene)
    with stopped(arena, after, *opening.op):
        scene.emit("paid", 1)
    check_woken_once(scene, opening.id)


@pytest.mark.parametrize("after", ["add_events", "subscribed_names"])
def test_the_wait_commits_while_the_event_is_emitted(arena: Arena, scene: Scene, after: str) -> None:
    """At every point of the emit: before its look for subscriptions, and after it."""
    opening = Opening(scene)
    with stopped(arena, after, emit_one, scene.emission("paid", 1)):
        scene.store.transact(*opening.op)
        scene.settle()
    check_woken_once(scene, opening.id)


@pytest.mark.parametrize("is_older", [True, False], ids=["older", "younger"])
def test_an_emit_that_is_older_or_younger_than_the_wait_and_held_open(
    arena: Arena, scene: Scene, is_older: bool
) -> None:
    """Both have looked and found nothing. While the emit is open, upkeep notes the wait and does not settle it."""
    opening, emission = Opening(scene), scene.emission("paid", 1)
    if is_older:
        with stopped(arena, "subscribed_names", emit_one, emission):
            scene.store.transact(*opening.op)
            scene.settle()
            assert len(unsure_rows(scene)) == 1
    else:
        with arena.held_open(*opening.op):
            emitting = stopped(arena, "subscribed_names", emit_one, emission)
            emitting.__enter__()
        scene.settle()
        assert len(unsure_rows(scene)) == 1
        emitting.__exit__(None, None, None)
    check_woken_once(scene, opening.id)


def unsure_rows(scene: Scene) -> list[dict[str, Any]]:
    return [row for row in table(scene.store, "subscription") if row["unsure"]]


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize("is_older", [True, False], ids=["older", "younger"])
def test_a_transaction_of_the_user_is_held_open(arena: Arena, scene: Scene, isolation: str, is_older: bool) -> None:
    """Its snapshot may be older than the wait: upkeep delivers the event after the commit."""
    opening = Opening(scene)
    with psycopg.connect(arena.url) as connection:
        connection.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}".encode())
        connection.execute("SELECT count(*) FROM rota.event")
        if not is_older:
            scene.store.transact(*opening.op)
        insert(arena, connection, scene.emission("paid", 1))
        if is_older:
            scene.store.transact(*opening.op)
        scene.settle()
        assert scene.letters(opening.id) == "o"
        connection.commit()
    check_woken_once(scene, opening.id)


def insert(arena: Arena, connection: psycopg.Connection[Any], emission: Emission) -> None:
    """As `app.within(connection).emit` does."""
    header = msgspec.structs.replace(HEADER, delivers_later=True)
    borrowed.run(borrowed.PsycopgVoice(connection), url.parse(arena.url), arena.clock, emit, header, [emission])


def test_a_long_transaction_only_delays_the_settling(arena: Arena, scene: Scene) -> None:
    """A wait is unsure while a transaction is open that has written something. Events wake it all the same."""
    with arena.held_open(emit_one, scene.emission("other", 1)):
        opening = Opening(scene)
        scene.store.transact(*opening.op)
        scene.settle()
        assert len(unsure_rows(scene)) == 1
        scene.emit("paid", 1)
        assert scene.result(opening.id) == 1
    check_woken_once(scene, opening.id)


def test_two_nodes_settle_the_same_wait(arena: Arena, scene: Scene) -> None:
    opening = Opening(scene)
    with stopped(arena, "subscribed_names", emit_one, scene.emission("paid", 1)):
        scene.store.transact(*opening.op)
        scene.settle()
    with arena.held_open(work_on_events):
        other = arena.start(work_on_events)
        arena.wait_until_blocked(other)
    other.result(PATIENCE_S)
    check_woken_once(scene, opening.id)


def test_a_wait_on_two_names_takes_the_earliest_event(
    arena: Arena, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upkeep settles both subscriptions of the wait together, also if it reads fewer than there are."""
    monkeypatch.setattr(unsure, "MOST", 1)
    wait = {"id": "w", "event": {"names": ["declined", "paid"], "lookback": "1h", "timeout": "1h"}}
    scene.workflow("main", wait, result={"$": "w.payload"})
    opening = Opening(scene)
    with stopped(arena, "subscribed_names", emit_one, scene.emission("paid", 1)):
        arena.clock.advance(1)
        with stopped(arena, "subscribed_names", emit_one, scene.emission("declined", 2)):
            scene.store.transact(*opening.op)
            scene.settle()
    check_woken_once(scene, opening.id)


# --- Cases 21 and 22 ------------------------------------------------------------------------------


def tried_again(arena: Arena, emission: Emission) -> Future[list[Accepted]]:
    """An emit that has met a key which another transaction holds: it is rolled back, and tried again after a moment."""
    tries: list[None] = []

    def emit_and_count(tx: Tx) -> list[Accepted]:
        tries.append(None)
        return emit_one(tx, emission)

    future = arena.start(emit_and_count)
    eventually(lambda: len(tries) > 1, what="another try")
    return future


def test_case_21_the_same_key_in_two_transactions(arena: Arena, scene: Scene) -> None:
    scene.deploy(subscriber("bill", "paid"))
    one, other = scene.emission("paid", 1, key="k"), scene.emission("paid", 1, key="k")
    with arena.held_open(emit_one, one):
        second = tried_again(arena, other)
    (answer,) = second.result(PATIENCE_S)
    assert (answer.id, answer.created) == (one.id, False)
    assert len(table(scene.store, "event")) == len(scene.executions("bill")) == 1


def test_case_21_the_first_of_two_with_the_same_key_is_rolled_back(arena: Arena, scene: Scene) -> None:
    one, other = scene.emission("paid", 1, key="k"), scene.emission("paid", 1, key="k")
    with arena.held_open(emit_one, one, undo=True):
        second = tried_again(arena, other)
    (answer,) = second.result(PATIENCE_S)
    assert (answer.id, answer.created) == (other.id, True)


@pytest.mark.parametrize("first", ["event", "timeout"])
def test_case_22_the_event_and_the_timeout_at_once(arena: Arena, scene: Scene, first: str) -> None:
    opening = Opening(scene)
    scene.store.transact(*opening.op)
    scene.settle()
    arena.clock.advance(3600)
    ops: dict[str, tuple[Any, ...]] = {"event": (emit_one, scene.emission("paid", 1)), "timeout": (upkeep.expire,)}
    with arena.held_open(*ops.pop(first)):
        second = arena.start(*next(iter(ops.values())))
        arena.wait_until_blocked(second)
    second.result(PATIENCE_S)
    scene.work()
    assert scene.end(opening.id)[0] == ("success" if first == "event" else "failed")
    assert len(table(scene.store, "delivery")) == (first == "event")
    scene.check()


def test_emits_waits_timeouts_and_upkeep_at_once(arena: Arena, scene: Scene) -> None:
    """Whatever the order: every wait gets one event or times out, and no transaction deadlocks."""
    scene.workflow(
        "other", {**WAIT, "event": {"names": ["paid", "declined"], "timeout": "1h"}}, result={"$": "w.payload"}
    )
    ids = [scene.start(name) for name in ("main", "other") for _ in range(20)]
    scene.worker  # noqa: B018 -- It joins.
    served, done = scene.world.served(jobs=["no job"]), threading.Event()
    stores = [arena.store() for _ in range(6)]

    def openings() -> None:
        while stores[0].transact(claim.claim, scene.worker, served, 1).has_more:
            pass

    def emits(place: int) -> None:
        mine = Scene(World(stores[place], arena.clock))
        for number in range(20):
            mine.emit(("paid", "declined")[number % 2], number)

    def chores(place: int) -> None:
        while not done.is_set():
            stores[place].transact(work_on_events)

    def all_work() -> None:
        arena.all_at_once([openings, lambda: emits(1), lambda: emits(2)])
        done.set()

    arena.all_at_once([all_work, lambda: chores(3), lambda: chores(4)])
    scene.work()
    scene.emit("paid", 99)
    scene.work()
    assert all(scene.result(id) is not None for id in ids)
    assert len(table(scene.store, "delivery")) == len(ids)
    assert arena.deadlocks() == 0
    scene.check()


# --- Planted bugs ---------------------------------------------------------------------------------


@contextmanager
def settling_one_snapshot_early() -> Iterator[None]:
    """A wait is sure as soon as upkeep has read it."""
    with mock.patch.object(unsure, "is_due", return_value=True):
        yield


@pytest.mark.parametrize("is_older", [True, False], ids=["older", "younger"])
def test_a_planted_bug_is_caught(arena: Arena, scene: Scene, is_older: bool) -> None:
    with settling_one_snapshot_early(), pytest.raises(AssertionError):
        test_an_emit_that_is_older_or_younger_than_the_wait_and_held_open(arena, scene, is_older)
