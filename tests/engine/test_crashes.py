"""Killed, stopped and blocked processes: no execution is lost, and a worker that lost its lease is fenced out."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from rota import Status
from tests.engine.conftest import on_both
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site, is_alive

SHORT_S = 2
"""A lease for tests in which a worker is declared dead: other workers wait first for as long as their own lease."""


def test_executions_of_a_killed_child_restart_without_waiting_for_the_lease(site: Site) -> None:
    worker = site.worker(lease_s=600)
    x = site.enqueue("gated", "go")
    os.kill(site.wait_started(x), signal.SIGKILL)
    second = site.wait_started(x, fence=2)
    assert worker.children() == [second]
    site.open("go")
    assert x.result(PATIENCE_S) == "done"
    info = x.info()
    assert (info.fence, info.attempt_count, info.crashes) == (2, 1, 1)
    lost, _ = x.attempts()
    assert (lost.status, lost.reason) == ("lost", "crashed")
    assert "was killed by SIGKILL" in (lost.error_message or "")


def test_a_child_that_exits_by_itself_is_replaced(site: Site) -> None:
    site.worker(lease_s=600)
    x = site.enqueue("die_once")
    assert x.result(PATIENCE_S) == "start 2"
    assert "ended with exit code 9" in (x.attempts()[0].error_message or "")


def test_a_job_that_kills_its_worker_every_time_is_a_crash_loop(site: Site) -> None:
    worker = site.worker(lease_s=600)
    x = site.enqueue("die")
    site.wait_for(x, Status.FAILED)
    info = x.info()
    assert (info.reason, info.crashes, info.attempt_count, info.fence) == ("crash_loop", 3, 0, 3)
    assert [attempt.status for attempt in x.attempts()] == ["lost", "lost", "failed"]
    assert [row.execution_id for row in site.app.dead.list(reason="crash_loop")] == [x.id]
    line = f"execution {x.id} of job die has failed with its worker process: crash_loop"
    eventually(lambda: worker.log().count(line) == 1, what="a line in the log of the supervisor")
    assert worker.log().count("1 of its executions returned to the queue") == 2
    assert site.enqueue("echo", 1).result(PATIENCE_S) == 1


@on_both
def test_a_child_dies_with_its_supervisor_and_its_work_is_rescued_after_the_lease(site: Site) -> None:
    first = site.worker(lease_s=SHORT_S)
    x = site.enqueue("gated", "go")
    child = site.wait_started(x)
    first.signal(signal.SIGKILL)
    first.wait()
    eventually(lambda: not is_alive(child), what="the death of the child")
    assert x.status() is Status.RUNNING
    site.worker(lease_s=SHORT_S)
    site.wait_started(x, fence=2)
    site.open("go")
    assert x.result(PATIENCE_S) == "done"
    assert (x.info().crashes, x.attempts()[0].reason) == (1, "crashed")
    assert "sent no heartbeat" in (x.attempts()[0].error_message or "")


def test_a_worker_whose_interpreter_lock_is_held_keeps_its_lease_while_others_run(site: Site) -> None:
    """The worst case: the job takes the interpreter lock at any moment while its process serves other executions."""
    site.worker(lease_s=1)
    flowing = threading.Event()

    def flow() -> None:
        while not flowing.is_set():
            site.app.jobs["echo_async"].enqueue_many(range(20))
            flowing.wait(0.02)

    thread = threading.Thread(target=flow)
    thread.start()
    try:
        held = [site.enqueue("hold_interpreter", 2) for _ in range(2)]
        assert [x.result(2 * PATIENCE_S) for x in held] == ["done"] * 2
    finally:
        flowing.set()
        thread.join()
    assert [(x.info().fence, x.info().crashes) for x in held] == [(1, 0)] * 2


@pytest.mark.parametrize("job", ["hold_interpreter", "block_loop"])
def test_a_job_that_blocks_its_process_for_longer_than_the_lease_keeps_the_lease(site: Site, job: str) -> None:
    site.worker(lease_s=SHORT_S)
    # A second worker would take over if the lease expired.
    site.worker(lease_s=SHORT_S)
    x = site.enqueue(job, 5)
    assert x.result(PATIENCE_S) == "done"
    info = x.info()
    assert (info.fence, info.crashes, info.attempt_count) == (1, 0, 1)
    assert len(site.journal("started")) == 1


def test_a_worker_that_was_stopped_for_longer_than_its_lease_is_fenced_out(site: Site) -> None:
    old = site.worker(lease_s=SHORT_S)
    x = site.enqueue("gated", "go")
    child = site.wait_started(x)
    with old.frozen():
        new = site.worker(lease_s=SHORT_S)
        site.wait_started(x, fence=2)
        site.open("go")
        assert x.result(PATIENCE_S) == "done"
        ending = x.attempts()
        # The child is continued first, so that its report waits for the supervisor when that is continued.
        os.kill(child, signal.SIGCONT)
    assert x.attempts() == ending
    assert [(attempt.fence, attempt.status) for attempt in ending] == [(1, "lost"), (2, "success")]
    eventually(lambda: not is_alive(child), what="the death of the old child")
    eventually(lambda: old.check() and new.check() and len(site.live()) == 2, what="two live workers")
    handles = site.app.jobs["echo"].enqueue_many(range(20))
    assert [handle.result(PATIENCE_S) for handle in handles] == list(range(20))


def test_a_thread_that_does_not_stop_loses_its_slot_and_its_process_is_replaced(site: Site) -> None:
    worker = site.worker("--concurrency", "1")
    x = site.enqueue("deaf", "never")
    old = site.wait_started(x)
    site.wait_for(x, Status.FAILED)
    assert x.info().reason == "timeout"
    y = site.enqueue("echo", 1)
    assert y.result(PATIENCE_S) == 1
    assert [pid for id, _, pid in site.journal("ran") if id == y.id] != [old]
    eventually(lambda: not is_alive(old), what="the end of the old process")
    assert worker.check()
    assert (x.info().crashes, y.info().crashes) == (0, 0)


def test_running_executions_survive_the_death_of_all_processes_at_once(site: Site) -> None:
    workers = [site.worker("--processes", "2", lease_s=SHORT_S), site.worker(lease_s=SHORT_S)]
    handles = [site.enqueue("gated_async", "go") for _ in range(30)]
    for handle in handles:
        site.wait_started(handle)
    for worker in workers:
        worker.signal(signal.SIGKILL)
    for worker in workers:
        worker.wait()
    site.open("go")
    site.worker(lease_s=SHORT_S)
    assert {handle.result(PATIENCE_S) for handle in handles} == {"done"}
    assert {handle.info().fence for handle in handles} == {2}


def test_a_worker_that_is_killed_leaves_no_process_behind(site: Site) -> None:
    worker = site.worker("--processes", "2")
    eventually(lambda: len(site.live()) == 2, what="two live workers")
    children = worker.children()
    assert len(children) == 2
    worker.signal(signal.SIGKILL)
    worker.wait()
    eventually(lambda: not any(is_alive(pid) for pid in children), what="the death of the children")


def test_no_other_worker_loses_its_lease_when_a_process_is_stuck_in_a_write(file_site: Site) -> None:
    first = file_site.worker("--concurrency", "1", lease_s=6)
    innocent = file_site.enqueue("gated", "go")
    file_site.wait_started(innocent)
    file_site.worker("--concurrency", "1", lease_s=6)
    guilty = file_site.enqueue("hold_turn")
    file_site.wait_started(guilty)
    file_site.wait_started(guilty, fence=2)
    file_site.open("go")
    assert (innocent.result(PATIENCE_S), guilty.result(PATIENCE_S)) == ("done", "done")
    assert (innocent.info().fence, innocent.info().crashes) == (1, 0)
    assert (guilty.info().fence, guilty.info().crashes) == (2, 1)
    assert first.check()


def test_an_orphan_of_a_job_does_not_hide_the_death_of_its_worker(site: Site) -> None:
    site.worker(lease_s=600)
    x = site.enqueue("leave_a_daemon", "go")
    child, daemon = site.wait_started(x), site.wait_started(x, "daemon")
    os.kill(child, signal.SIGKILL)
    site.wait_started(x, fence=2)
    site.open("go")
    eventually(lambda: not is_alive(daemon), what="the end of the daemon")


def test_large_arguments_are_claimed_in_several_messages(site: Site) -> None:
    handles = site.app.jobs["size"].enqueue_many(["y" * 1_000_000] * 20)
    site.worker(lease_s=30)  # The lease is not what is tested, and megabytes take their time.
    assert {handle.result(2 * PATIENCE_S) for handle in handles} == {1_000_000}
    assert {handle.info().fence for handle in handles} == {1}


def test_a_worker_whose_database_was_deleted_says_so_and_stops(file_site: Site) -> None:
    worker = file_site.worker()
    x = file_site.enqueue("gated", "never")
    child = file_site.wait_started(x)
    (file_site.folder / "rota.db").unlink()
    assert worker.wait() == 2
    assert "rota.db was removed or replaced while it was in use" in worker.log()
    eventually(lambda: not is_alive(child), what="the end of the child")


def test_the_job_that_kills_its_worker_is_identified_and_the_others_are_not_charged(site: Site) -> None:
    site.worker(lease_s=600)
    innocent = [site.enqueue("gated", "go") for _ in range(3)]
    for x in innocent:
        site.wait_started(x)
    guilty = site.enqueue("die")
    site.wait_for(guilty, Status.FAILED)
    info = guilty.info()
    assert (info.reason, info.crashes) == ("crash_loop", 3)
    assert [attempt.reason for attempt in guilty.attempts()] == ["suspected", "crashed", "crashed", "crash_loop"]
    site.open("go")
    for x in innocent:
        assert x.result(PATIENCE_S) == "done"
        assert (x.info().crashes, x.attempts()[0].reason) == (0, "suspected")
        assert x.info().fence == 2, "it did not lose its second process"


def test_a_job_that_holds_the_event_loop_is_stopped_at_its_timeout_and_the_others_are_given_back(site: Site) -> None:
    site.worker(lease_s=600)
    innocent = site.enqueue("gated_async", "go")
    first = site.wait_started(innocent)
    guilty = site.enqueue("holds_the_loop")
    site.wait_started(guilty)
    site.wait_for(guilty, Status.FAILED)
    info = guilty.info()
    assert (info.reason, info.attempt_count, info.crashes) == ("timeout", 1, 0)
    assert "took longer than 1 s" in (guilty.attempts()[0].error_message or "")
    assert not is_alive(first)
    site.wait_started(innocent, fence=2)
    site.open("go")
    assert innocent.result(PATIENCE_S) == "done"
    assert (innocent.info().crashes, innocent.attempts()[0].reason) == (0, "drained")
