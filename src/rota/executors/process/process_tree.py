"""Trees of processes, as Linux shows them in /proc: their members, their memory and their end.

A process is identified by its pid and its start time, because the kernel reuses pids.

A spawner marks the processes that it starts with a number in a resource limit that has no effect: RLIMIT_RTTIME, as
tens of thousands of years. Descendants inherit the mark, also if their parent has ended or they have made a session of
their own. So the mark of an orphan names its command and its spawner. It also names the PID namespace: in another
container the same pid belongs to another process.

The spawner's own program imports this file: nothing but the standard library here.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from collections.abc import Callable, Iterable
from typing import NamedTuple

MOST_ROUNDS = 50
_SIGN_BIT, _PID_BITS, _ID_BITS = 61, 22, 24
_LIMIT = b"Max realtime timeout"
_PAGE = os.sysconf("SC_PAGESIZE")


class Process(NamedTuple):
    """One process at one moment."""

    pid: int
    parent: int
    start: int
    """In ticks since the machine booted."""
    state: str

    @property
    def is_dead(self) -> bool:
        """Whether it is a zombie."""
        return self.state in "ZX"


def read(pid: int) -> Process | None:
    """The process with this pid, if there is one."""
    data = _content(f"/proc/{pid}/stat")
    if not data:
        return None
    # The name stands in brackets and may hold anything, brackets and spaces included.
    fields = data[data.rindex(b")") + 2 :].split(maxsplit=20)
    return Process(pid, int(fields[1]), int(fields[19]), fields[0].decode())


def present(pids: Iterable[int]) -> list[Process]:
    return [process for process in map(read, pids) if process is not None]


def children(pid: int) -> list[int]:
    """The children of a process. Some may be missing if it starts or reaps others meanwhile."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, _content(f"/proc/{pid}/task/{task}/children").split())
    return found


def family(roots: Iterable[Process]) -> list[Process]:
    """The roots and their descendants. Complete once all of them are stopped: see `kill`."""
    found: dict[int, Process] = {}
    line = list(roots)
    while line:
        process = line.pop()
        if process.pid not in found:
            found[process.pid] = process
            line += present(children(process.pid))
    return list(found.values())


def resident_bytes(processes: Iterable[Process]) -> int:
    """The sum of the memory of the processes; shared pages are counted for each process."""
    pages = 0
    for process in processes:
        fields = _content(f"/proc/{process.pid}/statm").split()
        pages += int(fields[1]) if len(fields) > 1 else 0
    return pages * _PAGE


# --- Marks ------------------------------------------------------------------------------------------------------------


def mark_for(spawner: int, id: int) -> int:
    """The mark of the command `id` of a spawner in our PID namespace."""
    return (_HERE << _PID_BITS | spawner) << _ID_BITS | id % (1 << _ID_BITS)


def set_mark(mark: int) -> None:
    """Marks this process, and so all processes that it starts from now on."""
    with contextlib.suppress(OSError, ValueError):  # The limit was lowered, or the system has none.
        resource.setrlimit(resource.RLIMIT_RTTIME, (mark, resource.RLIM_INFINITY))


def mark_of(pid: int) -> int:
    """The mark of a process; 0 if it has none, has one of another PID namespace, or has ended."""
    words = _content(f"/proc/{pid}/limits").partition(_LIMIT)[2].split(maxsplit=1)
    number = int(words[0]) if words and words[0].isdigit() else 0
    return number if number >> _PID_BITS + _ID_BITS == _HERE else 0


def left_behind() -> list[Process]:
    """Processes whose spawner is gone, and their descendants, without the calling process."""
    everyone = present(int(name) for name in os.listdir("/proc") if name.isdigit())
    roots = [process for process in everyone if _is_left_behind(process)]
    return [process for process in family(roots) if process.pid != os.getpid()]


def _is_left_behind(process: Process) -> bool:
    if process.is_dead or not (number := mark_of(process.pid)):
        return False
    pid = number >> _ID_BITS & (1 << _PID_BITS) - 1
    spawner = read(pid)
    return (
        spawner is None or spawner.is_dead or spawner.start > process.start
    )  # A later process has the pid of the spawner.


def _namespace() -> int:
    try:
        return 1 << _SIGN_BIT - _PID_BITS - _ID_BITS | os.stat("/proc/self/ns/pid").st_ino & 0x7FFF  # noqa: PTH116
    except OSError:
        return 1 << _SIGN_BIT - _PID_BITS - _ID_BITS


_HERE = _namespace()


# --- Signals ----------------------------------------------------------------------------------------------------------


def send_signal(process: Process, number: int) -> bool:
    """Sends a signal to this process, never to a later one with the same pid; returns whether it still existed."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        now = read(process.pid)
        if now is None or now.start != process.start:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def kill(find: Callable[[], Iterable[Process]]) -> int:
    """Kills all processes that `find` returns, and those that they start meanwhile; returns how many there were.

    A stopped process starts no others. So all are stopped first, and `find` is called until it returns no new one.
    """
    found: dict[tuple[int, int], Process] = {}
    for _ in range(MOST_ROUNDS):
        new = [one for one in find() if not one.is_dead and (one.pid, one.start) not in found]
        if not new:
            break
        for process in new:
            found[process.pid, process.start] = process
            send_signal(process, signal.SIGSTOP)
    for process in found.values():
        send_signal(process, signal.SIGKILL)
    return len(found)


def _content(path: str) -> bytes:
    """The content of a file; empty if its process has ended or belongs to another user."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        data = b""
        while piece := os.read(fd, 65536):
            data += piece
        return data
    except OSError:
        return b""
    finally:
        os.close(fd)
