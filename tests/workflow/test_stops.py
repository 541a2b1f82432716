"""Runs that are cancelled, time out, are paused or resumed; keys, delays and replays of runs. On both databases."""

from __future__ import annotations

from typing import Any

import pytest

from rota.domain.errors import Conflict, UsageError
from rota.domain.outcome import Succeeded
from rota.domain.status import Status
from rota.domain.unique import OnConflict, Unique
from rota.ops import control
from tests.support.proving import proof
from tests.support.tables import table
from tests.support.world import NAMESPACE
from tests.workflow.stage import Fail, Stage


def ref(path: str) -> dict[str, str]:
    return {"$": path}


CHAIN = (
    {"id": "a", "job": "echo", "with": {"x": 1}},
    {"id": "b", "job": "echo", "with": {"x": ref("a")}},
)

pytestmark = pytest.mark.parametrize("store", ["sqlite", proof("postgres")], indirect=True)


def fail() -> None:
    raise Fail("boom")


@pytest.fixture(autouse=True)
def jobs(stage: Stage) -> None:
    stage.job("fail", fail)
    stage.workflow("chain", *CHAIN, result=ref("b"))


def settle(stage: Stage) -> None:
    """All chores, and no attempt."""
    while stage.chores():
        pass


# --- Cancel ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay_s", [0.0, 60.0])
def test_a_run_that_has_not_opened_is_cancelled_at_once(stage: Stage, delay_s: float) -> None:
    id = stage.start("chain", delay_s=delay_s)
    assert stage.cancel(id) == Status.CANCELLED
    stage.advance(100)
    assert stage.end(id) == ("cancelled", "cancelled")
    assert stage.executions("echo") == []
    stage.check()


def test_an_open_run_is_cancelled_when_its_steps_have_ended(stage: Stage) -> None:
    id = stage.start("chain")
    (attempt,) = stage.take()
    assert stage.cancel(id) == Status.RUNNING
    settle(stage)
    assert stage.world.execution(attempt.id).reason == "cancelled"
    assert stage.world.status(id) == Status.RUNNING
    stage.finish(attempt)
    assert stage.end(id) == ("cancelled", "cancelled")
    assert stage.letters(id) == "sc"
    stage.check()


def test_a_second_cancel_changes_nothing(stage: Stage) -> None:
    id = stage.start("chain")
    stage.take()
    assert stage.cancel(id) == stage.cancel(id) == Status.RUNNING
    stage.work()
    assert stage.cancel(id) == Status.CANCELLED


def test_the_cancel_of_one_step_cancels_that_step_only(stage: Stage) -> None:
    stage.workflow(
        "main", {"id": "a", "job": "echo"}, {"id": "b", "job": "echo"}, {"id": "c", "job": "echo", "after": ["a"]}
    )
    id = stage.start("main")
    stage.take(0)
    assert stage.take(1, jobs=["main"]) == []
    first = next(row["id"] for row in stage.executions("echo") if row["step"] == 0)
    stage.cancel(str(first))
    stage.work()
    assert stage.letters(id) == "csb"
    assert stage.end(id) == ("failed", "step_failed")
    stage.check()


def test_steps_that_always_run_do_so_after_a_cancel(stage: Stage) -> None:
    stage.workflow("main", *CHAIN, {"id": "z", "job": "echo", "after": ["b"], "rule": "always"})
    id = stage.start("main")
    held = stage.take()
    stage.cancel(id)
    settle(stage)
    stage.finish(*held)
    stage.work()
    assert stage.letters(id) == "scs"
    assert stage.end(id) == ("cancelled", "cancelled")
    stage.check()


@pytest.mark.parametrize("taken", [0, 3])
@pytest.mark.parametrize("at_once", [None, 2])
@pytest.mark.parametrize("width", [40, 1600])
def test_a_cancel_during_a_wide_map(stage: Stage, width: int, at_once: int | None, taken: int) -> None:
    step = {"id": "m", "job": "echo", "map": list(range(width)), "as": "x", "at_once": at_once}
    stage.workflow("main", step, {"id": "z", "job": "echo", "after": ["m"]})
    id = stage.start("main")
    stage.take(1, jobs=["main"])
    stage.take(taken) if taken else None
    stage.cancel(id)
    settle(stage)
    stage.work()
    assert stage.end(id) == ("cancelled", "cancelled")
    assert stage.letters(id) == "cc"
    assert stage.count("echo") <= taken
    stage.check()


