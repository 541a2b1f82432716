"""Workflows that depend on jobs, and jobs that depend on workflows: runs count, their steps do not."""

from __future__ import annotations

from typing import Any

import pytest

from rota import App, Context
from rota.testing import harness


@pytest.fixture
def app() -> App:
    app = App("shop")

    @app.job
    def extract() -> int:
        return 3

    @app.job(retry=None)
    def check(number: int) -> int:
        assert number < 5
        return number

    return app


def test_the_end_of_a_run_starts_a_job_and_its_steps_do_not(app: App) -> None:
    seen: list[Any] = []
    check: Any = app.jobs["check"]

    @app.workflow
    def etl(number: int) -> int:
        return check.step(number)  # type: ignore[no-any-return]

    @app.job(depends_on=[etl])
    def load(ctx: Context) -> None:
        seen.append(("load", ctx.upstream["etl"]))

    @app.job(depends_on={"etl": "failed"})
    def alert(ctx: Context) -> None:
        seen.append(("alert", ctx.upstream["etl"]))

    @app.job(depends_on={"check": "done"})
    def never() -> None:
        seen.append("never")

    with harness(app) as rota:
        first = etl.start(1)
        rota.run_until_idle()
        assert seen == [("load", first.id)]
        second = etl.start(7)
        rota.run_until_idle()
        assert seen[1:] == [("alert", second.id)]


def test_ends_while_a_run_is_open_are_one_further_round(app: App) -> None:
    seen: list[int] = []
    extract: Any = app.jobs["extract"]

    @app.job
    def first(number: int) -> None:
        seen.append(number)
        if len(seen) == 1:
            extract.enqueue()
            extract.enqueue()

    @app.job
    def second() -> None:
        """Runs after both, because it is placed after them."""

    @app.workflow(depends_on=["extract"], arguments={"number": 4})
    def etl(number: int) -> None:
        second.after(first.step(number)).step()

    with harness(app) as rota:
        extract.enqueue()
        rota.run_until_idle()
    assert seen == [4, 4]
