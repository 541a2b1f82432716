"""Undoing runs, on both databases: which steps are undone, in which order, and what a retry does."""

from __future__ import annotations

from typing import Any

import pytest

from rota.domain.errors import Conflict, UsageError
from rota.ops import control, fleet
from rota.ops.runs import expand, start
from tests.support.proving import proof
from tests.support.tables import table
from tests.support.world import NAMESPACE
from tests.workflow.stage import Fail, Stage, one_success

pytestmark = pytest.mark.parametrize("store", ["sqlite", proof("postgres")], indirect=True)

TAKES = {"x": {"first": True}}
"""The parameters of a job that can undo a step."""


def ref(path: str) -> dict[str, str]:
    return {"$": path}


class Undos:
    """The undos that ran: what each was called with. Those in `broken` fail."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.broken: set[Any] = set()

    def __call__(self, x: Any) -> None:
        if x in self.broken:
            raise Fail(f"cannot undo {x}")
        self.done.append(x)


def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The expander has work to do for a map of a few items."""
    monkeypatch.setattr(start, "AT_FIRST", 10)
    monkeypatch.setattr(expand, "CHUNK", 10)


def fail(**_: Any) -> None:
    raise Fail("boom")


@pytest.fixture
def undos(stage: Stage) -> Undos:
    undos = Undos()
    stage.job("undo", undos, parameters=TAKES)
    stage.job("fail", fail)
    return undos


def test_succeeded_steps_are_undone_in_reverse_order(stage: Stage, undos: Undos) -> None:
    stage.workflow(
        "main",
        {"id": "a", "job": "echo", "with": {"x": "a"}, "undo": "undo"},
        {"id": "b", "job": "echo", "after": ["a"]},
        {"id": "c", "job": "echo", "with": {"x": "c"}, "after": ["b"], "undo": "undo"},
        {"id": "d", "job": "fail", "after": ["c"], "undo": "undo"},
    )
    id = stage.start("main")
    stage.work()
    assert undos.done == ["c", "a"]
    assert stage.end(id) == ("failed", "step_failed")
    stage.check()


def step(id: str, job: str = "echo", *after: str, **more: Any) -> dict[str, Any]:
    """A step whose result is its name, and which `undo` undoes."""
    given = {} if job == "fail" else {"with": {"x": id}}
    return {"id": id, "job": job, **given, "after": list(after), "undo": "undo", **more}


def settle(stage: Stage) -> None:
    """All chores, and no attempt."""
    while stage.chores():
        pass


def undo_run(stage: Stage, run: str) -> str:
    """The run that undoes a run."""
    found = [row["undo"] for name in ("run", "run_ended") for row in table(stage.store, name) if str(row["id"]) == run]
    assert found != [None], "the run is not undone"
    return str(found[0])


# --- When ------------------------------------------------------------------------------------------


def test_a_run_that_succeeds_is_not_undone(stage: Stage, undos: Undos) -> None:
    stage.workflow("main", step("a"), step("b", "fail", "a", may_fail=True))
    id = stage.start("main")
    stage.work()
    assert stage.end(id) == ("success", "completed")
    assert undos.done == []
    stage.check()


@pytest.mark.parametrize(("undo_on", "undone"), [(["failed"], ["a"]), (["cancelled"], []), ([], [])])
def test_only_the_ends_in_undo_on_are_undone(stage: Stage, undos: Undos, undo_on: list[str], undone: list[str]) -> None:
    stage.workflow("main", step("a"), step("b", "fail", "a"), undo_on=undo_on)
    id = stage.start("main")
    stage.work()
    assert stage.end(id) == ("failed", "step_failed")
    assert undos.done == undone
    stage.check()


def test_a_run_without_anything_to_undo_ends_at_once(stage: Stage, undos: Undos) -> None:
    stage.workflow("main", step("a", "fail"), step("b", "echo", "a"))
    id = stage.start("main")
    stage.work()
    assert stage.end(id) == ("failed", "step_failed")
    assert stage.statuses("main") == {"failed": 1}, "there is no run that undoes it"


