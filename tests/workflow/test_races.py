"""What can happen to runs at the same time on PostgreSQL, each in the order that hurts most, or all at once."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from unittest import mock

import msgspec
import pytest

from rota.domain.errors import Conflict, RotaError
from rota.domain.outcome import Error, Failed, Outcome, Succeeded
from rota.domain.status import Status
from rota.domain.workflow import advance as decisions
from rota.ops import claim, control, finish, upkeep
from rota.ops.finish import Finished
from rota.ops.runs import expand, maps, pause, start
from rota.ops.runs.chores import work_on_runs
from rota.ops.runs.tell import tell_steps
from rota.store import statements
from rota.store.port import Tx
from rota.store.postgres import session as postgres_session
from rota.store.postgres.url import DEFAULT_SCHEMA
from tests.store.arena import Arena
from tests.support.proving import proof
from tests.support.tables import table
from tests.support.waiting import PATIENCE_S
from tests.support.world import NAMESPACE, World
from tests.workflow.stage import Fail, Stage, one_success
from tests.workflow.test_undo_order import Record

FAILED = Failed(Error("Fail", "boom"))


@pytest.fixture
def arena() -> Iterator[Arena]:
    with Arena() as arena:
        yield arena


@pytest.fixture
def stage(arena: Arena) -> Stage:
    return Stage(arena.world)


def ref(path: str) -> dict[str, str]:
    return {"$": path}


def report(tx: Tx, id: str, outcome: Outcome = Succeeded("1"), fence: int = 1) -> list[str]:  # noqa: B008
    return finish.finish(tx, [Finished(id, fence, outcome)])


@contextmanager
def planted(name: str, old: str, new: str) -> Iterator[None]:
    """A statement of PostgreSQL that is changed."""
    texts = statements.load("postgres", DEFAULT_SCHEMA)
    before = texts[name]
    texts[name] = tuple(text.replace(old, new) for text in before)
    assert texts[name] != before, f"statement {name} has changed: plant the bug anew"
    postgres_session.load.cache_clear()
    try:
        yield
    finally:
        texts[name] = before
        postgres_session.load.cache_clear()


JOIN = (
    {"id": "a", "job": "echo", "with": {"x": 1}},
    {"id": "b", "job": "echo", "with": {"x": 2}},
    {"id": "c", "job": "echo", "with": {"x": [ref("a"), ref("b")]}},
)


# --- Joins ----------------------------------------------------------------------------------------


def two_parents_at_once(arena: Arena, stage: Stage, *, waits: bool = True) -> str:
    stage.workflow("main", *JOIN, result=ref("c"))
    id = stage.start("main")
    one, other = stage.take()
    with arena.held_open(report, one.id):
        second = arena.start(report, other.id)
        if waits:
            arena.wait_until_blocked(second)
        else:
            second.result(PATIENCE_S)
    second.result(PATIENCE_S)
    stage.held.clear()
    stage.work()
    return id


def test_case_1_two_parents_of_a_join_end_at_once(arena: Arena, stage: Stage) -> None:
    id = two_parents_at_once(arena, stage)
    assert stage.result(id) == [1, 1]
    assert len(stage.executions("echo")) == 3
    assert stage.is_swept()
    stage.check()


def sharded(stage: Stage, width: int = 200) -> list[str]:
    stage.workflow(
        "main",
        {"id": "m", "job": "echo", "map": list(range(width)), "as": "x"},
        {"id": "j", "job": "echo", "with": {"x": ref("m")}},
        result=ref("j"),
    )
    id = stage.start("main")
    items = stage.take(width)
    assert len(items) == width
    last = [items[0], items[-1]]
    stage.finish(*items[1:-1])
    stage.held.clear()
    return [id, *(one.id for one in last)]


def test_case_7_the_last_items_of_two_shards_end_at_once(arena: Arena, stage: Stage) -> None:
    id, one, other = sharded(stage)
    with arena.held_open(report, one):
        second = arena.start(report, other)
        arena.wait_until_blocked(second)
    second.result(PATIENCE_S)
    stage.work()
    assert len(stage.result(id)) == 200
    assert stage.is_swept()
    stage.check()


def test_items_of_one_shard_end_at_once(arena: Arena, stage: Stage) -> None:
    id, one, other = sharded(stage, 60)
    with arena.held_open(report, one):
        second = arena.start(report, other)
        arena.wait_until_blocked(second)
    second.result(PATIENCE_S)
    stage.work()
    assert len(stage.result(id)) == 60
    stage.check()


def test_an_item_that_is_not_the_last_of_its_shard_does_not_wait_for_the_run(arena: Arena, stage: Stage) -> None:
    stage.workflow("main", {"id": "m", "job": "echo", "map": list(range(300)), "as": "x"})
    id = stage.start("main")
    items = stage.take(300)
    with arena.held_open(lock_run, id):
        arena.start(report, items[5].id).result(PATIENCE_S)
    stage.held.remove(items[5])
    stage.work()
    stage.check()


def lock_run(tx: Tx, id: str) -> None:
    tx.rows("lock_runs", ids=[id])


def test_sub_runs_of_one_parent_end_at_once(arena: Arena, stage: Stage) -> None:
    stage.workflow("inner", {"id": "a", "job": "echo", "with": {"x": ref("input.x")}}, result=ref("a"))
    stage.workflow(
        "main",
        {"id": "i", "workflow": "inner", "with": {"x": 1}},
        {"id": "m", "workflow": "inner", "map": [1, 2], "as": "x"},
        {"id": "j", "job": "echo", "with": {"x": [ref("i"), ref("m")]}},
        result=ref("j"),
    )
    id = stage.start("main")
    first, *others = stage.take()
    assert len(others) == 2
    with arena.held_open(report, first.id):
        rest = [arena.start(report, one.id) for one in others]
    for one in rest:
        one.result(PATIENCE_S)
    stage.held.clear()
    stage.work()
    assert stage.result(id) == [1, [1, 1]]
    stage.check()


# --- Cancels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["cancel", "success"])
def test_case_14_a_cancel_races_with_the_last_success(arena: Arena, stage: Stage, first: str) -> None:
    """The run is undone only if the cancel committed first."""
    stage.job("undo", one_success, parameters={"x": {"first": True}})
    stage.workflow("main", {"id": "a", "job": "echo", "undo": "undo"})
    id = stage.start("main")
    (attempt,) = stage.take()
    stage.held.clear()
    ops: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "cancel": (control.cancel, (NAMESPACE, id, "test")),
        "success": (report, (attempt.id,)),
    }
    (one, one_args), (other, other_args) = ops[first], next(op for name, op in ops.items() if name != first)
    with arena.held_open(one, *one_args):
        second = arena.start(other, *other_args)
        arena.wait_until_blocked(second)
    second.result(PATIENCE_S)
    stage.work()
    assert stage.end(id)[0] == ("cancelled" if first == "cancel" else "success")
    assert stage.count("undo") == (1 if first == "cancel" else 0)
    stage.check()


def test_two_last_steps_end_at_once_and_the_run_is_undone_once(arena: Arena, stage: Stage) -> None:
    stage.job("undo", one_success, parameters={"x": {"first": True}})
    stage.workflow("main", {"id": "a", "job": "echo", "undo": "undo"}, {"id": "b", "job": "echo"})
    id = stage.start("main")
    one, other = stage.take()
    stage.held.clear()
    failed = next(attempt.id for attempt in (one, other) if stage.world.execution(attempt.id).step == 1)
    succeeded = next(attempt.id for attempt in (one, other) if attempt.id != failed)
    with arena.held_open(report, failed, Failed(Error("Fail", "no"))):
        second = arena.start(report, succeeded)
        arena.wait_until_blocked(second)
    second.result(PATIENCE_S)
    stage.work()
    assert stage.end(id) == ("failed", "step_failed")
    assert stage.count("undo") == 1
    stage.check()


def test_a_cancel_that_waits_for_the_last_end_finds_the_run_undoing(arena: Arena, stage: Stage) -> None:
    stage.job("undo", one_success, parameters={"x": {"first": True}})
    stage.workflow("main", {"id": "a", "job": "echo", "undo": "undo"}, {"id": "b", "job": "echo", "after": ["a"]})
    id = stage.start("main")
    stage.finish(*stage.take())
    (attempt,) = stage.take()
    stage.held.clear()
    with arena.held_open(report, attempt.id, Failed(Error("Fail", "no"))):
        cancel = arena.start(control.cancel, NAMESPACE, id, "test")
        arena.wait_until_blocked(cancel)
    with pytest.raises(Conflict, match="is undoing"):
        cancel.result(PATIENCE_S)
    stage.work()
    assert stage.end(id) == ("failed", "step_failed")
    assert stage.count("undo") == 1


def test_a_step_that_is_claimed_while_its_run_stops_is_cancelled(arena: Arena, stage: Stage) -> None:
    stage.workflow("main", {"id": "a", "job": "echo"})
    id = stage.start("main")
    stage.open()
    stage.cancel(id)
    with arena.held_open(take, stage.worker, stage.world.served()) as taken:
        told = arena.start(tell_steps)
        arena.wait_until_blocked(told)
    assert told.result(PATIENCE_S)
    (attempt,) = taken.result().claims
    assert stage.world.execution(attempt.id).reason == "cancelled"
    stage.finish(attempt)
    assert stage.end(id) == ("cancelled", "cancelled")


def take(tx: Tx, worker: int, served: Any) -> claim.Claimed:
    return claim.claim(tx, worker, served, 10)


def test_a_sub_run_that_opens_while_its_parent_stops_is_cancelled(arena: Arena, stage: Stage) -> None:
    stage.workflow("inner", {"id": "a", "job": "echo"})
    stage.workflow("main", {"id": "i", "workflow": "inner"})
    id = stage.start("main")
    stage.open()
    stage.cancel(id)
    with arena.held_open(take, stage.worker, stage.world.served()):
        told = arena.start(tell_steps)
        arena.wait_until_blocked(told)
    assert told.result(PATIENCE_S)
    while stage.chores():
        pass
    stage.work()
    assert stage.end(id) == ("cancelled", "cancelled")
    assert stage.started == []
    assert stage.statuses("inner") == {"cancelled": 1}
    stage.check()


def test_a_run_that_ends_while_its_steps_are_cancelled(arena: Arena, stage: Stage) -> None:
    stage.workflow("main", {"id": "a", "job": "echo"})
    id = stage.start("main")
    (attempt,) = stage.take()
    stage.held.clear()
    stage.cancel(id)
    with arena.held_open(report, attempt.id):
        told = arena.start(tell_steps)
        arena.wait_until_blocked(told)
    assert told.result(PATIENCE_S)
    stage.work()
    stage.check()


@pytest.mark.parametrize("how", ["cancel", "failure"])
def test_a_map_that_stops_while_its_expander_closes_it(arena: Arena, stage: Stage, how: str) -> None:
    """The row of `map_open` is there when the stop looks, and gone when it commits: it still cancels the items."""
    stage.workflow("main", {"id": "m", "job": "echo", "map": list(range(600)), "as": "x"})
    id = stage.start("main")
    first = stage.take(101)
    while table(stage.store, "map_open")[0]["next_item"] < 600:
        stage.store.transact(expand.expand, 0)
    stop: Callable[..., Any]
    arguments: tuple[Any, ...]
    if how == "cancel":
        stop, arguments = control.cancel, (NAMESPACE, id, "test")
    else:
        stop, arguments = report, (first[0].id, FAILED)
        stage.held.remove(first[0])
    with arena.held_open(stop, *arguments):
        closing = arena.start(expand.expand, 0)
        arena.wait_until_blocked(closing)
    closing.result(PATIENCE_S)
    while stage.chores():
        pass
    assert stage.statuses("echo")["cancelled"] >= 499
    stage.work()
    assert stage.letters(id) == ("c" if how == "cancel" else "f")
    stage.check()


# --- Expanders, pauses ----------------------------------------------------------------------------


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("width", "chunk"), [(2600, 60), proof(100_000, expand.CHUNK)])
def test_case_6_two_expanders_and_one_that_is_killed(
    arena: Arena, stage: Stage, width: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expand, "CHUNK", chunk)
    monkeypatch.setattr(start, "AT_FIRST", chunk // 2)
    assert two_expanders_and_one_that_is_killed(arena, stage, width, chunk) > 37


def two_expanders_and_one_that_is_killed(arena: Arena, stage: Stage, width: int, chunk: int) -> int:
    """Two expanders meet at many chunks; the one that places the 37th is killed. Returns the number of chunks."""
    stage.job("list", lambda: list(range(width)))
    listed = {"id": "listed", "job": "list"}
    stage.workflow("main", listed, {"id": "m", "job": "echo", "map": ref("listed"), "as": "x"}, result=ref("m"))
    id = stage.start("main")
    stage.finish(*stage.take())
    chunks = 0
    while rows := table(stage.store, "map_open"):
        assert len(table(stage.store, "ready")) <= 2 * chunk, "other work waits for two chunks at most"
        chunks += 1
        if chunks == 37:
            with arena.held_open(expand.expand, 0, undo=True):
                assert arena.start(expand.expand, 0).result(PATIENCE_S) is False
            assert table(stage.store, "map_open") == rows
        if chunks % 10 in (1, 7):
            with arena.held_open(expand.expand, 0):
                # The map is in the hands of the other.
                assert arena.start(expand.expand, 0).result(PATIENCE_S) is False
        else:
            stage.store.transact(expand.expand, 0)
        stage.finish(*stage.take(chunk))
    stage.work()
    assert stage.result(id) == list(range(width))
    items = stage.store.read(lambda view: view.rows("items_of", run=id, number=1))
    assert [(item, status) for item, status, *_ in items] == [(item, "success") for item in range(width)]
    assert [arguments["x"] for job, arguments in stage.started if job == "echo"] == list(range(width))
    if width < 10_000:  # It reads whole tables into memory, in one transaction.
        stage.check()
    return chunks


def test_case_9_never_two_items_and_never_none(arena: Arena, stage: Stage) -> None:
    """One at once: the item fails, its worker dies, it is retried; the next item starts when it has ended."""
    stage.job("flaky", lambda x: x, attempts=2, delay_s=5)
    stage.workflow("main", {"id": "m", "job": "flaky", "map": [1, 2, 3], "as": "x", "at_once": 1}, result=ref("m"))
    id = stage.start("main")
    doomed = stage.world.join(name="doomed")
    stage.take(1, jobs=["main"])
    (attempt,) = stage.world.claim(doomed)
    arena.clock.advance(60)
    stage.store.transact(upkeep.rescue, 10.0)
    (again,) = stage.take()
    assert again.id == attempt.id
    stage.held.clear()
    stage.report((again, FAILED))
    assert stage.take() == []
    assert stage.report((attempt, Succeeded("9"))) == [attempt.id]  # Case 4: refused by the fence.
    stage.advance(5)
    assert stage.result(id) == [1, 2, 3]
    assert stage.most_at_once["flaky"] == 1
    stage.check()


def test_items_end_while_a_chunk_of_a_bounded_map_is_placed(arena: Arena, stage: Stage) -> None:
    stage.workflow("main", {"id": "m", "job": "echo", "map": list(range(1200)), "as": "x", "at_once": 5})
    stage.start("main")
    while len(stage.executions("echo")) < 1200 and table(stage.store, "map_open"):
        held = stage.take()
        if held:
            with arena.held_open(work_on_runs, 0):
                ended = [arena.start(report, one.id) for one in held[:2]]
            for one in ended:
                one.result(PATIENCE_S)
            stage.held = [one for one in stage.held if one not in held[:2]]
        if len(stage.executions("echo")) <= 500:
            stage.finish(*stage.held)
    stage.work()
    assert stage.most_at_once["echo"] <= 5
    stage.check()


def test_a_resume_waits_for_steps_that_are_put_behind_the_pause(arena: Arena, stage: Stage) -> None:
    stage.workflow("main", {"id": "a", "job": "echo"}, result=1)
    id = stage.start("main")
    stage.take(1, jobs=["main"])
    stage.pause(id)
    with arena.held_open(take, stage.worker, stage.world.served()) as taken:
        resumed = arena.start(pause.resume, NAMESPACE, id, "test")
        arena.wait_until_blocked(resumed)
    assert resumed.result(PATIENCE_S)
    assert taken.result().claims == []
    stage.work()
    assert stage.result(id) == 1
    stage.check()


# --- Everything at once ---------------------------------------------------------------------------


def declare_nested(stage: Stage) -> None:
    def sometimes(x: Any = 0, **_: Any) -> Any:
        if x == 5:
            raise Fail("five")
        return x

    stage.job("sometimes", sometimes)
    stage.job("undo", one_success, parameters={"x": {"first": True}})
    stage.workflow(
        "leaf",
        {"id": "a", "job": "echo", "with": {"x": ref("input.x")}, "undo": "undo"},
        {"id": "m", "job": "sometimes", "map": list(range(7)), "as": "x", "tolerate": 2, "at_once": 3, "undo": "undo"},
        {"id": "b", "job": "echo", "with": {"x": ref("a")}, "after": ["m"]},
        result=ref("b"),
    )
    stage.workflow(
        "middle",
        {"id": "m", "workflow": "leaf", "map": [1, 2], "as": "x"},
        {"id": "n", "workflow": "leaf", "with": {"x": 3}},
        {"id": "s", "job": "sometimes", "with": {"x": 5}, "may_fail": True},
        {"id": "j", "job": "echo", "with": {"x": [ref("m"), ref("n")]}},
        result=ref("j"),
    )
    stage.workflow(
        "main",
        {"id": "p", "workflow": "middle"},
        {"id": "q", "workflow": "middle", "map": [1, 2], "as": "x"},
        {"id": "j", "job": "echo", "with": {"x": [ref("p"), ref("q")]}},
        result=ref("j"),
        timeout=1000,
    )


WHOLE = [[[1, 2], 3], [[[1, 2], 3], [[1, 2], 3]]]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("runs", [6, proof(60)])
def test_case_15_workers_cancels_pauses_and_chores_at_once(arena: Arena, stage: Stage, runs: int) -> None:
    """Whatever the order was: no transaction deadlocks, every run ends, parents after their children."""
    declare_nested(stage)
    ids = [stage.start("main") for _ in range(runs)]
    spoiled = ids[::3]
    done = threading.Event()
    crew = [Stage(World(arena.store(), arena.clock)) for _ in range(4)]
    for one in crew:
        one.bodies.update(stage.bodies)
        one.worker  # noqa: B018 -- It joins.
    others = [arena.store() for _ in range(3)]

    def work(place: int) -> int:
        chance, mine = random.Random(place), crew[place]
        idle = 0
        while idle < 20 and not done.is_set():
            mine.take(chance.randint(1, 12))
            if mine.held:
                some = chance.sample(mine.held, chance.randint(1, len(mine.held)))
                mine.finish(*some)
                idle = 0
            elif all(stage_status(mine, id) for id in ids):
                idle += 20
        return len(mine.started)

    def chores(place: int) -> None:
        while not done.is_set():
            others[place].transact(work_on_runs, 0)
            others[place].transact(upkeep.expire)

    def disturb() -> None:
        chance = random.Random(1)
        for id in spoiled:
            for _ in range(3):
                nested = [str(row["id"]) for row in table(others[2], "run") if row["parent"] is not None]
                for run in chance.sample(nested, min(2, len(nested))):
                    with suppress(Conflict):  # It has ended.
                        others[2].transact(pause.pause, NAMESPACE, run, "test")
                        others[2].transact(pause.resume, NAMESPACE, run, "test")
            others[2].transact(control.cancel, NAMESPACE, id, "test")

    def all_work() -> None:
        calls: list[Callable[[], object]] = [*(partial(work, place) for place in range(4)), disturb]
        arena.all_at_once(calls)
        done.set()

    everything: list[Callable[[], object]] = [all_work, partial(chores, 0), partial(chores, 1)]
    arena.all_at_once(everything)
    stage.work()
    for id in ids:
        if id not in spoiled:
            assert stage.result(id) == WHOLE
        else:
            assert stage.end(id)[0] in ("cancelled", "success")
    assert all(len(undos) == 1 for undos in Record(stage).undos.values())
    assert arena.deadlocks() == 0
    stage.check()


def stage_status(stage: Stage, id: str) -> bool:
    return stage.world.status(id) not in (Status.QUEUED, Status.RUNNING)


# --- Planted bugs ---------------------------------------------------------------------------------


@contextmanager
def locking_the_run_first() -> Iterator[None]:
    original = maps.count

    def count(tx: Tx, ended: Any) -> set[str]:
        tx.rows("lock_runs", ids=sorted({item.run for item, _ in ended}))
        return original(tx, ended)

    with mock.patch.object(maps, "count", count):
        yield


@contextmanager
def expanding_twice() -> Iterator[None]:
    unlocked = planted("next_maps", "FOR UPDATE SKIP LOCKED", "")
    with unlocked, mock.patch.object(expand, "CHUNK", 60), mock.patch.object(start, "AT_FIRST", 30):
        yield


@contextmanager
def placing_blocked_steps() -> Iterator[None]:
    original = decisions.advance

    def advance(graph: Any, letters: str, *args: Any, **kwargs: Any) -> Any:
        found = original(graph, letters, *args, **kwargs)
        blocked = [place for place, letter in enumerate(found.letters) if letter == "b" and letters[place] == "."]
        return msgspec.structs.replace(found, start=tuple(sorted({*found.start, *blocked})))

    with mock.patch.object(decisions, "advance", advance):
        yield


def a_failure_blocks_what_follows(arena: Arena, stage: Stage) -> None:
    stage.job("fail", _fail)
    stage.workflow("main", {"id": "a", "job": "fail"}, {"id": "b", "job": "echo", "after": ["a"]})
    id = stage.start("main")
    stage.work()
    assert stage.letters(id) == "fb"
    stage.check()


def _fail() -> None:
    raise Fail("boom")


PLANTED: dict[str, tuple[Callable[[], Any], Callable[[Arena, Stage], object]]] = {
    "a join without the lock of the run": (
        lambda: planted("lock_runs", "FOR UPDATE", ""),
        test_case_1_two_parents_of_a_join_end_at_once,
    ),
    "the run is locked before the tally": (
        locking_the_run_first,
        test_an_item_that_is_not_the_last_of_its_shard_does_not_wait_for_the_run,
    ),
    "a map is expanded twice": (
        expanding_twice,
        lambda arena, stage: two_expanders_and_one_that_is_killed(arena, stage, 600, 60),
    ),
    "a shard is counted twice": (
        lambda: planted("count_items", "open - e.ended", "open - 2 * e.ended"),
        test_case_7_the_last_items_of_two_shards_end_at_once,
    ),
    "a blocked step is placed": (placing_blocked_steps, a_failure_blocks_what_follows),
}


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.replace(" ", "_"))
def test_a_planted_bug_is_caught(arena: Arena, stage: Stage, bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, scene = PLANTED[bug]
    monkeypatch.setattr("tests.workflow.test_races.PATIENCE_S", 3)
    with plant(), pytest.raises((AssertionError, TimeoutError, RotaError)):
        scene(arena, stage)
