"""`depends_on=`: what may be given, what is refused, and jobs that start after others in the harness."""

from __future__ import annotations

from typing import Any

import pytest

from rota import App, Context, DefinitionError, JobRef
from rota.domain.dependency import CountedEnd, Upstream
from rota.sdk import file
from rota.sdk.job import registered
from rota.testing import harness


@pytest.fixture
def app() -> App:
    app = App("shop")

    @app.job
    def extract() -> int:
        return 3

    @app.job
    def rates() -> None: ...

    return app


def declared(app: App, depends_on: Any, **about: Any) -> list[Upstream]:
    """The edges of a job with this option."""

    @app.job(depends_on=depends_on, **about)
    def load(full: bool = False) -> None: ...

    return registered(load).definition.depends_on


EXTRACT = Upstream("shop", "extract", CountedEnd.SUCCESS)
CLOSE = Upstream("billing", "close", CountedEnd.SUCCESS)


def test_jobs_are_named_in_every_form(app: App) -> None:
    rates = app.jobs["rates"]
    given = ["extract", rates, JobRef("billing", "close")]
    assert declared(app, given) == [CLOSE, EXTRACT, Upstream("shop", "rates", CountedEnd.SUCCESS)]


def test_outcomes_are_by_job(app: App) -> None:
    by_job = {"extract": "done", app.jobs["rates"]: "failed", JobRef("billing", "close"): "success"}
    edges = [CLOSE, Upstream("shop", "extract", CountedEnd.DONE), Upstream("shop", "rates", CountedEnd.FAILED)]
    assert declared(app, by_job) == edges


def test_a_job_of_another_app_may_be_data(app: App) -> None:
    given = [{"app": "billing", "job": "close"}, {"job": "extract", "outcome": "done"}]
    assert declared(app, given) == [CLOSE, Upstream("shop", "extract", CountedEnd.DONE)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("extract", r"must be a list of jobs, such as \['extract'\], not 'extract'"),
        (7, "must be a list of jobs"),
        ([7], "names, jobs and JobRef"),
        (["ex tract"], "a job's name must start with a letter"),
        ({"extract": "ended"}, "one of success, failed, done, not 'ended'"),
        (["extract", JobRef("shop", "extract")], "names 'extract' twice"),
        ([{"name": "extract"}], "has app, job and outcome, not 'name'"),
    ],
)
def test_wrong_values_are_refused(app: App, given: Any, words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        declared(app, given)


def test_arguments_are_those_of_the_executions_that_upstreams_start(app: App) -> None:
    declared(app, ["extract"], arguments={"full": True})
    assert registered(app.jobs["load"]).definition.arguments == '{"full":true}'
    with pytest.raises(DefinitionError, match="started by other jobs, so arguments= must be what it takes"):

        @app.job(depends_on=["extract"])
        def mail(to: str) -> None: ...


def test_check_finds_unknown_jobs_and_cycles_without_a_database(app: App) -> None:
    declared(app, ["extrct"])
    with pytest.raises(DefinitionError, match=r"shop.load depends on shop.extrct, .* did you mean shop.extract\?"):
        app.check()
    app = App("shop")
    declared(app, ["report"])

    @app.job(depends_on=["load"])
    def report() -> None: ...

    with pytest.raises(DefinitionError, match=r"shop.report → shop.load → shop.report|shop.load → shop.report → "):
        app.check()


def test_an_app_file_has_dependencies() -> None:
    jobs: dict[str, Any] = {"extract": {"command": ["true"]}, "load": {"command": ["true"], "depends_on": ["extract"]}}
    jobs["page"] = {"command": ["true"], "depends_on": {"load": "failed"}}
    made = file.app({"jobs": jobs}, "shop")
    assert registered(made.jobs["load"]).definition.depends_on == [EXTRACT]
    assert registered(made.jobs["page"]).definition.depends_on == [Upstream("shop", "load", CountedEnd.FAILED)]
    jobs["page"]["depends_on"] = ["laod"]
    with pytest.raises(DefinitionError, match=r"did you mean shop.load\?"):
        file.app({"jobs": jobs}, "shop")


def test_a_job_starts_after_others_and_knows_their_executions(app: App) -> None:
    seen: list[Any] = []

    @app.job(depends_on=["extract", "rates"])
    def load(ctx: Context) -> None:
        seen.append((app.handle(ctx.upstream["extract"]).result(), sorted(ctx.upstream)))

    with harness(app) as rota:
        extract = app.jobs["extract"].enqueue()
        rota.run_until_idle()
        assert seen == []
        app.jobs["rates"].enqueue()
        rota.run_until_idle()
        assert extract.result() == 3
    assert seen == [(3, ["extract", "rates"])]


def test_a_direct_call_has_no_upstream(app: App) -> None:
    @app.job(depends_on=["extract"])
    def load(ctx: Context) -> int:
        return len(ctx.upstream)

    assert load() == 0


def test_with_a_schedule_the_tick_waits(app: App) -> None:
    seen: list[str] = []

    @app.job(depends_on=["extract"], cron="0 6 * * *")
    def load() -> None:
        seen.append("load")

    with harness(app) as rota:
        app.jobs["extract"].enqueue()
        rota.run_until_idle()
        assert seen == []
        rota.advance("1d")
        assert seen == ["load"]
        rota.advance("1d")
        assert seen == ["load"]
        app.jobs["extract"].enqueue()
        rota.run_until_idle()
        assert seen == ["load", "load"]


def test_the_harness_knows_jobs_of_other_apps(app: App) -> None:
    declared(app, [JobRef("billing", "close")])
    with harness(app) as rota:
        app.jobs["load"].enqueue()
        assert rota.run_until_idle() == 1