def test_undos_wait_until_every_running_step_has_ended(stage: Stage, undos: Undos) -> None:
    stage.workflow("main", step("a"), step("b", "fail"), {"id": "slow", "job": "slow"})
    stage.job("slow", one_success)
    id = stage.start("main")
    held = {attempt.job: attempt for attempt in stage.take()}
    stage.finish(held["echo"], held["fail"])
    assert stage.take() == []
    stage.finish(held["slow"])
    assert stage.world.status(id) == "running"
    stage.work()
    assert undos.done == ["a"]
    assert stage.end(id) == ("failed", "step_failed")


def test_a_timeout_undoes_a_run_and_does_not_bound_its_undos(stage: Stage, undos: Undos) -> None:
    stage.workflow("main", step("a"), {"id": "late", "job": "echo", "after": ["a"], "delay": 100.0}, timeout=10.0)
    id = stage.start("main")
    stage.work()
    stage.world.clock.advance(11)
    settle(stage)
    (undo,) = stage.take()
    stage.world.clock.advance(1000)
    settle(stage)
    stage.finish(undo)
    assert undos.done == ["a"]
    assert stage.end(id) == ("failed", "run_timeout")
    stage.check()


# --- Which, and in which order ----------------------------------------------------------------------


def test_unrelated_undos_run_side_by_side(stage: Stage, undos: Undos) -> None:
    stage.workflow("main", step("a"), step("b"), step("c", "echo", "a", "b"), step("z", "fail", "c"))
    stage.start("main")
    while not (held := [one for one in stage.take() if one.job == "undo"]):
        stage.finish(*stage.held)
    assert [one.arguments for one in held] == ['{"x":"c"}']
    stage.finish(*held)
    assert sorted(one.arguments for one in stage.take()) == ['{"x":"a"}', '{"x":"b"}']


def test_an_undo_waits_for_those_behind_steps_that_are_not_undone(stage: Stage, undos: Undos) -> None:
    """Step b is skipped and could have been undone; c ran nevertheless, and is undone before a."""
    stage.workflow(
        "main",
        step("a"),
        step("b", "echo", "a", when=[{"failed": "a"}]),
        step("c", "echo", "b", rule="all_done"),
        step("z", "fail", "c"),
    )
    id = stage.start("main")
    stage.work()
    assert stage.letters(id) == "sksf"
    assert undos.done == ["c", "a"]


@pytest.mark.parametrize("fails", [True, False])
def test_a_failed_step_is_undone_with_none_if_it_says_so(stage: Stage, undos: Undos, fails: bool) -> None:
    stage.workflow("main", step("a"), step("b", "fail", "a", undo_failed=fails))
    stage.start("main")
    stage.work()
    assert undos.done == ([None, "a"] if fails else ["a"])


@pytest.mark.parametrize("started", [True, False])
def test_case_17_a_step_that_never_started_is_not_undone(stage: Stage, undos: Undos, started: bool) -> None:
    """A cancelled step with `undo_failed` is undone only if an attempt of it had started."""
    stage.job("again", fail, attempts=3, delay_s=60.0)
    stage.workflow("main", step("a"), step("b", "again", undo_failed=True), step("c", "fail", "b", undo_failed=True))
    id = stage.start("main")
    stage.take(0)
    stage.take(1, jobs=["main"])
    if started:
        stage.finish(*stage.take(jobs=["again"]))
    stage.finish(*stage.take(jobs=["echo"]))
    stage.cancel(id)
    settle(stage)
    stage.work()
    assert stage.end(id) == ("cancelled", "cancelled")
    assert sorted(undos.done, key=str) == ([None, "a"] if started else ["a"])
    stage.check()


def test_a_step_whose_arguments_could_not_be_made_is_not_undone(stage: Stage, undos: Undos) -> None:
    stage.workflow("main", {**step("a"), "with": {"x": ref("run.nothing")}, "undo_failed": True})
    id = stage.start("main")
    stage.work()
    assert stage.end(id) == ("failed", "step_failed")
    assert undos.done == []


