"""What attempts report while they run, under a real worker: log lines in order, progress, checkpoints, children."""

from __future__ import annotations

import re
import signal
from functools import partial
from typing import Any

import pytest

from rota import Handle, Status
from rota.ops import fleet
from rota.sdk.app import registry_of
from tests.engine.conftest import served_on_both
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site

pytestmark = pytest.mark.xdist_group("telling")

ISOLATION = pytest.mark.parametrize("prefix", ["", "alone_"], ids=["thread", "process"])


def has_said(site: Site, x: Handle[Any], lines: list[str]) -> bool:
    return [line.text for line in site.logs(x)] == lines


def last_line(site: Site, x: Handle[Any]) -> str:
    """Empty if no line is written yet: that may happen after the result."""
    lines = site.logs(x)
    return lines[-1].text if lines else ""


@ISOLATION
@served_on_both
def test_the_log_of_a_running_attempt_can_be_read(served: Site, prefix: str) -> None:
    gate = f"{prefix}said"
    x = served.enqueue(f"{prefix}says", gate)
    served.wait_started(x)
    eventually(lambda: len(served.logs(x)) == 4, what="four lines")
    said = {(line.stream, line.text) for line in served.logs(x)}
    assert {("stdout", "to stdout"), ("log", "by ctx")} <= said
    assert any("to a logger" in text for _, text in said)
    assert any("to stderr" in text for _, text in said)
    state = eventually(lambda: served.state(x), what="its progress")
    assert state is not None
    assert (state.done, state.total, state.note) == (3, 4, "nearly")
    assert x.status() is Status.RUNNING
    served.open(gate)
    x.result(PATIENCE_S)
    eventually(lambda: last_line(served, x) == "without an end", what="the last line")
    assert [line.number for line in served.logs(x)] == [1, 2, 3, 4, 5]


def test_tasks_of_one_loop_do_not_mix_their_lines(served: Site) -> None:
    one, two = (served.enqueue("says_async", word, "mixed") for word in ("left", "right"))
    served.open("mixed")
    for x, word in ((one, "left"), (two, "right")):
        x.result(PATIENCE_S)
        eventually(partial(has_said, served, x, [f"{word} one", f"{word} two"]), what="both lines")


def test_a_flood_of_output_keeps_its_beginning_and_its_end(site: Site) -> None:
    site.worker(max_log_bytes=1024 * 1024)
    for x in [site.enqueue(f"{prefix}says_much", 2) for prefix in ("", "alone_")]:
        x.result(2 * PATIENCE_S)
        eventually(lambda x=x: last_line(site, x).startswith("19999 "), what="the last line")  # type: ignore[misc]
        lines = site.logs(x)
        assert lines[0].text.startswith("0 ")
        assert [re.sub(r"^\([\d, ]*|[:)].*", "", line.text) for line in lines if line.stream == "rota"] == [
            "max_log_bytes is reached",
            "lines are left out here",
        ]
        assert sum(len(line.text) for line in lines) < 1_200_000
        numbers = [line.number for line in lines]
        assert numbers == sorted(set(numbers))


@pytest.mark.prove
@ISOLATION
def test_a_log_of_a_hundred_thousand_lines_is_kept(served: Site, prefix: str) -> None:
    x = served.enqueue(f"{prefix}says_much", 10)
    x.result(4 * PATIENCE_S)
    eventually(lambda: len(served.logs(x)) == 100_000, 60, what="all lines")
    assert [int(line.text.split()[0]) for line in served.logs(x)] == list(range(100_000))


@ISOLATION
@served_on_both
def test_the_next_attempt_finds_the_checkpoint(served: Site, prefix: str) -> None:
    assert served.enqueue(f"{prefix}steps").result(PATIENCE_S) == [1, 2, 3]


