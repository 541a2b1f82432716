"""Steps that wait: sleeps, approvals and events. On both databases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from rota.domain.errors import Conflict, UnknownExecution, UsageError
from rota.domain.workflow.wait import event_came
from rota.ops import place
from rota.ops.events.waits import EventWait
from rota.ops.runs import begin_wait
from rota.ops.runs.end_waits import end_waits
from rota.store.hints import Due
from rota.store.port import Tx
from tests.support.proving import proof
from tests.support.tables import table
from tests.support.world import NAMESPACE
from tests.workflow.stage import Fail, Stage

pytestmark = pytest.mark.parametrize("store", ["sqlite", proof("postgres")], indirect=True)

DAY_S = 86_400


def ref(path: str) -> dict[str, str]:
    return {"$": path}


NAP = (
    {"id": "a", "job": "echo", "with": {"x": 1}},
    {"id": "nap", "sleep": "10m", "after": ["a"]},
    {"id": "b", "job": "echo", "with": {"x": ref("a")}, "after": ["nap"]},
)


def fail_once() -> Callable[..., Any]:
    tries = iter([1])

    def body(**_: Any) -> str:
        if next(tries, None):
            raise Fail("once")
        return "done"

    return body


# --- Sleep ----------------------------------------------------------------------------------------


def test_a_sleep_ends_at_its_time_and_not_before(stage: Stage) -> None:
    stage.workflow("nap", *NAP, result=ref("b"))
    id = stage.start("nap")
    stage.work()
    assert stage.letters(id) == "so."
    stage.advance(599.9)
    assert stage.letters(id) == "so."
    assert stage.is_swept()
    stage.advance(0.2)
    assert stage.result(id) == 1
    stage.check()


def test_many_sleeps_end_together(stage: Stage) -> None:
    """A wait is no attempt, and sub-workflows that contain waits can be mapped."""
    stage.workflow(
        "each",
        {"id": "nap", "sleep": 60},
        {"id": "e", "job": "echo", "with": {"x": ref("input.x")}, "after": ["nap"]},
        result=ref("e"),
    )
    stage.workflow("all", {"id": "m", "workflow": "each", "map": list(range(30)), "as": "x"}, result=ref("m"))
    id = stage.start("all")
    stage.work()
    assert stage.statuses("sleep()") == {"waiting": 30}
    assert stage.held == []
    stage.advance(59)
    assert stage.count("echo") == 0
    stage.advance(1)
    assert stage.result(id) == list(range(30))
    stage.check()


def test_an_execution_of_a_sleep(stage: Stage) -> None:
    """It is in `waiting` behind one blocker, with its reminder, and ends as a success without an attempt."""
    stage.workflow("nap", *NAP)
    id = stage.start("nap")
    stage.work()
    (row,) = stage.executions("sleep()")
    assert (row["status"], row["reason"], row["fence"], str(row["run"])) == ("waiting", "sleep", 0, id)
    assert [str(one["id"]) for one in table(stage.store, "expiry")] == [str(row["id"])]
    stage.advance(600)
    (row,) = stage.executions("sleep()")
    assert (row["status"], row["reason"], row["attempts"], row["worker"]) == ("success", "completed", 0, None)
    assert table(stage.store, "expiry") == []


def test_a_sleep_wakes_upkeep_at_its_end(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint is what wakes the upkeep loop in time."""
    told: list[int] = []

    def due(at: int) -> Due:
        told.append(at)
        return Due(at)

    monkeypatch.setattr(place, "Due", due)
    stage.workflow("nap", *NAP)
    stage.start("nap")
    stage.work()
    assert told == [stage.world.clock.now() + 600_000_000]


# --- Approvals ------------------------------------------------------------------------------------


def release(stage: Stage, **approve: Any) -> str:
    """A run that waits for an answer."""
    about = {"text": {"$text": "Release {b}?", "b": ref("input.build")}, "who": ["ops"], "timeout": "2d", **approve}
    stage.workflow(
        "release",
        {"id": "ok", "approve": about},
        {"id": "deploy", "job": "echo", "with": {"x": ref("input.build")}, "when": [{"is_true": ref("ok.approved")}]},
        {
            "id": "tell",
            "job": "echo",
            "with": {"x": ref("ok.note")},
            "when": [{"not": {"is_true": ref("ok.approved")}}],
        },
        result={"ok": ref("ok"), "did": {"$first": [ref("deploy"), ref("tell")]}},
        parameters={"build": {"type": "string"}},
    )
    id = stage.start("release", {"build": "7"})
    stage.work()
    return id