def nested(stage: Stage, *leaf: dict[str, Any], **more: Any) -> None:
    """Three levels: main, middle, leaf."""
    stage.workflow("leaf", *leaf, **more)
    stage.workflow(
        "middle",
        {"id": "m", "workflow": "leaf", "map": [1, 2, 3], "as": "x"},
        {"id": "e", "job": "echo", "after": ["m"]},
    )
    stage.workflow(
        "main", {"id": "m", "workflow": "middle"}, {"id": "n", "workflow": "middle"}, {"id": "e", "job": "echo"}
    )


@pytest.mark.parametrize("depth", [0, 1])
def test_a_cancel_reaches_all_levels_and_parents_end_after_children(stage: Stage, depth: int) -> None:
    nested(stage, {"id": "w", "job": "echo", "map": list(range(700)), "as": "x"})
    id = stage.start("main")
    held = stage.take(5)
    assert {row["depth"] for row in table(stage.store, "run")} == {0, 1, 2}
    stage.cancel(id if depth == 0 else str(stage.executions("middle")[0]["id"]))
    settle(stage)
    stage.finish(*held)
    stage.work()
    if depth == 0:
        assert stage.statuses("main") == {"cancelled": 1}
        assert stage.statuses("middle") == {"cancelled": 2}
        assert set(stage.statuses("leaf")) == {"cancelled"}
    else:
        assert sorted(stage.statuses("middle").items()) == [("cancelled", 1), ("success", 1)]
        assert stage.letters(id) == "css"
    ended = {str(row["id"]): row["finished_at"] for row in table(stage.store, "finished") if row["final"]}
    for row in table(stage.store, "run_ended"):
        assert row["parent"] is None or ended[str(row["parent"])] >= ended[str(row["id"])]
    stage.check()


# --- Timeout --------------------------------------------------------------------------------------


def test_a_run_times_out(stage: Stage) -> None:
    stage.workflow("main", *CHAIN, timeout=60)
    id = stage.start("main")
    (attempt,) = stage.take()
    stage.world.clock.advance(59)
    settle(stage)
    assert stage.world.execution(id).reason != "run_timeout"
    stage.world.clock.advance(1)
    settle(stage)
    assert stage.world.execution(attempt.id).reason == "run_timeout"
    stage.finish(attempt)
    assert stage.end(id) == ("failed", "run_timeout")
    assert "60 s" in stage.error(id)
    assert [row.id for row in stage.world.dead()] == [id]
    stage.check()


def test_a_timeout_stops_sub_runs_without_a_timeout(stage: Stage) -> None:
    nested(stage, {"id": "a", "job": "echo", "delay": 1000})
    stage.workflow("outer", {"id": "m", "workflow": "main"}, timeout=60)
    id = stage.start("outer")
    stage.work()
    stage.advance(60)
    assert stage.end(id) == ("failed", "run_timeout")
    assert set(stage.statuses("leaf")) == {"cancelled"}
    assert set(stage.statuses("main")) == {"cancelled"}
    stage.check()


def test_a_failure_stops_sub_runs(stage: Stage) -> None:
    nested(stage, {"id": "a", "job": "echo", "delay": 1000})
    stage.workflow("outer", {"id": "m", "workflow": "main"}, {"id": "f", "job": "fail"}, on_failure="stop")
    id = stage.start("outer")
    stage.work()
    assert stage.end(id) == ("failed", "step_failed")
    assert stage.letters(id) == "cf"
    assert set(stage.statuses("leaf")) == {"cancelled"}
    assert stage.executions("main")[0]["status"] == "cancelled"
    stage.check()


def test_the_timeout_of_a_sub_run_fails_its_step(stage: Stage) -> None:
    stage.workflow("inner", {"id": "a", "job": "echo", "delay": 1000}, timeout=60)
    stage.workflow(
        "main",
        {"id": "i", "workflow": "inner", "may_fail": True},
        {"id": "n", "workflow": "inner", "map": [1, 2], "as": "x"},
    )
    id = stage.start("main")
    stage.work()
    stage.advance(60)
    assert stage.letters(id) == "ff"
    assert {row["reason"] for row in stage.executions("inner")} == {"run_timeout"}
    stage.check()


