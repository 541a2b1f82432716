"""A machine without disk space, descriptors or processes; and processes that ignore SIGTERM."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from rota import Handle
from rota.domain.errors import StoreUnavailable
from tests.executors.test_spawner import no_more_processes
from tests.faults.trial import PATIENCE_S, Trial, eventually
from tests.kill.fleet import Program
from tests.support.workers import is_alive

pytestmark = pytest.mark.timeout(3 * PATIENCE_S)

LONG_S = 600.0


# --- Room ---


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes, if we may make one."""
    room = tmp_path / "room"
    room.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(room)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may make a small disk")
    yield room
    subprocess.run(["umount", "--lazy", str(room)], check=True)


def test_disk_is_full_and_back(disk: Path, tmp_path: Path) -> None:
    """A file. What a server does without room is shown by test_a_full_disk_loses_nothing."""
    with Trial(tmp_path, f"sqlite:///{disk}/rota.db") as trial:
        worker = trial.worker()
        x = trial.enqueue("stepped", before="go")
        trial.wait_for(x, "start")
        _fill(disk / "filler")
        eventually(lambda: _is_refused(trial), what="a refusal")
        trial.open("go")
        trial.wait_for(x, "end")
        eventually(lambda: "no space left" in trial.logs(), what="a word about it")
        (disk / "filler").unlink()
        assert trial.result(x) >= 1
        assert trial.result(trial.enqueue("stepped")) >= 1
        assert worker.code() is None
        trial.check()


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 4096)


def _is_refused(trial: Trial) -> bool:
    """Until there is no room left in what the file has already; whatever is accepted until then must end as well."""
    ticket = trial.asked()
    try:
        x = trial.app.jobs["stepped"].enqueue(ticket, "")
    except StoreUnavailable as error:
        return "no space left" in str(error)
    trial.answered(ticket, x.id)
    return False


# --- Descriptors ---


def test_no_file_descriptors_in_the_supervisor(trial: Trial) -> None:
    """It cannot start the next process: it keeps running, logs that, and tries again."""
    worker, x = _at_work(trial)
    with contextlib.suppress(ProcessLookupError), _no_more_descriptors(worker.pid):
        _lose_the_child(trial, worker)
    assert worker.code() is None, trial.logs()
    trial.open("go")
    assert trial.result(x) == 2
    trial.check()


def test_no_file_descriptors_in_a_worker_process(trial: Trial) -> None:
    """A job that needs one fails, as it would anywhere, and is tried again."""
    worker, x = _at_work(trial)
    with _no_more_descriptors(trial.child(worker).pid) as limit:
        y = _failed(trial, limit)
    assert trial.result(y) > 1
    trial.open("go")
    assert trial.result(x) == 1
    trial.ends_as(y, "success", "completed")
    trial.check()


def _failed(trial: Trial, limit: Callable[[], None]) -> Handle[int]:
    """A job that found no descriptor. One that was in use only while we looked is free again, so look again."""
    while True:
        limit()
        y = trial.enqueue("opening")
        eventually(partial(trial.history, y), what="an attempt")
        if "Too many open files" in (trial.history(y)[0].error or ""):
            return y


@contextlib.contextmanager
def _no_more_descriptors(pid: int) -> Iterator[Callable[[], None]]:
    usual = resource.prlimit(pid, resource.RLIMIT_NOFILE)

    def limit() -> None:
        used = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
        lowest = next(number for number in range(len(used) + 1) if number not in used)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest, usual[1]))

    limit()
    try:
        yield limit
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, usual)


# --- Processes ---


def test_fork_fails_in_the_supervisor(trial: Trial) -> None:
    worker, x = _at_work(trial)
    with contextlib.suppress(ProcessLookupError), no_more_processes(worker.pid):
        _lose_the_child(trial, worker)
    assert worker.code() is None, trial.logs()
    trial.open("go")
    assert trial.result(x) == 2
    trial.check()


def test_fork_fails_in_the_spawner(trial: Trial) -> None:
    """A command for which no process can be started runs later, and no attempt is counted."""
    worker, x = _at_work(trial)
    (spawner,) = trial.spawners(worker)
    with no_more_processes(spawner.pid):
        y = trial.enqueue("forking")
        eventually(lambda: trial.history(y), what="an attempt that failed")
        assert "no process could be started" in (trial.history(y)[0].error or "")
    assert trial.result(y) > 1
    trial.open("go")
    assert trial.result(x) == 1
    trial.ends_as(y, "success", "completed")
    trial.check()


def _at_work(trial: Trial) -> tuple[Program, Handle[int]]:
    """A worker in the middle of an execution, with a lease that does not matter."""
    x = trial.enqueue("stepped", before="go")
    worker = trial.worker(lease_s=LONG_S)
    trial.wait_for(x, "start")
    return worker, x


def _lose_the_child(trial: Trial, worker: Program) -> None:
    """Kills the process of a worker that cannot start another, and waits until it has tried."""
    child = trial.child(worker)
    child.signal(signal.SIGKILL)
    eventually(child.is_gone, what="the end of the child")
    eventually(lambda: worker.code() is not None or "cannot start" in trial.logs(), what="a word about it")


# --- Processes that stay ---


def test_child_ignores_sigterm(trial: Trial) -> None:
    trial.worker(lease_s=LONG_S)
    x = trial.enqueue("stubborn")
    stubborn = trial.left()
    x.cancel()
    trial.ends_as(x, "cancelled", "cancelled")
    eventually(lambda: not is_alive(stubborn), what="the end of the command")
    trial.check()


def test_grandchild_in_its_own_session(trial: Trial) -> None:
    trial.worker(lease_s=LONG_S)
    x = trial.enqueue("parent")
    left = trial.left()
    assert trial.result(x) == 1
    assert not is_alive(left)
    trial.check()
