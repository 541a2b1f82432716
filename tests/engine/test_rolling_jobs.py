"""Old and new workers side by side: each takes only the jobs that it has, and new jobs do not wait."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rota import App, Job, Status
from rota.sdk.app import registry_of
from rota.store import claim_reader
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site, Worker

HINTS_ONLY = {"poll_s": 60, "lease_s": 600}
"""A worker that polls this rarely starts in time only what a hint told it of."""
OLD = """
from rota import App

app = App("engine")

@app.job
def plain(number: int) -> int:
    return number
"""
NEW = """

@app.job
def fresh(number: int) -> int:
    return number
"""
REQUEST = """

app.http("fetch", "http://127.0.0.1:9/", retry=None)
"""
NO_EXTRA = """
import sys

sys.modules["httpx"] = None  # As where the extra is not installed.
"""


@pytest.fixture
def newer(site: Site) -> Iterator[App]:
    """The process that enqueues has the new code."""
    app = App("engine", url=site.url)

    @app.job
    def plain(number: int) -> int:
        return number

    @app.job
    def fresh(number: int) -> int:
        return number

    app.http("fetch", "http://127.0.0.1:9/", retry=None)
    yield app
    app.close()


def start(site: Site, name: str, code: str, **settings: object) -> Worker:
    (site.folder / f"{name}.py").write_text(code)
    return site.worker("--concurrency", "4", app=f"{name}:app", **settings)


def run(job: Job[..., int, int], count: int, **options: object) -> None:
    """Each execution starts and ends before the next one is enqueued, and no other worker had it in between."""
    for number in range(count):
        x = job.options(**options).enqueue(number)  # type: ignore[arg-type]
        assert x.result(PATIENCE_S) == number
        assert [(attempt.status, attempt.attempt) for attempt in x.attempts()] == [("success", 1)]


def test_a_new_job_starts_beside_old_workers(site: Site, newer: App) -> None:
    for _ in range(2):
        start(site, "old", OLD, **HINTS_ONLY)
    start(site, "new", OLD + NEW, **HINTS_ONLY)
    run(newer.jobs["fresh"], 10)
    run(newer.jobs["fresh"], 3, queue="never_used_before")
    run(newer.jobs["plain"], 3)


def test_executions_of_a_new_job_wait_for_a_worker_that_has_it_and_keep_nothing_else_waiting(
    site: Site, newer: App
) -> None:
    start(site, "old", OLD, **HINTS_ONLY)
    waiting = newer.jobs["fresh"].enqueue_many(range(200))
    run(newer.jobs["plain"], 3)
    assert {x.status() for x in waiting[:3]} == {Status.QUEUED}
    start(site, "new", OLD + NEW, **HINTS_ONLY)
    assert [x.result(PATIENCE_S) for x in waiting] == list(range(200))


def test_a_worker_without_the_extra_leaves_requests_to_others(site: Site, newer: App) -> None:
    worker = start(site, "bare", NO_EXTRA + OLD + REQUEST, **HINTS_ONLY)
    x = newer.jobs["fetch"].enqueue()
    run(newer.jobs["plain"], 3)
    assert (x.status(), x.attempts()) == (Status.QUEUED, [])
    assert site.live()[0].jobs == '["plain"]'
    words = "cannot run job fetch and leaves it to others; it needs: pip install rota[http]"
    eventually(lambda: words in worker.log(), what="a line in the log")
    facts = registry_of(site.app).connection.store().read(claim_reader.claim_facts, "default", x.id)
    assert facts.offers == "[]"
    start(site, "whole", OLD + REQUEST, **HINTS_ONLY)
    site.wait_for(x, Status.FAILED)
    assert "HttpRefused" in (x.attempts()[0].error_message or "")
