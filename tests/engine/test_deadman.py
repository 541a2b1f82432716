"""The dead man's switch: who stands still, and whose child cannot let go by itself, loses that child all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from rota.engine.deadman import Deadman
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site, is_alive

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
def switch() -> Iterator[Deadman]:
    switch = Deadman(slack_s=0.01)
    yield switch
    switch.close()


def killed(process: subprocess.Popen[bytes]) -> bool:
    return process.wait(PATIENCE_S) == -signal.SIGKILL


def test_a_process_is_ended_when_its_time_is_over_and_not_before(start: Start, switch: Deadman) -> None:
    kept, late = start("sleep", "1000"), start("sleep", "1000")
    now = time.monotonic()
    switch.hold(kept.pid, now + 0.2)
    switch.hold(late.pid, now + 0.4)
    switch.hold(kept.pid, now + 1000)
    assert killed(late)
    assert time.monotonic() > now + 0.4
    assert kept.poll() is None


def test_what_it_started_in_its_group_ends_with_it(start: Start, switch: Deadman) -> None:
    shell = start("sh", "-c", "sleep 1000 & echo $!; wait")
    assert shell.stdout is not None
    child = int(shell.stdout.readline())
    os.kill(shell.pid, signal.SIGSTOP)
    switch.hold(shell.pid, time.monotonic())
    assert killed(shell)
    eventually(lambda: not is_alive(child))


def test_processes_that_have_ended_are_forgotten(start: Start, switch: Deadman) -> None:
    short, gone, late = start("true"), start("true"), start("sleep", "1000")
    gone.wait()
    for process in (short, gone, late):
        switch.hold(process.pid, time.monotonic() + 0.1)
    assert killed(late)
    assert short.wait(PATIENCE_S) == 0


def test_a_switch_that_was_killed_is_replaced(start: Start, switch: Deadman) -> None:
    process = start("sleep", "1000")
    switch.hold(process.pid, time.monotonic() + 1000)
    assert switch._process is not None
    switch._process.kill()
    switch._process.wait()
    switch.hold(process.pid, time.monotonic())
    assert killed(process)


def test_a_job_that_holds_the_interpreter_ends_though_its_supervisor_stands_still(file_site: Site) -> None:
    """Nobody renews its lease, and nothing in its own process can run to let go."""
    worker = file_site.worker()
    x = file_site.enqueue("hold_interpreter", int(3 * PATIENCE_S))
    child = file_site.wait_started(x)
    worker.signal(signal.SIGSTOP)
    eventually(lambda: not is_alive(child), what="the end of the child")
    worker.signal(signal.SIGCONT)
    assert worker.check()
    x.cancel()