def test_an_approval(stage: Stage) -> None:
    id = release(stage)
    assert stage.letters(id) == "o.."
    assert stage.answer(id, note="looks good") == "ok"
    stage.work()
    decision = {"approved": True, "by": "ann", "note": "looks good", "timed_out": False}
    assert stage.result(id) == {"ok": decision, "did": "7"}
    (row,) = [row for row in table(stage.store, "audit") if row["action"] == "run.approve"]
    assert (row["actor"], row["subject"]) == ("ann", id)
    assert msgspec.json.decode(row["after"]) == {"step": "ok", "note": "looks good"}
    stage.advance(3 * DAY_S)
    stage.check()


def test_a_rejection(stage: Stage) -> None:
    id = release(stage)
    stage.answer(id, "ok", approved=False, note="not today")
    stage.work()
    assert stage.result(id)["did"] == "not today"
    assert [row["actor"] for row in table(stage.store, "audit") if row["action"] == "run.reject"] == ["ann"]


TIMEOUTS = {
    "reject": ("success", {"approved": False, "by": None, "note": "", "timed_out": True}),
    "approve": ("success", {"approved": True, "by": None, "note": "", "timed_out": True}),
    "fail": ("failed", None),
}


@pytest.mark.parametrize("on_timeout", TIMEOUTS)
def test_no_answer_comes(stage: Stage, on_timeout: str) -> None:
    id = release(stage, on_timeout=on_timeout)
    stage.advance(2 * DAY_S)
    status, decision = TIMEOUTS[on_timeout]
    assert stage.end(id)[0] == status
    if decision is None:
        assert "no answer came within 2d: Release 7?" in stage.error(id)
        assert [(row["status"], row["reason"]) for row in stage.executions("approve()")] == [("failed", "wait_timeout")]
    else:
        assert stage.result(id)["ok"] == decision
    stage.check()


def test_a_required_approval_that_is_rejected_fails(stage: Stage) -> None:
    id = release(stage, required=True)
    stage.answer(id, approved=False, note="no")
    stage.work()
    assert stage.end(id) == ("failed", "step_failed")
    assert "rejected by ann: no" in stage.error(id)
    assert stage.letters(id) == "fbb"


def test_the_second_answer_learns_of_the_first(stage: Stage) -> None:
    id = release(stage)
    stage.answer(id, note="fine")
    with pytest.raises(Conflict, match=r"step ok was approved by ann at 20\d\d-\S+Z \(fine\)"):
        stage.answer(id, "ok", approved=False, by="bob")
    with pytest.raises(Conflict, match="waits for no answer: step ok was approved by ann"):
        stage.answer(id, approved=False, by="bob")
    stage.work()
    with pytest.raises(Conflict, match="step ok was approved by ann"):
        stage.answer(id, "ok", by="bob")
    assert [row["action"] for row in table(stage.store, "audit") if row["subject"] == id] == ["run.approve"]


def test_an_answer_after_the_time_is_over(stage: Stage) -> None:
    id = release(stage)
    stage.advance(2 * DAY_S)
    with pytest.raises(Conflict, match=r"step ok was rejected at .*, because no answer came in time"):
        stage.answer(id)


def test_several_open_approvals_must_be_named(stage: Stage) -> None:
    stage.workflow(
        "two",
        {"id": "one", "approve": {"text": "One?", "timeout": "1d", "required": True}},
        {"id": "other", "approve": {"text": "Other?", "timeout": "1d", "required": True}},
        {"id": "third", "approve": {"text": "Third?", "timeout": "1d", "required": True}, "after": ["one", "other"]},
        {"id": "e", "job": "echo"},
    )
    id = stage.start("two")
    stage.work()
    with pytest.raises(UsageError, match=r"waits for 2 answers, so name the step: one \(One\?\), other \(Other\?\)"):
        stage.answer(id)
    with pytest.raises(Conflict, match="step third has not been reached yet"):
        stage.answer(id, "third")
    with pytest.raises(UsageError, match="step 'e' is not an approval: its approvals are one, other, third"):
        stage.answer(id, "e")
    with pytest.raises(UsageError, match="has no step 'x'"):
        stage.answer(id, "x")
    stage.answer(id, "other")
    assert stage.answer(id) == "one"
    assert stage.answer(id) == "third"
    stage.work()
    assert stage.end(id)[0] == "success"


def test_an_approval_below_a_run_is_named(stage: Stage) -> None:
    release(stage)
    stage.workflow("above", {"id": "s", "workflow": "release", "with": {"build": "8"}})
    id = stage.start("above")
    stage.work()
    (below,) = [str(row["id"]) for row in table(stage.store, "run") if str(row["parent"]) == id]
    with pytest.raises(UsageError, match=f"runs below it do: {below}"):
        stage.answer(id)
    stage.answer(below)
    stage.work()
    assert stage.end(id)[0] == "success"


