"""The dead man's switch: a worker process that outlives its lease is killed, even if its supervisor is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from rota.executors.process.spawner import Spawner
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site, is_alive

PROGRAMS = Path(__file__).parents[1] / "executors" / "programs"
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def start(*argv: str) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(argv, start_new_session=True, stdout=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
async def switch() -> AsyncIterator[Spawner]:
    switch = Spawner()
    yield switch
    switch.close()
    await switch.closed()


def killed(process: subprocess.Popen[bytes]) -> bool:
    return process.wait(PATIENCE_S) == -signal.SIGKILL


async def test_a_process_is_killed_when_its_lease_expires_and_not_before(start: Start, switch: Spawner) -> None:
    kept, late = start("sleep", "1000"), start("sleep", "1000")
    now = time.monotonic()
    switch.hold(kept.pid, now + 0.2)
    switch.hold(late.pid, now + 0.4)
    switch.hold(kept.pid, now + 1000)
    assert killed(late)
    assert time.monotonic() > now + 0.4
    assert kept.poll() is None


async def test_the_process_group_of_a_killed_process_is_killed_too(start: Start, switch: Spawner) -> None:
    shell = start("sh", "-c", "sleep 1000 & echo $!; wait")
    assert shell.stdout is not None
    child = int(shell.stdout.readline())
    os.kill(shell.pid, signal.SIGSTOP)
    switch.hold(shell.pid, time.monotonic())
    assert killed(shell)
    eventually(lambda: not is_alive(child))


async def test_programs_of_a_worker_process_end_with_it_while_its_supervisor_does_nothing(
    start: Start, switch: Spawner
) -> None:
    """As when the supervisor was killed and its last thread, and with it the spawner's socket, still exists."""
    shell = start("sh", "-c", "sleep 1000 > /dev/null & echo $!; wait")
    assert shell.stdout is not None
    program = int(shell.stdout.readline())
    switch.hold(shell.pid, time.monotonic() + 1000)
    shell.kill()
    eventually(lambda: not is_alive(program), what="the end of the program")


def test_programs_of_a_worker_process_end_if_the_supervisor_dies_while_its_spawner_starts() -> None:
    """The spawner has not read the message that names the worker process when it sees that it has no owner."""
    argv = [sys.executable, str(PROGRAMS / "supervisor.py")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        spawner, shell, program = map(int, supervisor.stdout.readline().split())
        os.kill(shell, signal.SIGKILL)
        supervisor.kill()
        supervisor.wait()
    os.kill(spawner, signal.SIGCONT)
    eventually(lambda: not is_alive(spawner), what="the end of the spawner")
    try:
        eventually(lambda: not is_alive(program), what="the end of the program")
    finally:
        if is_alive(program):
            os.kill(program, signal.SIGKILL)


async def test_processes_that_have_ended_are_forgotten(start: Start, switch: Spawner) -> None:
    short, gone, late = start("true"), start("true"), start("sleep", "1000")
    gone.wait()
    for process in (short, gone, late):
        switch.hold(process.pid, time.monotonic() + 0.1)
    assert killed(late)
    assert short.wait(PATIENCE_S) == 0


async def test_a_stopped_spawner_reads_the_renewed_lease_before_it_kills(start: Start, switch: Spawner) -> None:
    kept, late = start("sleep", "1000"), start("sleep", "1000")
    until = time.monotonic() + 0.2
    switch.hold(kept.pid, until)
    pid = switch.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    while time.monotonic() < until:
        pass
    switch._post = lambda *_: None  # type: ignore[method-assign]
    assert switch._connection is not None
    switch._connection.post({"do": "hold", "pid": kept.pid, "until": until + 1000})
    switch._connection.post({"do": "hold", "pid": late.pid, "until": until})
    os.kill(pid, signal.SIGCONT)
    assert killed(late)
    assert kept.poll() is None


async def test_a_spawner_that_was_killed_is_replaced(start: Start, switch: Spawner) -> None:
    process = start("sleep", "1000")
    switch.hold(process.pid, time.monotonic() + 1000)
    first = switch.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert switch._connection is not None
    await switch._connection.ended
    switch.hold(process.pid, time.monotonic())
    assert killed(process)
    assert switch.pid != first


def test_a_job_that_holds_the_interpreter_lock_is_killed_while_its_supervisor_is_stopped(file_site: Site) -> None:
    """The lease is not renewed, and no code of the worker process can run to notice that."""
    worker = file_site.worker(lease_s=1)
    x = file_site.enqueue("hold_interpreter", int(3 * PATIENCE_S))
    child = file_site.wait_started(x)
    worker.signal(signal.SIGSTOP)
    eventually(lambda: not is_alive(child), what="the end of the child")
    worker.signal(signal.SIGCONT)
    assert worker.check()
    x.cancel()
