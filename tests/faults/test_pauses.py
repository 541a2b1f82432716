"""Processes that are stopped, continued or busy: a worker that lost its lease is fenced out, a busy one keeps it."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from rota.sdk.app import registry_of
from rota.store import notes
from tests.faults.trial import LEASE_S, PATIENCE_S, Trial, eventually, every_tick_is_known_once
from tests.kill.databases import stop
from tests.kill.effects import Answer
from tests.kill.fleet import Program
from tests.kill.processes import Process
from tests.support.workers import is_alive

pytestmark = pytest.mark.timeout(3 * PATIENCE_S)

COMPUTING_LEASE_S = 1.5
LONG_S = 600.0


def test_worker_is_stopped_for_three_leases_and_continued(trial: Trial) -> None:
    """It is continued while the next holder runs, and stops by itself. If it still acts, it is refused."""
    x = trial.enqueue("stepped", before="before-{}", after="after-{}")
    old = trial.worker()
    fence = trial.wait_for(x, "start")
    nexts = range(fence + 1, fence + 9)
    child = trial.child(old)
    stopped_at = time.monotonic()
    spawners = trial.spawners(old)
    stop([child, old.process, *spawners], trial.url)
    trial.worker()
    for number in nexts:
        trial.open(f"before-{number}")
    eventually(lambda: any(answer is Answer.DONE for _, answer in trial.charges(x)), what="the next holder's effect")
    eventually(lambda: time.monotonic() > stopped_at + 3 * LEASE_S, what="three leases")
    trial.open(f"before-{fence}")
    trial.open(f"after-{fence}")
    _go_on(child)
    eventually(child.is_gone, what="the end of the process that lost its lease")
    for process in (old.process, *spawners):
        _go_on(process)
    assert (fence, Answer.DONE) not in trial.charges(x)
    for number in nexts:
        trial.open(f"after-{number}")
    assert trial.result(x) in nexts
    assert trial.history(x)[fence - 1].status == "lost"
    trial.check()


def test_supervisor_alone_is_stopped_for_longer_than_its_lease(trial: Trial) -> None:
    """The lease of its child is not renewed. Neither the child nor its processes may run beside the next holder."""
    x = trial.enqueue("remaining")
    old = trial.worker()
    left, child = trial.left(), trial.child(old)
    stop([old.process], trial.url)
    eventually(child.is_gone, what="the end of the child")
    eventually(lambda: not is_alive(left), what="the end of what its command had started")
    trial.worker()
    assert trial.result(x) == 2
    _go_on(old.process)
    trial.check()


def test_two_supervisors_fire_the_same_ticks(trial: Trial) -> None:
    """One is stopped until the other has taken over its schedules, and is then continued."""
    rates = [trial.schedule(name=f"rate-{number}", every="1s") for number in range(6)]
    first, _ = trial.worker(), trial.worker()
    trial.joined(2)
    eventually(lambda: all(rate.ticks() for rate in rates), what="ticks")
    child = trial.child(first)
    spawners = trial.spawners(first)
    stop([first.process, child, *spawners], trial.url)
    seen = [len(rate.ticks()) for rate in rates]
    stopped_at = time.monotonic()
    eventually(lambda: time.monotonic() > stopped_at + 2 * LEASE_S, what="two leases")
    eventually(lambda: all(len(rate.ticks()) > before for rate, before in zip(rates, seen, strict=True)), what="ticks")
    for process in (first.process, child, *spawners):
        _go_on(process)
    seen = [len(rate.ticks()) for rate in rates]
    eventually(lambda: all(len(rate.ticks()) > before for rate, before in zip(rates, seen, strict=True)), what="ticks")
    for rate in rates:
        rate.pause()
        every_tick_is_known_once(rate)
    trial.check()


def test_async_job_uses_the_processor_for_several_leases(trial: Trial) -> None:
    """Another worker would take over if the lease expired."""
    x = trial.enqueue("computing", seconds=3 * COMPUTING_LEASE_S)
    trial.worker(lease_s=COMPUTING_LEASE_S)
    trial.wait_for(x, "start")
    trial.worker(lease_s=COMPUTING_LEASE_S)
    assert trial.result(x) == 1
    assert [attempt.status for attempt in trial.history(x)] == ["success"]
    trial.check()


def test_child_writes_a_hundred_megabytes_to_its_output(trial: Trial) -> None:
    """They do not stay in the memory of the worker, and only a bounded part in the database."""
    worker = trial.worker(lease_s=LONG_S)
    trial.joined(1)
    before = _peaks(trial, worker)
    x = trial.enqueue("shouting")
    assert trial.result(x) == 1
    after = _peaks(trial, worker)
    print(f"peaks of supervisor and child in MB: {before} before, {after} after")
    assert max(one - other for one, other in zip(after, before, strict=True)) < 60
    lines = registry_of(trial.app).connection.store().read(notes.lines, "default", x.id, most=1_000_000)
    kept = sum(len(line.text) for line in lines)
    assert 10_000_000 < kept < 17_000_000
    trial.check()


def _peaks(trial: Trial, worker: Program) -> list[int]:
    """The most memory that the supervisor and its child have held so far, in megabytes."""
    return [_peak(worker.pid), _peak(trial.child(worker).pid)]


def _peak(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def _go_on(process: Process) -> None:
    process.signal(signal.SIGCONT)