def test_what_cannot_be_answered(stage: Stage) -> None:
    stage.workflow("nap", *NAP)
    id = stage.start("nap")
    with pytest.raises(Conflict, match="is not open yet: no worker has opened it"):
        stage.answer(id)
    stage.work()
    with pytest.raises(Conflict, match="waits for no answer: it has no approval"):
        stage.answer(id)
    with pytest.raises(UsageError, match="has no step 'x': it has no approvals"):
        stage.answer(id, "x")
    with pytest.raises(UnknownExecution):
        stage.answer("0" * 32)


def test_a_text_that_cannot_be_made_fails_the_step(stage: Stage) -> None:
    stage.workflow(
        "bad",
        {"id": "a", "job": "echo", "with": {"x": {"n": 1}}},
        {"id": "ok", "approve": {"text": ref("a.n"), "timeout": "1d", "required": True}, "may_fail": True},
        {"id": "lost", "approve": {"text": ref("a.m"), "timeout": "1d", "required": True}},
        {"id": "b", "job": "echo", "with": {"x": "b"}, "when": [{"failed": "ok"}]},
    )
    id = stage.start("bad")
    stage.work()
    assert stage.end(id) == ("failed", "step_failed")
    assert "a has no member 'm'" in stage.error(id)
    assert stage.letters(id) == "sffs"
    errors = [(row["status"], row["reason"]) for row in stage.executions("approve()")]
    assert errors == [("failed", "bad_arguments")] * 2
    stage.check()


# --- Events ---------------------------------------------------------------------------------------


def event_flow(stage: Stage, **event: Any) -> None:
    about = {"names": ["paid"], "subject": ref("input.id"), "where": {"sum": {"gt": ref("input.sum")}}, "timeout": "1h"}
    stage.workflow(
        "fulfil",
        {"id": "paid", "event": {**about, **event}},
        {"id": "again", "event": {"names": ["paid", "late"], "lookback": "10s", "timeout": "1h"}, "after": ["paid"]},
        {"id": "e", "job": "echo", "with": {"x": ref("again.name")}},
        result={"$default": [ref("e"), None]},
        parameters={"id": {"type": "string"}, "sum": {"type": "integer"}},
    )


def seen(monkeypatch: pytest.MonkeyPatch, *there: dict[str, Any]) -> list[EventWait]:
    """The waits that begin. `there` are the events that are there already."""
    waits: list[EventWait] = []
    events = iter(there)

    def begin(tx: Tx, wait: EventWait) -> dict[str, Any] | None:
        waits.append(wait)
        return next(events, None)

    monkeypatch.setattr(begin_wait, "subscribe", begin)
    return waits


EVENT = {"id": "e1", "name": "paid", "subject": "17", "payload": {"sum": 5}, "emitted_at": "2026-01-01T00:00:00Z"}


