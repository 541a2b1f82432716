"""Trees of processes: who belongs to one, what it holds, and its end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rota.executors import tree
from tests.support.waiting import eventually

FAMILY = str(Path(__file__).with_name("programs") / "family.py")
CONTAINER = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")
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


def present(pid: int) -> tree.Process:
    process = tree.read(pid)
    assert process is not None
    return process


def is_there(process: tree.Process) -> bool:
    now = tree.read(process.pid)
    return now is not None and now.start == process.start and not now.is_dead


def test_a_process_is_read_whatever_its_name(tmp_path: Path, start: Start) -> None:
    program = tmp_path / "a) R 1 (b"
    program.symlink_to("/bin/sleep")
    process = present(start(str(program), "1000").pid)
    assert (process.parent, process.session) == (os.getpid(), os.getsid(0))
    assert not process.is_dead


def test_a_number_that_nobody_has_is_nobody() -> None:
    assert tree.read(2**22 + 1) is None
    assert tree.mark(2**22 + 1) == 0
    assert tree.children(2**22 + 1) == []


def test_descendants_are_found_by_their_parents(start: Start) -> None:
    shell = start("sh", "-c", "sh -c 'sleep 1000; :' & sleep 1000; :")
    eventually(lambda: len(tree.descendants(shell.pid)) == 3)
    found = tree.descendants(shell.pid)
    assert {process.pid for process in found} == tree.walk([present(shell.pid)]).keys() - {shell.pid}
    assert tree.kill(lambda: tree.descendants(shell.pid)) == 3
    eventually(lambda: not any(is_there(process) for process in found))


@pytest.mark.parametrize("carrier", ["limit", "variable"])
def test_the_marked_are_found_and_killed_wherever_they_are(
    tmp_path: Path, start: Start, carrier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tree.has_limits
    monkeypatch.setattr(tree, "has_limits", carrier == "limit")
    stage = present(os.getpid())
    mark = tree.mark_for(stage.pid, 7)
    file = tmp_path / "pids"
    argv = (sys.executable, FAMILY, str(file), "leave")
    if carrier == "limit":
        start("prlimit", f"--rttime={mark}:", *argv).wait()
    else:
        start(*argv, **{tree.MARK: str(mark)}).wait()
    pids = [int(line) for line in file.read_text().split()]
    left = [process for process in map(tree.read, pids[1:]) if process is not None]
    wiped = left[-1]
    eventually(lambda: b"sleep" in tree._content(f"/proc/{wiped.pid}/cmdline"))
    if carrier == "variable":
        assert tree.mark(wiped.pid) == 0
        tree.send(left.pop(), signal.SIGKILL)  # Which only the stage finds: it becomes its parent.
    assert {tree.mark(process.pid) for process in left} == {mark}
    assert tree.marked(stage._replace(pid=stage.pid + 1)) == []
    assert {process.pid for process in tree.marked(stage)} == {process.pid for process in left}
    assert tree.kill(lambda: tree.marked(stage)) == len(left)
    eventually(lambda: not any(is_there(process) for process in (*left, wiped)))


def test_the_marked_of_another_container_are_not_ours(start: Start) -> None:
    """There the number that the mark names belongs to another process."""
    if not shutil.which("unshare") or subprocess.run([*CONTAINER, "true"], check=False).returncode:
        pytest.skip("no namespace of processes can be made here")
    stage = present(os.getpid())
    marked = ("prlimit", f"--rttime={tree.mark_for(stage.pid, 7)}:", "sleep", "1000")
    ours, container = start(*marked), start(*CONTAINER, *marked)
    eventually(lambda: any(tree.mark(pid) for pid in tree.children(container.pid)))
    assert eventually(lambda: tree.marked(stage)) == [present(ours.pid)]


def test_a_mark_that_means_something_else_is_none(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tree.mark(start("prlimit", "--rttime=5000000:", "sleep", "1000").pid) == 0
    monkeypatch.setattr(tree, "has_limits", False)
    assert tree.mark(start("sleep", "1000", **{tree.MARK: "not a number"}).pid) == 0


def test_without_such_a_limit_the_environment_holds_the_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tree.MARK not in os.environ
    monkeypatch.setattr(tree, "has_limits", False)
    assert tree.put_on(5, {"A": "b"}) == {"A": "b", tree.MARK: "5"}


def test_a_signal_does_not_reach_another_process_with_the_same_number(start: Start) -> None:
    sleep = start("sleep", "1000")
    process = present(sleep.pid)
    assert not tree.send(process._replace(start=process.start - 1), signal.SIGKILL)
    assert is_there(process)
    assert tree.send(process, signal.SIGKILL)
    assert sleep.wait() == -signal.SIGKILL
    assert not tree.send(process, signal.SIGKILL)


def test_what_starts_others_all_the_time_is_killed(start: Start) -> None:
    shell = start("sh", "-c", "while :; do sleep 1000 & /bin/true; done")
    eventually(lambda: len(tree.descendants(shell.pid)) > 5)
    seen: dict[int, tree.Process] = {}

    def find() -> list[tree.Process]:
        among = tree.everyone()
        members = [among[shell.pid], *tree.descendants(shell.pid, among)]
        seen.update((member.pid, member) for member in members)
        return members

    tree.kill(find)
    shell.wait()
    eventually(lambda: not any(is_there(process) for process in seen.values()))


def test_what_hides_from_a_look_is_found_by_one_of_the_next(start: Start) -> None:
    """As something does that forks and ends all the time: a look may fall between two of its processes."""
    first, last = (present(start("sleep", "1000").pid) for _ in range(2))
    seen = iter([[first], [], [], [last], [], [], [], [first, last]])
    assert tree.kill(lambda: next(seen), quiet=3) == 2
    assert next(seen) == [first, last]
    eventually(lambda: not is_there(first) and not is_there(last))


def test_those_without_a_mark_are_remembered_as_long_as_they_live(start: Start) -> None:
    bare: set[tuple[int, int]] = {(2**22 + 1, 5)}
    sleep, parent = present(start("sleep", "1000").pid), present(os.getppid())
    list(tree.strays(bare))
    assert (2**22 + 1, 5) not in bare
    assert (sleep.pid, sleep.start) not in bare, "it may be about to put one on"
    assert (parent.pid, parent.start) in bare or tree._now() < parent.start + tree._GROWN_TICKS


def test_a_stage_that_is_not_shown_to_us_is_not_gone() -> None:
    assert tree._is_hidden(1) == (os.getuid() != 0)
    assert not tree._is_hidden(2**22 + 1)


def test_the_memory_of_a_tree_is_that_of_its_processes(start: Start) -> None:
    program = "import signal; held = b'x' * 50_000_000; signal.pause()"
    process = present(start(sys.executable, "-c", program).pid)
    eventually(lambda: tree.resident_bytes([process]) > 50_000_000)
    assert tree.resident_bytes([process]) < 150_000_000
    assert tree.resident_bytes([]) == 0
