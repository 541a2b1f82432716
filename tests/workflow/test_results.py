"""Results of steps: their limit, and how they pass to the next step."""

from __future__ import annotations

import pytest

from rota import App, ArgumentsError, ExecutionFailed
from rota.ops.gates import step_inputs
from rota.testing import harness
from tests.support.tables import table
from tests.workflow.stage import Stage

FIVE_MIB = 5 * 1024 * 1024


def measuring(name: str) -> App:
    """An app with jobs that make and measure texts, and a workflow of both."""
    app = App(name, url="sqlite://:memory:")

    @app.job(retry=None)
    def make(size: int) -> str:
        return "x" * size

    @app.job
    def measure(text: str) -> int:
        return len(text)

    @app.workflow
    def pass_on(size: int) -> int:
        return measure.step(make.step(size))

    return app


def test_a_result_may_be_larger_than_arguments() -> None:
    app = measuring("large")
    with harness(app) as rota:
        run = app.workflows["pass_on"].start(FIVE_MIB)
        rota.run_until_idle()
        assert run.result() == FIVE_MIB
        with pytest.raises(ArgumentsError, match="at most 1,048,576 are stored"):
            app.jobs["measure"].enqueue("x" * FIVE_MIB)


def test_a_result_above_max_result_bytes_names_its_bytes_and_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ROTA_MAX_RESULT_BYTES", "2000")
    app = measuring("limited")
    with harness(app) as rota:
        fits, too_large = app.jobs["make"].enqueue(1998), app.jobs["make"].enqueue(1999)
        run = app.workflows["pass_on"].start(3000)
        rota.run_until_idle()
        assert len(fits.result()) == 1998
        with pytest.raises(ExecutionFailed, match="2,001 bytes of JSON; at most 2,000 are stored") as raised:
            too_large.result()
        assert raised.value.reason == "bad_result"
        with pytest.raises(ExecutionFailed, match="step make failed: ResultError: the result would take 3,002 bytes"):
            run.result()


def test_a_result_passes_by_reference(stage: Stage) -> None:
    """It is stored once; the next step has a reference in its row, and the value in its claim."""
    stage.job("make", lambda: "x" * FIVE_MIB)
    stage.workflow(
        "main", {"id": "made", "job": "make"}, {"id": "next", "job": "echo", "with": {"x": {"$": "made"}}}, result=1
    )
    run = stage.start("main")
    stage.finish(*stage.take())
    (claim,) = stage.take()
    assert len(claim.arguments) > FIVE_MIB
    (row,) = (row for row in table(stage.store, "execution") if str(row["id"]) == claim.id)
    assert len(str(row["arguments"])) + len(str(row["inputs"])) < 100
    stage.report((claim, stage.outcome(claim)))
    assert stage.result(run) == 1


def test_steps_whose_inputs_are_large_together_come_in_several_claims(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_inputs, "MOST_TOGETHER", 2500)
    stage.job("make", lambda: "x" * 1000)
    stage.workflow(
        "main",
        {"id": "made", "job": "make"},
        {"id": "all", "job": "echo", "map": list(range(10)), "as": "n", "with": {"x": {"$": "made"}}},
    )
    run = stage.start("main")
    stage.finish(*stage.take())
    first = stage.world.claim(stage.worker)
    assert len(first) == 3
    stage.held += first
    stage.work()
    assert stage.end(run)[0] == "success"
    assert stage.count("echo") == 10
    stage.check()
