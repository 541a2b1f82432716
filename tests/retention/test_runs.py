"""What retention keeps of runs: everything that an open run refers to; the rest goes with its day."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rota.clock import ManualClock
from rota.domain import retention as domain
from rota.domain.errors import Conflict
from rota.store.postgres.partitions import PostgresKeeper
from rota.store.postgres.store import PostgresStore
from tests.retention.passes import DAY_S, policy, prune
from tests.support.databases import fresh_database
from tests.support.tables import table
from tests.support.waiting import eventually
from tests.support.world import World
from tests.workflow.stage import Fail, Stage


def ref(path: str) -> dict[str, str]:
    return {"$": path}


class Flaky:
    def __init__(self) -> None:
        self.is_broken = True

    def __call__(self, **_: object) -> int:
        if self.is_broken:
            raise Fail("not yet")
        return 1


STEPS = (
    {"id": "a", "job": "echo", "with": {"x": "early"}},
    {"id": "m", "job": "echo", "map": list(range(150)), "as": "x"},
    {"id": "late", "job": "echo", "with": {"x": [ref("a"), ref("m[149]")]}, "delay": 40 * DAY_S, "after": ["m"]},
    {"id": "f", "job": "flaky", "after": ["late"]},
)


@pytest.fixture
def flaky() -> Flaky:
    return Flaky()


@pytest.fixture
def stage(world: World, flaky: Flaky) -> Stage:
    stage = Stage(world)
    stage.job("flaky", flaky)
    stage.workflow("main", *STEPS, result=ref("late"))
    return stage


def test_results_stay_while_an_open_run_refers_to_them(stage: Stage, flaky: Flaky) -> None:
    id = stage.start("main")
    stage.work()
    stage.world.clock.advance(39 * DAY_S)
    assert prune(stage.store) == 0
    stage.advance(DAY_S)
    assert stage.end(id) == ("failed", "step_failed")
    flaky.is_broken = False
    # The late step has just ended, the others have been kept for the open run only. A retry refers to them again.
    again = stage.retry(id)
    stage.pause(again)
    stage.world.clock.advance(100 * DAY_S)
    assert prune(stage.store) == 0, "a run stays while a retry of it is open"
    stage.resume(again)
    stage.work()
    assert stage.result(again) == ["early", 149]
    stage.world.clock.advance(100 * DAY_S)
    prune(stage.store)
    assert [table(stage.store, name) for name in ("execution", "finished", "step", "run_ended")] == [[], [], [], []]


def test_a_retry_whose_kept_result_is_gone_is_refused(stage: Stage, flaky: Flaky) -> None:
    id = stage.start("main")
    stage.work()
    stage.advance(40 * DAY_S)
    stage.world.clock.advance(100 * DAY_S)
    assert prune(stage.store) > 150
    assert [row.id for row in stage.world.dead()] == [id]
    with pytest.raises(Conflict, match=r"deleted the result of step \w+"):
        stage.retry(id)
    again = stage.retry(id, "start")
    stage.work()
    stage.cancel(again)
    stage.work()
    assert stage.end(again) == ("cancelled", "cancelled")


def test_what_an_undo_needs_stays_while_the_run_is_open(stage: Stage) -> None:
    """Steps of a sub-run that ended long ago are undone with their results."""
    undone: list[object] = []
    stage.job("undo", lambda x: undone.append(x), parameters={"x": {"first": True}})
    stage.workflow("leaf", {"id": "p", "job": "echo", "with": {"x": "kept"}, "undo": "undo"})
    stage.workflow("middle", {"id": "l", "workflow": "leaf"})
    stage.workflow(
        "saga", {"id": "s", "workflow": "middle"}, {"id": "f", "job": "flaky", "delay": 40 * DAY_S, "after": ["s"]}
    )
    id = stage.start("saga")
    stage.work()
    stage.world.clock.advance(39 * DAY_S)
    assert prune(stage.store) == 0
    stage.advance(2 * DAY_S)
    assert stage.end(id) == ("failed", "step_failed")
    assert undone == ["kept"]
    stage.check(is_pruned=True)


def test_what_an_undo_needs_of_a_retried_run_stays(stage: Stage, flaky: Flaky) -> None:
    """The retry keeps a sub-run, fails long after, and undoes the steps of the sub-run."""
    undone: list[object] = []
    stage.job("undo", lambda x: undone.append(x), parameters={"x": {"first": True}})
    stage.workflow("leaf", {"id": "p", "job": "echo", "with": {"x": "kept"}, "undo": "undo"})
    stage.workflow("middle", {"id": "l", "workflow": "leaf"})
    steps = {"id": "s", "workflow": "middle"}, {"id": "f", "job": "flaky", "after": ["s"]}
    stage.workflow("saga", *steps, undo_on=["cancelled"])
    id = stage.start("saga")
    stage.work()
    assert undone == []
    again = stage.retry(id)
    stage.pause(again)
    stage.world.clock.advance(100 * DAY_S)
    prune(stage.store)
    stage.cancel(again)
    stage.work()
    stage.resume(again)
    stage.work()
    assert stage.end(again) == ("cancelled", "cancelled")
    assert undone == ["kept"]


def test_a_sub_run_that_a_retry_has_yet_to_open_stays(stage: Stage, flaky: Flaky) -> None:
    """The second retry waits for long before it opens its sub-run, whose kept step is from the first run."""
    stage.workflow("leaf", {"id": "a", "job": "echo", "with": {"x": 5}}, {"id": "f", "job": "flaky", "after": ["a"]})
    stage.workflow("outer", {"id": "s", "workflow": "leaf"})
    id = stage.start("outer")
    for _ in range(2):
        stage.work()
        assert stage.end(id) == ("failed", "step_failed")
        id = stage.retry(id)
    stage.pause(id)
    stage.world.clock.advance(100 * DAY_S)
    prune(stage.store)
    stage.resume(id)
    flaky.is_broken = False
    stage.work()
    assert stage.end(id)[0] == "success"
    assert stage.count("echo") == 1, "the step is kept over both retries"


def test_a_sub_run_whose_kept_result_is_gone_starts_from_scratch(stage: Stage, flaky: Flaky) -> None:
    stage.workflow("leaf", {"id": "a", "job": "echo", "with": {"x": 5}}, {"id": "f", "job": "flaky", "after": ["a"]})
    stage.workflow("outer", {"id": "s", "workflow": "leaf"})
    id = stage.start("outer")
    stage.work()
    stage.world.clock.advance(100 * DAY_S)
    assert prune(stage.store) > 0
    flaky.is_broken = False
    again = stage.retry(id)
    stage.work()
    assert stage.end(again)[0] == "success"
    assert stage.count("echo") == 2


def test_a_retry_of_an_undo_whose_result_is_gone_is_refused(stage: Stage) -> None:
    def refuse(x: object) -> None:
        raise Fail("no")

    stage.job("undo", refuse, parameters={"x": {"first": True}})
    stage.workflow("saga", {"id": "p", "job": "echo", "undo": "undo"}, {"id": "f", "job": "flaky", "after": ["p"]})
    id = stage.start("saga")
    stage.work()
    assert stage.end(id) == ("failed", "undo_failed")
    stage.world.clock.advance(100 * DAY_S)
    assert prune(stage.store) > 0
    with pytest.raises(Conflict, match="deleted the result of step p"):
        stage.retry(id)


class TestDays:
    """Partitions of PostgreSQL."""

    @pytest.fixture
    def url(self) -> str:
        return fresh_database()

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def world(self, url: str, clock: ManualClock) -> Iterator[World]:
        world = World(PostgresStore(url, clock, inline=True), clock)
        yield world
        world.store.close()

    @pytest.fixture
    def keeper(self, url: str, clock: ManualClock) -> PostgresKeeper:
        return PostgresKeeper(url, clock)

    def drop(self, world: World, keeper: PostgresKeeper) -> int:
        """The server itself may analyse a day in between, and the day is then busy for a moment."""
        kept, now, removed = policy(world.store), world.clock.now(), [0]

        def is_dropped() -> bool:
            days = domain.days_to_drop(keeper.days(), kept, now)
            dropped = [keeper.drop(day, kept.cutoffs(now)) for day in days]
            removed.extend(one.removed for one in dropped)
            return {one.trouble for one in dropped} <= {""}

        eventually(is_dropped)
        return sum(removed)

    def pass_days(self, world: World, keeper: PostgresKeeper, days: int) -> None:
        world.clock.advance(days * DAY_S)
        keeper.make_ahead()

    def test_a_day_is_dropped_without_what_open_runs_refer_to(
        self, stage: Stage, flaky: Flaky, keeper: PostgresKeeper
    ) -> None:
        flaky.is_broken = False
        done = stage.start("main")
        stage.work()
        self.pass_days(stage.world, keeper, 40)
        open_one = stage.start("main")
        stage.work()
        assert stage.result(done) == ["early", 149]
        early = [row for row in table(stage.store, "step") if str(row["run"]) == open_one]
        self.pass_days(stage.world, keeper, 39)
        assert self.drop(stage.world, keeper) == 154, "the first run with its steps"
        assert {str(row["run"]) for row in table(stage.store, "step")} == {open_one}
        assert len(table(stage.store, "step")) == len(early)
        self.pass_days(stage.world, keeper, 1)
        stage.work()
        assert stage.result(open_one) == ["early", 149]
        stage.check(is_pruned=True)

    def test_a_retry_keeps_results_of_dropped_days(self, stage: Stage, flaky: Flaky, keeper: PostgresKeeper) -> None:
        id = stage.start("main")
        stage.start("echo")
        stage.work()
        self.pass_days(stage.world, keeper, 40)
        stage.work()
        assert stage.end(id) == ("failed", "step_failed")
        flaky.is_broken = False
        again = stage.retry(id)
        stage.pause(again)
        self.pass_days(stage.world, keeper, 60)
        assert self.drop(stage.world, keeper) == 1, "the execution that is not a step"
        stage.resume(again)
        stage.work()
        assert stage.result(again) == ["early", 149]