def test_a_start_deadline_does_not_end_an_open_run(stage: Stage) -> None:
    stage.workflow("main", {"id": "a", "job": "echo", "delay": 100}, start_within_s=30)
    id = stage.start("main", start_within_s=30.0)
    stage.work()
    assert stage.world.status(id) == Status.RUNNING
    stage.advance(40)
    assert stage.world.status(id) == Status.RUNNING
    stage.advance(100)
    assert stage.end(id) == ("success", "completed")
    stage.check()


def test_a_run_that_missed_its_start_deadline_is_skipped(stage: Stage) -> None:
    stage.workflow("outer", {"id": "a", "workflow": "main"}, {"id": "b", "job": "echo", "after": ["a"]})
    stage.workflow("main", *CHAIN, start_within_s=30)
    id = stage.start("outer")
    stage.open()
    stage.advance(40)
    assert stage.letters(id) == "kk"
    assert stage.end(id) == ("success", "completed")
    stage.check()


# --- Pause ----------------------------------------------------------------------------------------


def test_a_paused_run_starts_nothing_and_records_ends(stage: Stage) -> None:
    id = stage.start("chain")
    (attempt,) = stage.take()
    assert stage.pause(id)
    assert not stage.pause(id)
    stage.finish(attempt)
    stage.work()
    assert stage.letters(id) == "so"
    assert stage.count("echo") == 1
    assert stage.resume(id)
    assert not stage.resume(id)
    stage.work()
    assert stage.result(id) == 1
    stage.check()


def test_a_pause_holds_sub_runs_too(stage: Stage) -> None:
    nested(stage, {"id": "a", "job": "echo"}, {"id": "b", "job": "echo", "after": ["a"]})
    id = stage.start("main")
    stage.open(2)
    stage.pause(id)
    stage.work()
    assert stage.started == []
    assert {row["depth"] for row in table(stage.store, "run")} == {0, 1}
    other = stage.start("main")
    stage.work()
    assert stage.end(other) == ("success", "completed")
    stage.resume(id)
    stage.work()
    assert stage.end(id) == ("success", "completed")
    stage.check()


def test_the_deadline_moves_by_the_length_of_the_pause(stage: Stage) -> None:
    stage.workflow("inner", {"id": "a", "job": "echo", "delay": 90}, timeout=100)
    stage.workflow("main", {"id": "i", "workflow": "inner"}, timeout=200)
    id = stage.start("main")
    stage.work()
    stage.advance(50)
    stage.pause(id)
    stage.advance(500)
    assert stage.world.status(id) == Status.RUNNING
    assert stage.started == []
    stage.resume(id)
    stage.work()
    assert stage.end(id) == ("success", "completed")
    later = stage.start("main")
    stage.work()
    stage.pause(later)
    stage.advance(500)
    stage.store.transact(control.cancel, NAMESPACE, str(stage.executions("echo")[-1]["id"]), "test")
    assert stage.end(later) == ("failed", "step_failed")
    stage.check()


def test_a_resumed_run_still_times_out(stage: Stage) -> None:
    stage.workflow("inner", {"id": "a", "job": "echo", "delay": 1000}, timeout=100)
    stage.workflow("main", {"id": "i", "workflow": "inner"})
    id = stage.start("main")
    stage.work()
    stage.pause(id)
    stage.advance(500)
    stage.resume(id)
    stage.advance(99)
    assert stage.world.status(id) == Status.RUNNING
    stage.advance(1)
    assert stage.end(id) == ("failed", "step_failed")
    assert stage.executions("inner")[0]["reason"] == "run_timeout"
    stage.check()


def test_a_paused_run_can_be_cancelled(stage: Stage) -> None:
    nested(stage, {"id": "a", "job": "echo"})
    id = stage.start("main")
    stage.open(2)
    stage.pause(id)
    stage.work()
    stage.cancel(id)
    stage.work()
    assert stage.end(id) == ("cancelled", "cancelled")
    stage.check()


def test_only_open_runs_are_paused(stage: Stage) -> None:
    queued = stage.start("chain")
    with pytest.raises(Conflict, match="is not open yet: no worker has opened it"):
        stage.pause(queued)
    stage.work()
    with pytest.raises(Conflict, match="success"):
        stage.pause(queued)


# --- What holds for every execution ---------------------------------------------------------------


