"""A worker on a machine that cannot start processes: it claims no jobs that need one, and reports that."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rota import Handle, Status
from rota.domain.requirement import COMMANDS, ISOLATED
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site, Worker

MANY = 60
TRIES = 6


def enqueue(site: Site, what: str, number: int) -> Handle[Any]:
    if what == COMMANDS:
        return site.enqueue("shell", script=f"echo {number}")
    return site.enqueue("alone", number)


@contextmanager
def no_more_descriptors(site: Site, worker: Worker) -> Iterator[None]:
    """Descriptors that the process has open stay open, so the worker must have started its work before."""
    site.enqueue("echo", 0).result(PATIENCE_S)
    (child,) = worker.children()
    usual = resource.prlimit(child, resource.RLIMIT_NOFILE)
    resource.prlimit(child, resource.RLIMIT_NOFILE, (3, usual[1]))
    try:
        yield
    finally:
        resource.prlimit(child, resource.RLIMIT_NOFILE, usual)


def troubles(site: Site) -> list[str]:
    return [row.trouble for row in site.live() if row.trouble]


def times_given_back(x: Handle[Any]) -> int:
    return sum(attempt.reason == "not_begun" for attempt in x.attempts())


@pytest.mark.parametrize("what", [ISOLATED, COMMANDS])
def test_a_worker_that_cannot_start_processes_reports_it_until_it_can(site: Site, what: str) -> None:
    worker = site.worker("--concurrency", "4")
    with no_more_descriptors(site, worker):
        x = enqueue(site, what, 1)
        (told,) = eventually(lambda: troubles(site), what="a word about it")
        assert what in told
        assert "Too many open files" in told
        assert site.enqueue("mail").result(PATIENCE_S) == "sent", "jobs that need no process still run"
    x.result(PATIENCE_S)
    assert "Too many open files" in (x.attempts()[0].error_message or "")
    assert x.info().attempt_count == 1, "no attempt was counted"
    eventually(lambda: not troubles(site), what="the end of the trouble")


@pytest.mark.parametrize("what", [ISOLATED, COMMANDS])
def test_a_worker_that_cannot_start_processes_leaves_executions_to_others(file_site: Site, what: str) -> None:
    sick = file_site.worker("--concurrency", "4")
    with no_more_descriptors(file_site, sick):
        enqueue(file_site, what, 0)
        eventually(lambda: troubles(file_site), what="a word about it")
        file_site.worker("--concurrency", "2")
        handles = [enqueue(file_site, what, number) for number in range(MANY)]
        # It tries to start one after a second, two, four and so on: at most `TRIES` times within `PATIENCE_S`. Those
        # that it gives back become ready seconds later.
        eventually(lambda: sum(handle.status() is Status.SUCCESS for handle in handles) >= MANY - TRIES)
    assert sum(map(times_given_back, handles)) < MANY / 2
