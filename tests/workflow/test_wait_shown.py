"""What users see of steps that wait, and how they answer: views, handles, the harness."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from examples import release as example
from rota import App, Conflict, Run
from rota.domain.instant import moment
from rota.store.run_reader import RunFilter
from rota.testing import harness
from rota.views import execution, run
from rota.views.run import RunDetail
from rota.views.shape import to_json
from rota.views.step import StepInfo
from rota.workflow import approve, first, otherwise, sleep, wait_for_event, when
from tests.support.world import NAMESPACE
from tests.workflow.stage import Stage
from tests.workflow.test_waits import release

T = TypeVar("T")


def read(stage: Stage, query: Callable[..., T], *arguments: Any) -> T:
    return stage.store.read(query, NAMESPACE, *arguments)


def shown(stage: Stage, id: str) -> tuple[RunDetail, dict[str, StepInfo]]:
    found = read(stage, run.run, id)
    to_json(found)  # It can be printed.
    return found, {one.step: one for one in found.steps}


def test_an_open_approval_says_what_it_waits_for(stage: Stage) -> None:
    id = release(stage)
    stage.world.clock.advance(300)
    found, steps = shown(stage, id)
    ok = steps["ok"]
    assert ok.status == "waiting"
    assert ok.wait is not None
    assert (ok.wait.kind, ok.wait.text, ok.wait.who) == ("approval", "an answer of ops: Release 7?", ["ops"])
    assert ok.wait.until == moment(stage.world.clock.now()) - timedelta(minutes=5) + timedelta(days=2)
    assert ok.wait.commands == [f"rota run approve {id} ok", f"rota run reject {id} ok"]
    assert ok.because == "waits for an answer of ops: Release 7?, since 5 m, for 1 d 23 h at most, then reject"
    assert ok.duration == timedelta(minutes=5)
    assert found.waiting_steps == ["ok"]
    assert found.why is not None
    assert found.why.text == "waits for an answer: ok"
    assert [one.waiting_steps for one in read(stage, run.runs, RunFilter()).items] == [["ok"]]


def test_an_answered_approval_says_who_answered(stage: Stage) -> None:
    id = release(stage)
    stage.answer(id, note="go")
    stage.work()
    _, steps = shown(stage, id)
    assert steps["ok"].because == "approved by ann: go"
    assert steps["ok"].wait is not None
    assert steps["ok"].wait.commands == []


def test_the_execution_of_a_wait(stage: Stage) -> None:
    id = release(stage)
    step = shown(stage, id)[1]["ok"]
    found = read(stage, execution.execution, step.execution_id)
    assert (found.status, found.job, found.step, found.start_by) == ("waiting", "approve()", "ok", None)
    assert found.wait == step.wait
    assert found.why is not None
    assert found.why.text == f"{step.because}: `rota run approve {id} ok` or `rota run reject {id} ok`"
    assert [(check.code, check.holds) for check in found.why.checks] == [("run_paused", True), ("wait", False)]
    stage.pause(id)
    paused = read(stage, execution.execution, step.execution_id).why
    assert paused is not None
    assert [check.holds for check in paused.checks] == [False, False]
    stage.advance(2 * 86_400)
    ended = read(stage, execution.execution, step.execution_id)
    assert ended.why is None
    assert ended.wait is not None
    assert ended.wait.outcome == "rejected: no answer came in time"


def test_sleeps_and_events(stage: Stage) -> None:
    stage.workflow(
        "both",
        {"id": "nap", "sleep": "10m"},
        {"id": "paid", "event": {"names": ["paid", "late"], "subject": "17", "where": {"n": 1}, "timeout": "1h"}},
        {"id": "e", "job": "echo", "after": ["nap", "paid"]},
    )
    id = stage.start("both")
    stage.work()
    _, steps = shown(stage, id)
    assert steps["nap"].because == "sleeps 10 m, 10 m left"
    event = "event paid or late of 17 where {n: 1}"
    assert steps["paid"].because == f"waits for {event}, since 0 ms, for 1 h at most, then fail"
    assert steps["e"].waits_for == ["nap", "paid"]
    stage.advance(600)
    _, steps = shown(stage, id)
    assert (steps["nap"].status, steps["nap"].duration) == ("success", timedelta(minutes=10))


# --- Handles and the harness ----------------------------------------------------------------------

app = App("answers", url="sqlite://:memory:")


@app.job
def say(words: str) -> str:
    return words


@app.workflow
def ask(name: str) -> str:
    answer = approve("Shall we?", timeout="1d")
    with when(answer.approved):
        yes = say.after(sleep("1h")).step(name)
    with otherwise():
        no = say.step(answer.note)
    return first(yes, no)


@app.workflow
def expect(subject: str) -> str:
    return say.step(wait_for_event("came", subject=subject, timeout="1d").name)


def opened() -> Run[str]:
    return ask.start("a")


def test_an_answer_by_a_handle() -> None:
    with harness(app) as rota:
        run = opened()
        rota.run_until_idle()
        run.approve(note="go", by="ann")
        with pytest.raises(Conflict, match="approved by ann"):
            run.reject("approve")
        rota.advance("59m")
        assert run.status() == "running"
        rota.advance("1m")
        assert run.result() == "a"


def test_an_answer_by_an_async_handle() -> None:
    with harness(app) as rota:
        run, other = opened(), opened()
        rota.run_until_idle()

        async def answers() -> None:
            await run.areject(note="no", by="ann")
            await other.aapprove("approve")

        asyncio.run(answers())
        rota.run_until_idle()
        assert run.result() == "no"
        by = other.detail().steps[0].because
        assert by == "approved by sdk"


def test_the_harness_answers() -> None:
    with harness(app) as rota:
        run, other, late = opened(), opened(), opened()
        rota.approve(run)
        rota.reject(other, note="never")
        assert other.result() == "never"
        rota.advance("1d")
        assert (run.result(), late.result()) == ("a", "")


def test_an_event_that_never_comes_in_the_harness() -> None:
    with harness(app) as rota:
        run = expect.start("17")
        rota.advance("1d")
        assert run.status() == "failed"
        assert run.step("wait_for_event").reason == "wait_timeout"


def test_the_example() -> None:
    with harness(example.app) as rota:
        run, other = example.release.start("1.4"), example.release.start("1.5")
        rota.run_until_idle()
        assert "Release 1.4 to production?" in (run.step("approve").because or "")
        rota.approve(run, note="checked")
        assert run.step("deploy_eu").status == "success"
        assert run.step("sleep").status == "waiting"
        rota.advance("30m")
        assert run.result() == "image:1.4 in us"
        rota.advance("2d")
        assert other.result() == "1.5 is not released: no answer came in time"