@pytest.mark.parametrize("at_once", [None, 3])
@pytest.mark.parametrize("undo_failed", [False, True])
def test_each_item_of_a_map_is_undone(
    stage: Stage, undos: Undos, undo_failed: bool, at_once: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The expander places the undos, too. Items that failed are undone only if the step says so."""
    small_chunks(monkeypatch)
    stage.job("odd", lambda x: x if x % 2 else fail(), parameters=TAKES)
    stage.workflow(
        "main",
        step("a"),
        {
            "id": "m",
            "job": "odd",
            "map": list(range(45)),
            "as": "x",
            "after": ["a"],
            "tolerate": 30,
            "undo": "undo",
            "undo_failed": undo_failed,
            "at_once": at_once,
        },
        step("z", "fail", "m"),
    )
    id = stage.start("main")
    stage.work()
    assert stage.end(id) == ("failed", "step_failed")
    assert undos.done[-1] == "a"
    numbers = [x for x in undos.done[:-1] if x is not None]
    assert sorted(numbers) == list(range(1, 45, 2))
    assert undos.done.count(None) == (23 if undo_failed else 0)
    if at_once:
        assert stage.most_at_once["undo"] == 3
    undone = [row["map_index"] for row in stage.executions("undo") if row["map_index"] is not None]
    assert sorted(undone) == (list(range(45)) if undo_failed else list(range(1, 45, 2)))
    stage.check()


def test_the_items_of_a_failed_map_that_succeeded_are_undone(stage: Stage, undos: Undos) -> None:
    stage.job("odd", lambda x: x if x % 2 else fail(), parameters=TAKES)
    stage.workflow("main", {"id": "m", "job": "odd", "map": [1, 2, 3], "as": "x", "undo": "undo"})
    id = stage.start("main")
    stage.finish(*stage.take())
    stage.work()
    assert stage.end(id) == ("failed", "step_failed")
    assert sorted(undos.done) == [1, 3]
    stage.check()


def test_an_empty_map_and_one_that_never_started_have_nothing_to_undo(stage: Stage, undos: Undos) -> None:
    never = {"id": "n", "job": "echo", "map": [1], "as": "x", "after": ["z"], "undo": "undo"}
    empty = {"id": "e", "job": "echo", "map": [], "as": "x", "undo": "undo"}
    stage.workflow("main", empty, step("z", "fail"), never)
    id = stage.start("main")
    stage.work()
    assert (stage.letters(id), stage.end(id)) == ("sfb", ("failed", "step_failed"))
    assert undos.done == []


# --- Sub-workflows ----------------------------------------------------------------------------------


def test_a_succeeded_sub_run_is_undone_by_its_own_undo_steps(stage: Stage, undos: Undos) -> None:
    stage.workflow("leaf", step("p"), step("q", "echo", "p"), result=ref("q"), undo_on=[])
    stage.workflow("middle", {"id": "l", "workflow": "leaf"}, step("m", "echo", "l"))
    stage.workflow("main", step("a"), {"id": "s", "workflow": "middle", "after": ["a"]}, step("z", "fail", "s"))
    id = stage.start("main")
    stage.work()
    assert undos.done == ["m", "q", "p", "a"]
    assert stage.end(id) == ("failed", "step_failed")
    stage.check()


def test_a_map_of_sub_runs_is_undone(stage: Stage, undos: Undos) -> None:
    leaf = {"id": "p", "job": "echo", "with": {"x": ref("input.x")}, "undo": "undo"}
    stage.workflow("leaf", leaf, parameters={"x": {}}, required=["x"])
    stage.workflow(
        "main", {"id": "s", "workflow": "leaf", "map": [1, 2, 3], "as": "x"}, step("z", "fail", "s"), step("a")
    )
    id = stage.start("main")
    stage.work()
    assert sorted(undos.done, key=str) == [1, 2, 3, "a"]
    assert stage.end(id) == ("failed", "step_failed")
    stage.check()


def test_a_failed_sub_run_undoes_itself_once(stage: Stage, undos: Undos) -> None:
    stage.workflow("leaf", step("p"), step("q", "fail", "p"))
    stage.workflow("main", step("a"), {"id": "s", "workflow": "leaf", "after": ["a"]})
    id = stage.start("main")
    stage.work()
    assert undos.done == ["p", "a"]
    assert stage.end(id) == ("failed", "step_failed")
    stage.check()


def test_a_sub_run_without_undo_steps_is_not_opened_again(stage: Stage, undos: Undos) -> None:
    stage.workflow("leaf", {"id": "p", "job": "echo"})
    stage.workflow("main", step("a"), {"id": "s", "workflow": "leaf", "after": ["a"]}, step("z", "fail", "s"))
    stage.start("main")
    stage.work()
    assert undos.done == ["a"]
    assert stage.statuses("leaf") == {"success": 1}


# --- Cancel, pause ----------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["cancel", "success"])
def test_case_14_a_cancel_races_with_the_last_success(stage: Stage, undos: Undos, first: str) -> None:
    """Whichever commits first decides; the run is undone only if it was cancelled."""
    stage.workflow("main", step("a"))
    id = stage.start("main")
    held = stage.take()
    if first == "success":
        stage.finish(*held)
        assert stage.cancel(id) == "success"
    else:
        stage.cancel(id)
        stage.finish(*held)
    stage.work()
    assert stage.end(id)[0] == ("cancelled" if first == "cancel" else "success")
    assert undos.done == (["a"] if first == "cancel" else [])
    stage.check()


def test_a_second_cancel_during_the_undo_is_refused(stage: Stage, undos: Undos) -> None:
    stage.workflow("main", step("a"), step("b", "fail", "a"))
    id = stage.start("main")
    stage.finish(*stage.take())
    stage.finish(*stage.take())
    for _ in range(2):
        for one in (id, undo_run(stage, id)):
            with pytest.raises(Conflict, match="is undoing, which cannot be cancelled: `rota run pause"):
                stage.cancel(one)
        stage.open()
    stage.work()
    assert undos.done == ["a"]
    assert stage.end(id) == ("failed", "step_failed")


def test_one_undo_can_be_cancelled_and_counts_as_failed(stage: Stage, undos: Undos) -> None:
    stage.workflow("main", step("a"), step("b", "echo", "a"), step("z", "fail", "b"))
    id = stage.start("main")
    while not stage.executions("undo"):
        stage.finish(*stage.take(jobs=["main", "echo", "fail"]))
    stage.cancel(str(stage.executions("undo")[0]["id"]))
    stage.work()
    assert undos.done == ["a"]
    assert stage.end(id) == ("failed", "undo_failed")
    stage.check()


def test_a_pause_holds_undos(stage: Stage, undos: Undos) -> None:
    stage.workflow("main", step("a"), step("b", "fail", "a"))
    id = stage.start("main")
    stage.finish(*stage.take())
    held = stage.take()
    stage.pause(id)
    stage.finish(*held)
    stage.work()
    assert undos.done == []
    assert stage.world.status(id) == "running"
    stage.resume(id)
    stage.work()
    assert undos.done == ["a"]
    assert stage.end(id) == ("failed", "step_failed")
    stage.check()


def test_a_stop_from_above_does_not_stop_an_undo(stage: Stage, undos: Undos) -> None:
    """The sub-run is undoing when its parent is cancelled: its undos run to their end, and the parent waits."""
    stage.workflow("leaf", step("p"), step("q", "fail", "p"))
    stage.workflow("main", step("a"), {"id": "s", "workflow": "leaf", "after": ["a"]})
    id = stage.start("main")
    while not stage.executions("undo"):
        stage.finish(*stage.take(jobs=["main", "leaf", "echo", "fail"]))
    stage.cancel(id)
    settle(stage)
    assert undos.done == []
    stage.work()
    assert undos.done == ["p", "a"]
    assert stage.end(id) == ("cancelled", "cancelled")
    stage.check()


def test_case_15_a_cancel_while_a_deep_sub_run_expands_a_map_undoes_all_levels(
    stage: Stage, undos: Undos, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_chunks(monkeypatch)
    wide = {"id": "m", "job": "echo", "map": list(range(45)), "as": "x", "undo": "undo", "after": ["c2"]}
    stage.workflow("level2", step("c2"), wide)
    stage.workflow("level1", step("c1"), {"id": "s", "workflow": "level2", "after": ["c1"]})
    stage.workflow("main", step("c0"), {"id": "s", "workflow": "level1", "after": ["c0"]})
    id = stage.start("main")
    for _ in range(3):
        stage.finish(*stage.take())
    stage.finish(*stage.take(4))
    stage.cancel(id)
    settle(stage)
    stage.work()
    assert stage.end(id) == ("cancelled", "cancelled")
    assert sorted(undos.done[:4]) == [0, 1, 2, 3]
    assert undos.done[4:] == ["c2", "c1", "c0"]
    assert stage.statuses("level2") == stage.statuses("level1") == {"cancelled": 1, "success": 1}
    stage.check()


# --- Failures and retries ---------------------------------------------------------------------------


SAGA = (step("a"), step("b", "echo", "a"), step("c", "echo", "b"), step("other"), step("z", "fail", "c", "other"))


def test_case_16_a_dead_worker_and_an_undo_that_fails_for_good(stage: Stage, undos: Undos) -> None:
    """The undo of the dead worker runs again, the others run, and a retry runs the failed undo only."""
    stage.workflow("main", *SAGA)
    undos.broken = {"b"}
    id = stage.start("main")
    while not (held := [one for one in stage.take() if one.job == "undo"]):
        stage.finish(*stage.held)
    assert {one.arguments for one in held} == {'{"x":"c"}', '{"x":"other"}'}
    stage.store.transact(lambda tx: fleet.declare_dead(tx, stage.worker, "killed"))
    stage.held.clear()
    stage._worker = None
    stage.work()
    assert undos.done == ["c", "other", "a"] or undos.done == ["other", "c", "a"]
    assert stage.end(id) == ("failed", "undo_failed")
    assert "step z failed: Fail: boom" in stage.error(id)
    assert "step b failed: Fail: cannot undo b" in stage.error(id)
    assert stage.letters(undo_run(stage, id)) == "sfssK"
    undos.broken, undos.done = set(), []
    stage.started.clear()
    again = stage.retry(id)
    stage.work()
    assert stage.started == [("undo", {"x": "b"})]
    assert stage.letters(undo_run(stage, again)) == "SsSSK"
    assert stage.end(again) == ("failed", "step_failed")
    stage.check()


def test_an_undo_is_retried_as_its_job_says(stage: Stage, undos: Undos) -> None:
    calls = []

    def flaky(x: Any) -> None:
        calls.append(x)
        if len(calls) < 3:
            raise Fail("not yet")

    stage.job("flaky", flaky, attempts=3, parameters=TAKES)
    stage.workflow("main", step("a", undo="flaky"), step("z", "fail", "a"))
    id = stage.start("main")
    for _ in range(4):
        stage.advance(10)
    assert calls == ["a", "a", "a"]
    assert stage.end(id) == ("failed", "step_failed")


def test_a_failed_undo_below_is_retried_alone(stage: Stage, undos: Undos) -> None:
    """Of a map of sub-runs, one undo in one of them fails."""
    given = {"id": "p", "job": "echo", "with": {"x": ref("input.x")}, "undo": "undo"}
    stage.workflow("leaf", given, step("q", "echo", "p"), parameters={"x": {}}, required=["x"])
    stage.workflow("main", {"id": "s", "workflow": "leaf", "map": [1, 2, 3], "as": "x"}, step("z", "fail", "s"))
    undos.broken = {2}
    id = stage.start("main")
    stage.work()
    assert stage.end(id) == ("failed", "undo_failed")
    assert sorted(undos.done, key=str) == [1, 3, "q", "q", "q"]
    for broken, ran in (({2}, 1), (set(), 1)):
        undos.broken = broken
        stage.started.clear()
        id = stage.retry(id)
        stage.work()
        assert stage.started == [("undo", {"x": 2})] * ran
    assert stage.end(id) == ("failed", "step_failed")
    stage.check()


def test_the_failed_undos_of_a_map_are_retried_alone(
    stage: Stage, undos: Undos, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One failed undo of a map does not stop the others."""
    small_chunks(monkeypatch)
    wide = {"id": "m", "job": "echo", "map": list(range(45)), "as": "x", "undo": "undo", "at_once": 7}
    stage.workflow("main", wide, step("z", "fail", "m"))
    undos.broken = {0, 40}
    id = stage.start("main")
    stage.work()
    assert sorted(undos.done) == [x for x in range(45) if x not in (0, 40)]
    assert stage.end(id) == ("failed", "undo_failed")
    undos.broken, undos.done = set(), []
    again = stage.retry(id)
    stage.work()
    assert sorted(undos.done) == [0, 40]
    assert stage.end(again) == ("failed", "step_failed")
    stage.check()


def test_a_cancelled_run_whose_undo_failed_is_cancelled_in_the_end(stage: Stage, undos: Undos) -> None:
    stage.workflow("main", step("a"), step("b", "echo", "a"))
    undos.broken = {"a"}
    id = stage.start("main")
    held = stage.take()
    stage.cancel(id)
    stage.finish(*held)
    stage.work()
    assert stage.end(id) == ("failed", "undo_failed")
    undos.broken = set()
    again = stage.retry(id)
    stage.work()
    assert stage.end(again) == ("cancelled", "cancelled")
    assert undos.done == ["a"]
    stage.check()


def test_case_18_undone_steps_run_again_after_a_retry(stage: Stage, undos: Undos) -> None:
    """A step without undo is kept as long as nothing upstream of it was undone."""
    plain = {"id": "plain", "job": "echo", "with": {"x": "plain"}}
    below = {"id": "below", "job": "echo", "with": {"x": ref("a")}}
    stage.workflow("main", plain, step("a"), below, step("z", "fail", "a"))
    id = stage.start("main")
    stage.work()
    assert undos.done == ["a"]
    stage.job("fail", one_success)
    again = stage.retry(id)
    stage.work()
    assert stage.letters(again) == "Ssss"
    assert stage.end(again) == ("success", "completed")
    assert undos.done == ["a"]
    stage.check()


def test_case_18_a_step_that_was_never_undone_is_kept_and_undone_later(stage: Stage, undos: Undos) -> None:
    """The first run fails without an undo; its retry keeps the step, is cancelled, and undoes it with its result."""
    stage.workflow("main", step("a"), step("z", "fail", "a"), undo_on=["cancelled"])
    id = stage.start("main")
    stage.work()
    assert undos.done == []
    again = stage.retry(id)
    held = stage.take()
    stage.cancel(again)
    stage.finish(*held)
    stage.work()
    assert stage.end(again) == ("cancelled", "cancelled")
    assert undos.done == ["a"]
    stage.check()


def test_a_retry_from_a_step_runs_undone_steps_again(stage: Stage, undos: Undos) -> None:
    """Also after a failed undo: what that left behind is not known."""
    stage.workflow("main", *SAGA)
    undos.broken = {"b"}
    id = stage.start("main")
    stage.work()
    stage.job("fail", one_success)
    again = stage.retry(id, "z")
    stage.work()
    assert stage.letters(again) == "sssss"
    stage.check()


def test_failed_undos_are_retried_as_they_were(stage: Stage, undos: Undos) -> None:
    stage.workflow("main", *SAGA)
    undos.broken = {"b"}
    id = stage.start("main")
    stage.work()
    for more in ({"latest": True}, {"arguments": "{}"}, {"step_arguments": {"a": {"x": 1}}}):
        with pytest.raises(UsageError, match="undos of the run have failed, and a retry repeats only these"):
            stage.retry(id, **more)


def test_a_replay_retries_the_failed_undos(stage: Stage, undos: Undos) -> None:
    """Also of a run whose steps all succeeded, and whose result could not be made."""
    stage.workflow("main", step("a"), result=ref("a.nothing"))
    undos.broken = {"a"}
    id = stage.start("main")
    stage.work()
    assert stage.end(id) == ("failed", "undo_failed")
    undos.broken = set()
    stage.started.clear()
    new_id = stage.world.ids.new()
    stage.store.transact(control.replay, NAMESPACE, {id: new_id}, "test")
    stage.work()
    assert stage.started == [("undo", {"x": "a"})]
    assert stage.end(new_id) == ("failed", "bad_result")


def test_an_undo_is_not_replayed_alone(stage: Stage, undos: Undos) -> None:
    stage.workflow("main", *SAGA)
    undos.broken = {"b"}
    id = stage.start("main")
    stage.work()
    for one in (undo_run(stage, id), str(stage.executions("undo")[0]["id"])):
        with pytest.raises(UsageError, match=f"`rota run retry {id}`"):
            stage.store.transact(control.repeat, NAMESPACE, one, stage.world.ids.new(), "test")


# --- The sweeper, the dead letters ------------------------------------------------------------------


def test_the_sweeper_has_nothing_to_repair_in_an_undo(stage: Stage, undos: Undos) -> None:
    stage.workflow("leaf", step("p"), step("q", "echo", "p"))
    stage.workflow("main", step("a"), {"id": "s", "workflow": "leaf", "after": ["a"]}, step("z", "fail", "s"))
    id = stage.start("main")
    while stage.world.status(id) not in ("failed",):
        assert stage.is_swept()
        stage.take(1)
        assert stage.is_swept()
        stage.finish(*stage.held)
        settle(stage)
    assert undos.done == ["q", "p", "a"]
    assert [row.id for row in stage.world.dead()] == [id], "only the root is a dead letter"
