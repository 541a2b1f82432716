"""Worker processes that are stopped, held by a debugger or frozen: they lose their executions after a lease."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota import Status
from rota.clock import ManualClock
from rota.domain.errors import StoreUnavailable
from rota.engine import standstill
from rota.engine.standstill import IdleWriter, ProcessState, Standstill, is_writing, process_state
from rota.store.port import WRITER
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site, is_alive

LEASE_S = 8.0


@pytest.fixture
def sleeper() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "1000"])
    yield process.pid
    process.kill()
    process.wait()


def test_a_stopped_process_stands_still_and_one_that_sleeps_does_not(sleeper: int) -> None:
    eventually(lambda: Path(f"/proc/{sleeper}/comm").read_text() == "sleep\n", what="the program")
    assert process_state(sleeper).why == ""
    os.kill(sleeper, signal.SIGSTOP)
    eventually(lambda: process_state(sleeper).why == "it was stopped by a signal", what="a process that stands still")
    os.kill(sleeper, signal.SIGCONT)
    eventually(lambda: process_state(sleeper).why == "", what="a process that runs")


def test_a_process_that_is_gone_does_not_stand_still() -> None:
    assert process_state(2**22 + 1) == ProcessState("", 0)
    assert not is_writing(2**22 + 1, WRITER)


@pytest.mark.parametrize(("state", "expected"), [("R", True), ("D", True), ("S", False), ("T", False), ("t", False)])
def test_a_thread_counts_as_writing_while_it_runs_or_waits_for_processor_or_disk(
    tmp_path: Path, state: str, expected: bool
) -> None:
    for number, (name, letter) in enumerate([("python", "R"), (WRITER, state), ("a) R (b", "R")]):
        task = tmp_path / "7" / "task" / str(number)
        task.mkdir(parents=True)
        (task / "stat").write_text(f"{number} ({name}) {letter} 1 1 1 0 -1 0 0 0 0 0 30 12 0 0 20 0 1 0 9 4096 3")
    assert is_writing(7, WRITER, tmp_path) is expected


def test_a_writer_that_has_not_worked_for_long_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    at_work = True
    monkeypatch.setattr(standstill, "is_writing", lambda pid, thread: at_work)
    writer = IdleWriter(3.0)
    assert [writer.is_idle(7, waited_s) for waited_s in (1.0, 4.0, 60.0)] == [False, False, False]
    at_work = False
    assert [writer.is_idle(7, waited_s) for waited_s in (61.0, 62.9, 63.0)] == [False, False, True]
    # The next heartbeat that waits.
    assert [writer.is_idle(7, waited_s) for waited_s in (1.0, 2.9, 3.0)] == [False, False, True]


@pytest.mark.parametrize(
    ("state", "frozen", "why"), [("S", 1, "its cgroup is frozen"), ("S", 0, ""), ("t", 0, "a deb")]
)
def test_a_frozen_or_traced_process_stands_still(tmp_path: Path, state: str, frozen: int, why: str) -> None:
    process, group = tmp_path / "proc" / "7", tmp_path / "cgroup" / "jobs"
    process.mkdir(parents=True)
    group.mkdir(parents=True)
    (process / "stat").write_text(f"7 (a b) c) {state} 1 1 1 0 -1 0 0 0 0 0 30 12 0 0 20 0 1 0 9 4096 3")
    (process / "cgroup").write_text("1:freezer:/\n0::/jobs\n")
    (group / "cgroup.events").write_text(f"populated 1\nfrozen {frozen}\n")
    found = process_state(7, tmp_path / "proc", tmp_path / "cgroup")
    assert found.why.startswith(why)
    assert bool(found.why) == bool(why)
    assert (found.ticks, found.memory) == (42, 3 * os.sysconf("SC_PAGE_SIZE"))


class Scene:
    """One worker whose process is as `now` says."""

    def __init__(self) -> None:
        self.now = ProcessState("", 0)
        self.clock = ManualClock()
        self.told: list[str] = []
        self.ended: list[str] = []
        self.problem = False
        self.watch = Standstill(
            self.clock, LEASE_S, lambda: {1: self.now}, self._tell, lambda _, why: self.ended.append(why)
        )

    async def _tell(self, worker: int, why: str) -> None:
        if self.problem:
            raise StoreUnavailable("away")
        self.told.append(why)

    async def looks(self, *found: ProcessState) -> None:
        for self.now in found:
            await self.watch.step()
            self.clock.advance(LEASE_S / 4)


async def test_a_process_that_stands_still_for_a_lease_is_killed_and_a_continued_one_is_not() -> None:
    scene = Scene()
    runs, stopped = ProcessState("", 5), ProcessState("stopped", 5)
    await scene.looks(runs, *[stopped] * 4, runs, *[stopped] * 4)
    assert (scene.told, scene.ended) == (["stopped", "", "stopped"], [])
    await scene.looks(stopped)
    assert scene.ended == ["stopped"]


async def test_a_process_that_uses_the_processor_between_checks_does_not_stand_still() -> None:
    """As under `strace`, where it stops for an instant at every system call."""
    scene = Scene()
    await scene.looks(*(ProcessState("a debugger holds it", ticks) for ticks in range(20)))
    assert scene.ended == []


async def test_a_stopped_process_is_killed_while_the_store_is_unavailable() -> None:
    scene = Scene()
    scene.problem = True
    scene.now = ProcessState("stopped", 5)
    for _ in range(5):
        with pytest.raises(StoreUnavailable):
            await scene.watch.step()
        scene.clock.advance(LEASE_S / 4)
    assert scene.ended == ["stopped"]


def test_executions_of_a_stopped_process_run_elsewhere_after_a_lease(site: Site) -> None:
    worker = site.worker(lease_s=2)
    x = site.enqueue("gated", "go")
    cancelled = site.enqueue("gated", "never")
    child = site.wait_started(x)
    site.wait_started(cancelled)
    os.kill(child, signal.SIGSTOP)
    assert cancelled.cancel() is Status.RUNNING
    eventually(lambda: "stopped by a signal" in (site.live()[0].trouble or ""), what="its trouble in the database")
    site.wait_for(cancelled, Status.CANCELLED)
    assert not is_alive(child)
    site.wait_started(x, fence=2)
    site.open("go")
    assert x.result(PATIENCE_S) == "done"
    assert "stood still for longer than its lease" in (x.attempts()[0].error_message or "")
    assert "stands still: it was stopped by a signal" in worker.log()


def test_a_process_that_is_continued_in_time_keeps_its_executions(file_site: Site) -> None:
    file_site.worker(lease_s=LEASE_S)
    x = file_site.enqueue("gated", "go")
    child = file_site.wait_started(x)
    os.kill(child, signal.SIGSTOP)
    eventually(lambda: file_site.live()[0].trouble, what="its trouble in the database")
    os.kill(child, signal.SIGCONT)
    eventually(lambda: file_site.live()[0].trouble is None, what="the end of its trouble")
    file_site.open("go")
    assert x.result(PATIENCE_S) == "done"
    assert (x.info().fence, x.info().crashes) == (1, 0)
