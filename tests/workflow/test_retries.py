"""Retries of runs on both databases: what is kept, what runs again, and what the new run sees."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rota.domain.errors import ArgumentsError, Conflict, UnknownExecution, UsageError
from tests.support.proving import proof
from tests.support.tables import table
from tests.workflow.stage import Fail, Stage

pytestmark = pytest.mark.parametrize("store", ["sqlite", proof("postgres")], indirect=True)


def ref(path: str) -> dict[str, str]:
    return {"$": path}


class Broken:
    """A job that fails for some of its arguments, which the test changes."""

    def __init__(self, *xs: Any) -> None:
        self.xs = set(xs)

    def __call__(self, x: Any = None, **_: Any) -> Any:
        if x in self.xs:
            raise Fail(f"{x} is broken")
        return x


@pytest.fixture
def broken(stage: Stage) -> Broken:
    broken = Broken()
    stage.job("part", broken)
    stage.job("total", lambda parts: [len(parts), parts == sorted(parts)])
    return broken


CHAIN = (
    {"id": "a", "job": "echo", "with": {"x": 1}},
    {"id": "b", "job": "part", "with": {"x": ref("a")}},
    {"id": "c", "job": "echo", "with": {"x": ref("b")}},
    {"id": "d", "job": "echo", "with": {"x": ref("a")}},
)


def ran(stage: Stage) -> list[str]:
    """The attempts since the last call."""
    jobs = [job for job, _ in stage.started]
    stage.started.clear()
    return jobs


def test_failed_and_blocked_steps_run_again(stage: Stage, broken: Broken) -> None:
    stage.workflow("main", *CHAIN, result=[ref("c"), ref("d")])
    broken.xs = {1}
    first = stage.start("main")
    stage.work()
    assert stage.letters(first) == "sfbs"
    assert [row.id for row in stage.world.dead()] == [first]
    ran(stage)
    broken.xs = set()
    second = stage.retry(first)
    assert stage.world.dead() == []
    stage.work()
    assert ran(stage) == ["part", "echo"]
    assert (stage.letters(second), stage.result(second)) == ("SssS", [1, 1])
    assert stage.world.execution(second).replay_of == first
    stage.check()


def test_a_retry_from_a_step_keeps_failures_elsewhere(stage: Stage, broken: Broken) -> None:
    stage.workflow("main", *CHAIN)
    broken.xs = {1}
    first = stage.start("main")
    stage.work()
    ran(stage)
    second = stage.retry(first, "d")
    stage.work()
    assert ran(stage) == ["echo"]
    assert stage.letters(second) == "SFBs"
    assert stage.end(second) == ("failed", "step_failed")
    assert "step b failed: Fail: 1 is broken" in stage.error(second)
    stage.check()


def test_a_retry_from_the_start_takes_new_arguments(stage: Stage, broken: Broken) -> None:
    step = {"id": "a", "job": "echo", "with": {"x": ref("input.x")}}
    stage.workflow("main", step, parameters={"x": {"type": "integer"}}, required=["x"], result=ref("a"))
    first = stage.start("main", {"x": 1})
    stage.work()
    for wrong in ('{"x":"2"}', '{"y":2}', "{}"):
        with pytest.raises(ArgumentsError):
            stage.retry(first, "start", arguments=wrong)
    second = stage.retry(first, "start", arguments='{"x":2}')
    stage.work()
    assert (stage.result(first), stage.result(second)) == (1, 2)


def test_a_retry_gives_a_step_other_arguments(stage: Stage, broken: Broken) -> None:
    stage.workflow("main", {"id": "a", "job": "part", "with": {"x": 7}}, result=ref("a"))
    broken.xs = {7}
    first = stage.start("main")
    stage.work()
    second = stage.retry(first, step_arguments={"a": {"x": 8}})
    stage.work()
    assert stage.result(second) == 8


@pytest.mark.parametrize("at_once", [None, 40])
def test_case_19_only_the_items_without_success_run_again_twice(
    stage: Stage, broken: Broken, at_once: int | None
) -> None:
    """Three of a thousand fail, then one of the three, then none: the reduce sees all in the order of the list."""
    stage.workflow(
        "main",
        {"id": "m", "job": "part", "map": list(range(1000)), "as": "x", "at_once": at_once},
        {"id": "t", "job": "total", "with": {"parts": ref("m")}},
        result=ref("t"),
    )
    broken.xs = {3, 555, 999}
    first = stage.start("main")
    work_with_failures_last(stage, broken)
    assert stage.statuses("part") == {"success": 997, "failed": 3}
    assert stage.letters(first) == "fb"
    ran(stage)
    broken.xs = {555}
    second = stage.retry(first)
    work_with_failures_last(stage, broken)
    assert ran(stage) == ["part"] * 3
    assert stage.letters(second) == "fb"
    broken.xs = set()
    third = stage.retry(second)
    stage.work()
    assert ran(stage) == ["part", "total"]
    assert stage.result(third) == [1000, True]
    assert stage.most_at_once["part"] <= (at_once or 1000)
    stage.check()


def work_with_failures_last(stage: Stage, broken: Broken) -> None:
    """No item is cancelled because another failed."""
    while True:
        stage.take(200)
        good = [one for one in stage.held if msgspec.json.decode(one.arguments).get("x") not in broken.xs]
        if good:
            stage.finish(*good)
        elif not stage.chores():
            break
    stage.finish(*stage.held)
    stage.work()


def test_a_map_whose_items_all_succeeded_is_not_run_again(stage: Stage, broken: Broken) -> None:
    stage.workflow(
        "main",
        {"id": "m", "job": "part", "map": [1, 2, 3], "as": "x"},
        {"id": "b", "job": "part", "with": {"x": "b"}, "after": ["m"]},
        {"id": "t", "job": "total", "with": {"parts": ref("m")}, "after": ["b"]},
        result=[ref("t"), ref("m")],
    )
    broken.xs = {"b"}
    first = stage.start("main")
    stage.work()
    broken.xs = set()
    ran(stage)
    second = stage.retry(first)
    stage.work()
    assert ran(stage) == ["part", "total"]
    assert stage.result(second) == [[3, True], [1, 2, 3]]
    stage.check()


def test_a_cancelled_map_is_finished_by_a_retry(stage: Stage, broken: Broken) -> None:
    stage.workflow("main", {"id": "m", "job": "part", "map": list(range(1200)), "as": "x"}, result=ref("m"))
    first = stage.start("main")
    stage.take(1, jobs=["main"])
    stage.finish(*stage.take(120))
    stage.cancel(first)
    stage.work()
    assert stage.letters(first) == "c"
    done = stage.statuses("part")["success"]
    ran(stage)
    second = stage.retry(first)
    stage.work()
    assert len(ran(stage)) == 1200 - done
    assert stage.result(second) == list(range(1200))
    stage.check()


def test_a_map_of_sub_workflows_is_retried_by_item(stage: Stage, broken: Broken) -> None:
    stage.workflow(
        "inner",
        {"id": "a", "job": "echo", "with": {"x": ref("input.x")}},
        {"id": "b", "job": "part", "with": {"x": ref("a")}},
        result=ref("b"),
    )
    stage.workflow("main", {"id": "m", "workflow": "inner", "map": [1, 2, 3], "as": "x"}, result=ref("m"))
    broken.xs = {2}
    first = stage.start("main")
    stage.take(1, jobs=["main"])
    for one in ("echo", "part"):
        for attempt in stage.take():
            assert attempt.job == one
            stage.finish(attempt) if '"x":2' not in attempt.arguments or one == "echo" else None
    stage.work()
    assert stage.statuses("inner") == {"success": 2, "failed": 1}
    broken.xs = set()
    ran(stage)
    second = stage.retry(first)
    stage.work()
    assert ran(stage) == ["part"]
    assert stage.result(second) == [1, 2, 3]
    stage.check()


def test_what_is_not_retried(stage: Stage, broken: Broken) -> None:
    stage.workflow("inner", {"id": "a", "job": "part", "with": {"x": 1}})
    stage.workflow("main", {"id": "i", "workflow": "inner"})
    broken.xs = {1}
    plain, run = stage.start("echo"), stage.start("main")
    with pytest.raises(Conflict, match="queued"):
        stage.retry(run)
    stage.work()
    with pytest.raises(UnknownExecution, match="not a run"):
        stage.retry(plain)
    with pytest.raises(UsageError, match=f"step of run {run}"):
        stage.retry(str(stage.executions("inner")[0]["id"]))
    with pytest.raises(UsageError, match="no step 'x'"):
        stage.retry(run, "x")


def test_a_retry_that_has_nothing_to_do_ends_at_once(stage: Stage, broken: Broken) -> None:
    """A run that timed out after its last step has only its result left to make."""
    stage.workflow("main", {"id": "a", "job": "echo", "with": {"x": {}}}, result=ref("a.nothing"))
    first = stage.start("main")
    stage.work()
    assert stage.end(first) == ("failed", "bad_result")
    second = stage.retry(first, "a")
    stage.work()
    assert stage.end(second) == ("failed", "bad_result")


def test_a_retry_opens_with_a_timeout_of_its_own(stage: Stage, broken: Broken) -> None:
    stage.workflow("main", {"id": "a", "job": "echo", "delay": 100}, timeout=60)
    first = stage.start("main")
    stage.work()
    stage.advance(60)
    assert stage.end(first) == ("failed", "run_timeout")
    second = stage.retry(first)
    stage.work()
    (row,) = table(stage.store, "run")
    assert row["deadline"] == stage.world.clock.now() + 60_000_000
    stage.advance(60)
    assert stage.end(second) == ("failed", "run_timeout")
    stage.check()


def test_the_latest_version_runs_what_it_changed(stage: Stage, broken: Broken) -> None:
    stage.workflow("main", *CHAIN, result=ref("c"))
    broken.xs = {1}
    first = stage.start("main")
    stage.work()
    ran(stage)
    stage.workflow("main", CHAIN[0], {**CHAIN[1], "with": {"x": 5}}, CHAIN[2], CHAIN[3], result={"new": ref("c")})
    second = stage.retry(first, latest=True)
    third = stage.retry(first)
    stage.work()
    assert stage.result(second) == {"new": 5}
    assert stage.end(third) == ("failed", "step_failed")
    stage.check()