def test_an_event_step_begins_and_ends(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = seen(monkeypatch)
    event_flow(stage)
    id = stage.start("fulfil", {"id": "17", "sum": 3})
    stage.work()
    opened_at = stage.world.clock.now()
    (wait,) = waits
    (row,) = stage.executions("event()")
    assert (wait.execution, wait.namespace, wait.names) == (str(row["id"]), NAMESPACE, ("paid",))
    assert (wait.subject, wait.where, wait.since, wait.taken) == ("17", {"sum": {"gt": 3}}, opened_at, ())
    stage.world.clock.advance(60)
    stage.store.transact(end_waits, {wait.execution: event_came(EVENT)})
    stage.work()
    assert stage.letters(id) == "so."
    assert (waits[1].since, waits[1].taken) == (opened_at - 10_000_000, ("e1",))
    assert stage.store.transact(end_waits, {wait.execution: event_came(EVENT)}) == []
    stage.store.transact(end_waits, {waits[1].execution: event_came({**EVENT, "id": "e2", "name": "late"})})
    stage.work()
    assert stage.result(id) == "late"
    stage.check()


def test_an_event_that_is_there_already(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    seen(monkeypatch, EVENT, {**EVENT, "id": "e2"})
    event_flow(stage)
    id = stage.start("fulfil", {"id": "17", "sum": 3})
    stage.work()
    assert stage.result(id) == "paid"
    stage.check()


@pytest.mark.parametrize(("on_timeout", "end", "letters"), [("fail", "failed", "fbb"), ("skip", "success", "kkk")])
def test_no_event_comes(stage: Stage, on_timeout: str, end: str, letters: str) -> None:
    event_flow(stage, on_timeout=on_timeout)
    id = stage.start("fulfil", {"id": "17", "sum": 3})
    stage.work()
    stage.advance(3600)
    assert stage.end(id)[0] == end
    assert stage.letters(id) == letters
    stage.check()


# --- With the rest of a run -----------------------------------------------------------------------


def test_a_cancel_ends_open_waits(stage: Stage) -> None:
    id = release(stage)
    stage.cancel(id)
    stage.work()
    assert stage.end(id) == ("cancelled", "cancelled")
    with pytest.raises(Conflict, match="step ok ended as cancelled at"):
        stage.answer(id, "ok")
    stage.advance(2 * DAY_S)
    stage.check()


def test_one_wait_is_cancelled_like_any_step(stage: Stage) -> None:
    stage.workflow("nap", *NAP)
    id = stage.start("nap")
    stage.work()
    (row,) = stage.executions("sleep()")
    stage.cancel(str(row["id"]))
    stage.work()
    assert stage.end(id) == ("failed", "step_failed")
    assert stage.letters(id) == "scb"
    stage.advance(600)
    stage.check()


def test_a_wait_that_is_reached_in_a_paused_run_begins(stage: Stage) -> None:
    """Only work is held back: the time of the wait passes."""
    stage.workflow("nap", *NAP, result=ref("b"))
    id = stage.start("nap")
    (attempt,) = stage.take()
    stage.pause(id)
    stage.finish(attempt)
    stage.work()
    assert stage.letters(id) == "so."
    stage.advance(600)
    assert stage.letters(id) == "sso"
    assert stage.count("echo") == 1
    stage.resume(id)
    stage.work()
    assert stage.result(id) == 1
    stage.check()


def test_a_run_timeout_ends_open_waits(stage: Stage) -> None:
    stage.workflow("nap", *NAP, timeout=60)
    id = stage.start("nap")
    stage.work()
    stage.advance(60)
    assert stage.end(id) == ("failed", "run_timeout")
    assert stage.statuses("sleep()") == {"cancelled": 1}
    stage.advance(600)
    stage.check()


def test_case_24_answers_and_sleeps_are_recorded_while_the_run_is_paused(stage: Stage) -> None:
    stage.workflow(
        "held",
        {"id": "nap", "sleep": "10m"},
        {"id": "ok", "approve": {"text": "?", "timeout": "2d", "required": True}},
        {"id": "x", "job": "echo", "with": {"x": 1}, "after": ["nap"]},
        {"id": "y", "job": "echo", "with": {"x": 2}, "after": ["ok"]},
        timeout=3600,
    )
    id = stage.start("held")
    stage.work()
    stage.pause(id)
    stage.advance(900)
    stage.answer(id)
    stage.advance(2 * 3600)  # The deadline of the run passes.
    assert stage.letters(id)[:2] == "ss"
    assert stage.count("echo") == 0
    stage.resume(id)
    stage.work()
    assert stage.count("echo") == 2
    assert stage.end(id)[0] == "success"
    stage.check()


def test_the_deadline_moves_by_the_pause(stage: Stage) -> None:
    stage.workflow("nap", *NAP, timeout=900)
    id = stage.start("nap")
    stage.work()
    stage.pause(id)
    stage.advance(3600)
    stage.resume(id)
    stage.work()
    assert stage.end(id)[0] == "success"


def test_a_retry_keeps_answers_and_repeats_other_waits(stage: Stage) -> None:
    stage.job("flaky", fail_once())
    stage.workflow(
        "kept",
        {"id": "ok", "approve": {"text": "?", "timeout": "2d"}},
        {"id": "late", "approve": {"text": "late?", "timeout": "1h", "on_timeout": "fail"}, "may_fail": True},
        {"id": "x", "job": "flaky", "when": [{"is_true": ref("ok.approved")}]},
        {"id": "nap", "sleep": "1m", "after": ["x"]},
        {"id": "z", "job": "echo", "after": ["nap"], "with": {"x": {"$default": [ref("late.note"), "none"]}}},
        result=ref("ok.by"),
    )
    id = stage.start("kept")
    stage.work()
    stage.answer(id, "ok")
    stage.advance(3600)
    assert stage.letters(id) == "sffbb"
    with pytest.raises(UsageError, match="'late': the step waits, and takes no arguments"):
        stage.retry(id, step_arguments={"late": {"x": 1}})
    again = stage.retry(id)
    stage.work()
    assert stage.letters(again) == "Soso."
    with pytest.raises(Conflict, match="step ok was approved by ann"):
        stage.answer(again, "ok")
    assert stage.answer(again, note="now") == "late"
    stage.advance(60)
    assert stage.result(again) == "ann"
    stage.check()
