"""Runs of a chosen version of a workflow, and deploys while runs are open."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from rota import App, ArgumentsError, DefinitionError, ExecutionFailed, UsageError, WorkflowError
from rota.domain import overrides
from rota.sdk.app import registry_of
from rota.testing import harness
from tests.workflow.stage import Stage


def first_version(between: Callable[[], None] = lambda: None) -> App:
    """`between` is called by the first step."""
    app = App("versions", url="sqlite://:memory:")

    @app.job
    def prepare(to: str) -> str:
        between()
        return to

    @app.job(retry=None)
    def send(to: str) -> str:
        return f"sent to {to}"

    @app.job
    def tidy(text: str) -> str:
        return f"{text}, tidied"

    @app.workflow
    def letter(to: str, subject: str = "hello") -> str:
        return tidy.step(send.step(to=prepare.step(to)))

    return app


def second_version() -> App:
    """The workflow has another parameter and no step `tidy`; the job `send` has another parameter."""
    app = App("versions", url="sqlite://:memory:")

    @app.job
    def prepare(to: str) -> str:
        return to

    @app.job(retry=None)
    def send(address: str) -> str:
        return f"sent to the address {address}"

    @app.job
    def tidy(text: str) -> str:
        return f"{text}, tidied"

    @app.workflow
    def letter(number: int) -> str:
        return send.step("somewhere")

    return app


def deploy(old: App, new: App) -> None:
    """What a deploy does to the database and to the code of the worker."""
    before, after = registry_of(old), registry_of(new)
    after.check()
    before.client.declare(*after._declared(), {}, takes_precedence=True)
    before.jobs.update(after.jobs)


def test_a_start_names_the_version_of_its_graph() -> None:
    app = first_version()
    with harness(app) as rota:
        letter = app.workflows["letter"]
        letter.start("a")
        rota.run_until_idle()
        deploy(app, second_version())
        one, two = letter.options(version=1), letter.options(version=2)
        runs = [one.start(to="b"), *one.start_many([{"to": "c"}, {"to": "d"}]), two.start(number=5)]
        rota.run_until_idle()
        assert [run.detail().version for run in runs] == [1, 1, 1, 2]
        assert [len(run.steps()) for run in runs] == [3, 3, 3, 1]
        assert runs[3].result() == "sent to the address somewhere"


def test_the_graph_of_the_version_checks_the_arguments() -> None:
    app = first_version()
    with harness(app):
        letter = app.workflows["letter"].options(version=1)
        calls: list[tuple[Callable[[], Any], str]] = [
            (lambda: letter.start("a"), "give the arguments of a chosen version by name: subject=…, to=…"),
            (letter.start, "missing argument 'to'"),
            (lambda: letter.start(too="a"), "there is no argument 'too', did you mean 'to'?"),
            (lambda: letter.start(to=5), "argument 'to': expected string, got integer"),
        ]
        for call, message in calls:
            with pytest.raises(ArgumentsError, match=re.escape(message)):
                call()
        with pytest.raises(UsageError, match="workflow letter has no version 9: it has 1"):
            letter.options(version=9).start(to="a")
        with pytest.raises(DefinitionError, match="version must be a number, not 'new'"):
            letter.options(version="new")  # type: ignore[arg-type]


def test_a_step_has_no_version() -> None:
    app = first_version()

    @app.workflow
    def outer() -> str:
        return str(app.workflows["letter"].options(version=1).step("a"))

    with pytest.raises(WorkflowError, match="version= cannot be set for a step"):
        outer.check()


def test_a_delayed_run_keeps_the_version_that_it_was_started_with(stage: Stage) -> None:
    stage.workflow("main", {"id": "a", "job": "echo", "with": {"x": 1}}, result={"$": "a"})
    chosen = stage.start("main", delay_s=60.0, overrides=overrides.of_version(1))
    other = stage.start("main", delay_s=60.0)
    stage.workflow("main", {"id": "b", "job": "echo", "with": {"x": 2}}, result={"$": "b"})
    stage.advance(60)
    assert (stage.result(chosen), stage.result(other)) == (1, 2)


def test_case_23_a_deploy_changes_the_arguments_of_a_job_under_an_open_run() -> None:
    """The old graph continues, with the step that the new version does not have; the error names the parameter."""
    app = first_version(between=lambda: deploy(app, second_version()))
    with harness(app) as rota:
        run = app.workflows["letter"].start("a")
        rota.run_until_idle()
        with pytest.raises(ExecutionFailed, match=r"step send failed: .* there is no argument `to`"):
            run.result()
        assert [(step.step, step.status, step.reason) for step in run.steps()] == [
            ("prepare", "success", "completed"),
            ("send", "failed", "bad_arguments"),
            ("tidy", "blocked", "upstream_failed"),
        ]
        again = run.retry(from_="send", step_arguments={"send": {"address": "b"}})
        rota.run_until_idle()
        assert again.step("send").reason == "bad_arguments"
        later = app.workflows["letter"].options(version=2).start(number=5)
        rota.run_until_idle()
        assert later.result() == "sent to the address somewhere"