def test_a_key_names_one_run(stage: Stage) -> None:
    first, second = stage.start("chain", key="k"), stage.start("chain", key="k")
    stage.work()
    assert first == second == stage.start("chain", key="k")
    assert stage.count("echo") == 2


def test_a_unique_run_is_open_until_its_end(stage: Stage) -> None:
    unique = Unique(key="u", on_conflict=OnConflict.RETURN)
    first = stage.start("chain", unique=unique)
    stage.take()
    assert stage.start("chain", unique=unique) == first
    stage.work()
    assert stage.start("chain", unique=unique) != first


@pytest.mark.parametrize("is_open", [True, False])
def test_a_unique_run_is_replaced(stage: Stage, is_open: bool) -> None:
    unique = Unique(key="u", on_conflict=OnConflict.REPLACE)
    first = stage.start("chain", unique=unique)
    if is_open:
        stage.take()
    second = stage.start("chain", unique=unique)
    stage.work()
    assert stage.end(first) == ("cancelled", "replaced")
    assert stage.result(second) == 1
    stage.check()


def test_an_open_run_is_not_debounced(stage: Stage) -> None:
    unique = Unique(key="u", on_conflict=OnConflict.DEBOUNCE)
    first = stage.start("chain", unique=unique)
    stage.take()
    second = stage.start("chain", unique=unique, delay_s=10.0)
    stage.work()
    assert stage.result(first) == 1
    stage.advance(10)
    assert stage.result(second) == 1
    stage.check()


def test_tags_and_delays_are_the_runs_own(stage: Stage) -> None:
    id = stage.start("chain", tags='["nightly"]', delay_s=60.0)
    stage.work()
    assert stage.world.status(id) == Status.SCHEDULED
    stage.advance(60)
    assert stage.result(id) == 1
    assert [row["tags"] for row in stage.executions("chain")] == ['["nightly"]']
    assert [row["tags"] for row in stage.executions("echo")] == [None, None]


def test_a_step_of_a_run_is_not_replayed_alone(stage: Stage) -> None:
    stage.workflow("main", {"id": "i", "workflow": "chain"})
    run, nested_run = stage.start("chain"), stage.start("main")
    stage.work()
    for row in stage.executions("echo"):
        with pytest.raises(UsageError) as refused:
            stage.store.transact(control.repeat, NAMESPACE, str(row["id"]), stage.world.ids.new(), "test")
        name = "ab"[row["step"]]
        command = f"rota run retry {run} --from {name}`" if str(row["run"]) == run else f"rota run retry {nested_run}`"
        assert command in str(refused.value)


def test_the_replay_of_a_dead_run_is_its_retry(stage: Stage) -> None:
    is_broken = [True]

    def flaky() -> str:
        if is_broken[0]:
            raise Fail("not yet")
        return "now"

    stage.job("flaky", flaky)
    stage.workflow("main", *CHAIN, {"id": "f", "job": "flaky", "after": ["b"]}, result=ref("f"))
    runs = [stage.start("main"), stage.start("main")]
    stage.work()
    is_broken[0] = False
    successors = {id: stage.world.ids.new() for id in runs}
    assert sorted(stage.store.transact(control.replay, NAMESPACE, successors, "test")) == sorted(successors.values())
    again = stage.store.transact(control.repeat, NAMESPACE, runs[0], stage.world.ids.new(), "test")
    stage.work()
    assert [stage.result(id) for id in (*successors.values(), again)] == ["now"] * 3
    assert stage.count("echo") == 4
    assert stage.world.dead() == []
    stage.check()


def test_a_run_that_never_opened_is_replayed_as_it_was(stage: Stage) -> None:
    stage.workflow("main", {"id": "a", "job": "later"})
    id = stage.start("main")
    stage.work()
    assert stage.end(id) == ("failed", "bad_arguments")
    stage.job("later", lambda: 1)
    (again,) = stage.store.transact(control.replay, NAMESPACE, {id: stage.world.ids.new()}, "test")
    stage.work()
    assert stage.end(again) == ("success", "completed")
    stage.check()


def test_a_stale_attempt_changes_no_letters(stage: Stage) -> None:
    id = stage.start("chain")
    (attempt,) = stage.take()
    stage.finish(attempt)
    assert stage.report((attempt, Succeeded('"late"'))) == [attempt.id]
    assert stage.letters(id) == "so"
    stage.work()
    assert stage.result(id) == 1