@ISOLATION
def test_a_job_with_a_time_slice_lets_other_executions_start(served: Site, prefix: str) -> None:
    x = served.enqueue(f"{prefix}turns")
    assert x.result(PATIENCE_S) == [1, 2, 3]
    assert [attempt.status for attempt in x.attempts()] == ["snoozed", "snoozed", "success"]
    assert x.info().attempt_count == 1


def test_a_checkpoint_at_the_end_of_a_drain_is_stored(site: Site) -> None:
    worker = site.worker()
    x = site.enqueue("keeps")
    site.wait_started(x)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert (x.status(), x.info().attempt_count) == (Status.QUEUED, 0)
    site.worker()
    assert x.result(PATIENCE_S) == "from 17"


@ISOLATION
def test_an_attempt_without_progress_is_stopped(served: Site, prefix: str) -> None:
    x = served.enqueue(f"{prefix}silent", 5)
    served.wait_for(x, Status.FAILED)
    assert x.info().reason == "timeout"
    assert "reported no progress" in (x.attempts()[0].error_message or "")
    state = served.state(x)
    assert state is not None
    assert state.done == 4, "it kept running as long as it reported progress"


@ISOLATION
def test_the_progress_timeout_counts_from_the_last_report(served: Site, prefix: str) -> None:
    """Not from the next check: that would be twice the limit, and the timeout of the attempt is shorter."""
    x = served.enqueue(f"{prefix}silent_soon")
    served.wait_for(x, Status.FAILED)
    assert "reported no progress for 2 s" in (x.attempts()[0].error_message or "")


@ISOLATION
def test_a_child_execution_has_its_parent(served: Site, prefix: str) -> None:
    gate = f"{prefix}birth"
    x = served.enqueue(f"{prefix}parent", gate)
    served.open(gate)
    child = served.app.handle(x.result(PATIENCE_S))
    assert child.result(PATIENCE_S) == "child"
    assert child.info().parent_id == x.id


def test_an_attempt_that_lost_its_lease_cannot_enqueue_children(site: Site) -> None:
    site.worker(lease_s=600)
    x = site.enqueue("parent", "go")
    site.wait_started(x)
    (row,) = site.live()
    registry_of(site.app).connection.store().transact(fleet.declare_dead, row.id, "the test says so")
    site.open("go")
    eventually(lambda: x.info().fence >= 2 and x.status() is Status.SUCCESS, what="the second attempt")
    assert len(site.executions("echo")) == 1


def test_a_worker_that_is_drained_by_command_exits_and_is_not_replaced(site: Site) -> None:
    worker = site.worker("--processes", "2", lease_s=1)
    eventually(lambda: len(site.live()) == 2, what="two processes")
    first, second = site.live()
    store = registry_of(site.app).connection.store()
    assert store.transact(fleet.ask_to_drain, "default", first.id, "test")
    assert not store.transact(fleet.ask_to_drain, "default", first.id, "test")
    eventually(lambda: [row.id for row in site.live()] == [second.id], what="the end of the first")
    assert site.enqueue("echo", 1).result(PATIENCE_S) == 1
    assert len(worker.children()) == 1
    assert store.transact(fleet.ask_to_drain, "default", second.id, "test")
    assert worker.wait() == 0


def test_standard_error_of_the_worker_has_failures_and_output_of_isolated_jobs(file_site: Site) -> None:
    worker = file_site.worker()
    failed, talked, ran = (
        file_site.enqueue("retry_fixed"),
        file_site.enqueue("decent"),
        file_site.enqueue("shell", script="echo from a command"),
    )
    wanted = [
        f"retry_fixed {failed.id} failed, attempt 1 of 3: ValueError: attempt 1; retry in 20 ms",
        f"retry_fixed {failed.id} failed, attempt 3 of 3: ValueError: attempt 3; given up (retries_exhausted)",
        f"decent {talked.id}: hello",
        f"shell {ran.id}: from a command",
    ]
    eventually(lambda: all(line in worker.log() for line in wanted), what="what happened, in the worker's log")
