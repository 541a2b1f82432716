"""Draining: executions finish within the grace or are given back, and no attempt is counted."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rota import Status
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site


def wait_draining(site: Site) -> None:
    eventually(lambda: [row.state for row in site.live()] == ["draining"], what="a draining worker")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_draining_worker_lets_executions_finish_within_the_grace_and_gives_back_the_rest(
    site: Site, number: signal.Signals
) -> None:
    worker = site.worker(grace_s=2)
    quick = [site.enqueue("gated", "go"), site.enqueue("gated_async", "go")]
    slow = [site.enqueue("gated", "never"), site.enqueue("gated_async", "never")]
    for x in (*quick, *slow):
        site.wait_started(x)
    worker.signal(number)
    wait_draining(site)
    late = site.enqueue("echo", 1)
    site.open("go")
    assert worker.wait() == 0
    assert [x.result(0) for x in quick] == ["done", "done"]
    for x in slow:
        info = x.info()
        assert (info.status, info.attempt_count, info.crashes, info.fence) == (Status.QUEUED, 0, 0, 1)
        assert [(attempt.status, attempt.reason) for attempt in x.attempts()] == [("given_back", "drained")]
        assert site.wait_started(x, "told")
    assert (late.status(), late.info().fence) == (Status.QUEUED, 0)
    assert site.live() == []


def test_a_second_signal_ends_the_grace(site: Site) -> None:
    worker = site.worker(grace_s=600)
    x = site.enqueue("gated_async", "never")
    site.wait_started(x)
    worker.signal(signal.SIGTERM)
    wait_draining(site)
    assert x.status() is Status.RUNNING
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    info = x.info()
    assert (info.status, info.attempt_count, info.crashes, info.fence) == (Status.QUEUED, 0, 0, 1)


def test_a_job_that_reads_standard_input_gets_end_of_file(site: Site) -> None:
    worker = site.worker(grace_s=600)
    assert site.enqueue("read_input").result(PATIENCE_S) == ""
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


def test_an_idle_worker_stops_at_once(site: Site) -> None:
    worker = site.worker(grace_s=600)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert site.live() == []


def test_the_next_worker_runs_executions_that_were_given_back(site: Site) -> None:
    first = site.worker(grace_s=0)
    x = site.enqueue("gated", "go")
    site.wait_started(x)
    first.signal(signal.SIGTERM)
    assert first.wait() == 0
    site.open("go")
    site.worker()
    assert x.result(PATIENCE_S) == "done"
    assert (x.info().fence, x.info().attempt_count, x.info().crashes) == (2, 1, 0)


def test_a_draining_worker_keeps_its_lease(site: Site) -> None:
    first = site.worker(grace_s=600, lease_s=2)
    x = site.enqueue("hold_interpreter", 5)
    site.wait_started(x)
    site.worker(lease_s=2)
    first.signal(signal.SIGTERM)
    assert x.result(PATIENCE_S) == "done"
    assert (x.info().fence, x.info().crashes) == (1, 0)


def test_a_worker_that_still_imports_its_app_stops_at_once(tmp_path: Path) -> None:
    lines = ["import pathlib, threading", "pathlib.Path('importing').touch()", "threading.Event().wait()"]
    (tmp_path / "endless.py").write_text("\n".join(lines))
    process = subprocess.Popen([sys.executable, "-m", "rota", "worker", "endless:app"], cwd=tmp_path)
    eventually((tmp_path / "importing").exists, what="an import that does not end")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0
