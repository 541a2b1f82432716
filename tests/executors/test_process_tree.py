"""Trees of processes: their members, their memory, and their end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rota.executors.process import process_tree
from tests.support.waiting import eventually

FAMILY = str(Path(__file__).with_name("programs") / "family.py")
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def start(*argv: str, **environment: str) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(argv, env={**os.environ, **environment}))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def present(pid: int) -> process_tree.Process:
    process = process_tree.read(pid)
    assert process is not None
    return process


def is_there(process: process_tree.Process) -> bool:
    now = process_tree.read(process.pid)
    return now is not None and now.start == process.start and not now.is_dead


def test_a_process_with_any_name_is_read(tmp_path: Path, start: Start) -> None:
    program = tmp_path / "a) R 1 (b"
    program.symlink_to("/bin/sleep")
    process = present(start(str(program), "1000").pid)
    assert process.parent == os.getpid()
    assert not process.is_dead


def test_a_pid_that_no_process_has_is_not_found() -> None:
    assert process_tree.read(2**22 + 1) is None
    assert process_tree.mark_of(2**22 + 1) == 0
    assert process_tree.children(2**22 + 1) == []


def test_descendants_are_found_by_their_parents_and_killed(start: Start) -> None:
    shell = start("sh", "-c", "sh -c 'sleep 1000; :' & sleep 1000; :")
    eventually(lambda: len(process_tree.family([present(shell.pid)])) == 4)
    found = process_tree.family([present(shell.pid)])
    assert process_tree.kill(lambda: process_tree.family([present(shell.pid)])) == 4
    eventually(lambda: not any(is_there(process) for process in found))


def dead_pid() -> int:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


def test_orphans_of_a_dead_spawner_are_found_by_their_mark(tmp_path: Path, start: Start) -> None:
    mark, file = process_tree.mark_for(dead_pid(), 7), tmp_path / "pids"

    def are_found() -> bool:
        """Whether the family was found. A worker of another test may find it first, and end it."""
        file.unlink(missing_ok=True)
        start("prlimit", f"--rttime={mark}:", sys.executable, FAMILY, str(file), "leave").wait()
        pids = {int(line) for line in file.read_text().split()[1:]} if file.exists() else set()
        found = {process.pid for process in process_tree.left_behind()} & pids
        marks = {process_tree.mark_of(pid) for pid in found}
        process_tree.kill(lambda: [one for one in process_tree.left_behind() if one.pid in pids])
        return bool(pids) and found == pids and marks == {mark}

    eventually(are_found, what="the family of a dead spawner")
    eventually(lambda: not any(process_tree.mark_of(one.pid) == mark for one in process_tree.left_behind()))


def test_a_stopped_orphan_is_killed(start: Start) -> None:
    sleep = start("prlimit", f"--rttime={process_tree.mark_for(dead_pid(), 7)}:", "sleep", "1000")
    eventually(lambda: process_tree.mark_of(sleep.pid))
    sleep.send_signal(signal.SIGSTOP)
    process_tree.kill(lambda: [one for one in process_tree.left_behind() if one.pid == sleep.pid])
    assert sleep.wait() == -signal.SIGKILL


def test_processes_of_a_live_spawner_are_not_orphans(start: Start) -> None:
    sleep = start("prlimit", f"--rttime={process_tree.mark_for(os.getpid(), 7)}:", "sleep", "1000")
    eventually(lambda: process_tree.mark_of(sleep.pid))
    assert sleep.pid not in {process.pid for process in process_tree.left_behind()}


def test_marks_of_another_container_are_ignored(monkeypatch: pytest.MonkeyPatch, start: Start) -> None:
    """There the pid that the mark names belongs to another process."""
    mark = process_tree.mark_for(dead_pid(), 7)
    sleep = start("prlimit", f"--rttime={mark}:", "sleep", "1000")
    eventually(lambda: process_tree.mark_of(sleep.pid))
    monkeypatch.setattr(process_tree, "_HERE", process_tree._HERE ^ 1)
    assert process_tree.mark_of(sleep.pid) == 0


def test_a_resource_limit_that_is_not_a_mark_is_ignored(start: Start) -> None:
    assert process_tree.mark_of(start("prlimit", "--rttime=5000000:", "sleep", "1000").pid) == 0


def test_a_signal_does_not_reach_another_process_with_the_same_pid(start: Start) -> None:
    sleep = start("sleep", "1000")
    process = present(sleep.pid)
    assert not process_tree.send_signal(process._replace(start=process.start - 1), signal.SIGKILL)
    assert is_there(process)
    assert process_tree.send_signal(process, signal.SIGKILL)
    assert sleep.wait() == -signal.SIGKILL
    assert not process_tree.send_signal(process, signal.SIGKILL)


def test_a_command_that_keeps_starting_processes_is_killed(start: Start) -> None:
    shell = start("sh", "-c", "while :; do sleep 1000 & /bin/true; done")
    eventually(lambda: len(process_tree.family([present(shell.pid)])) > 5)
    seen: dict[int, process_tree.Process] = {}

    def find() -> list[process_tree.Process]:
        members = process_tree.family([present(shell.pid)])
        seen.update((member.pid, member) for member in members)
        return members

    process_tree.kill(find)
    shell.wait()
    eventually(lambda: not any(is_there(process) for process in seen.values()))


def test_the_memory_of_a_tree_is_the_sum_of_its_processes(start: Start) -> None:
    program = "import signal; held = b'x' * 50_000_000; signal.pause()"
    process = present(start(sys.executable, "-c", program).pid)
    eventually(lambda: process_tree.resident_bytes([process]) > 50_000_000)
    assert process_tree.resident_bytes([process]) < 150_000_000
    assert process_tree.resident_bytes([]) == 0
