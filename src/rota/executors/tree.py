"""Trees of processes, as Linux shows them in /proc: who belongs to one, what it holds, and its end.

A process is named by its number and the moment it started, for a number alone may belong to another one by now. What
lost its parent and made a session of its own is still found by a mark that it inherits: a number in one of its limits
that has no effect (for how many years a real-time task may run without a pause), or, where that limit cannot be set, in
its environment.

The stage runs without the package, and uses this file by its path: nothing but the standard library here.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

MARK = "ROTA_STAGE_ID"
"""The variable that holds the mark, if no limit does."""
_SIGN_BIT = 62
"""What all marks begin with: as a limit, more than a hundred thousand years."""
_ID_BITS = 40
_LIMIT = b"Max realtime timeout"
MOST_ROUNDS = 50
_PAGE = os.sysconf("SC_PAGESIZE")


def _is_limit_free() -> bool:
    """Whether the limit can hold a mark: everybody may set it, and nobody has."""
    try:
        limit = resource.getrlimit(resource.RLIMIT_RTTIME)
        resource.setrlimit(resource.RLIMIT_RTTIME, limit)
    except (OSError, ValueError, AttributeError):
        return False  # Some systems know no such limit.
    return limit[1] == resource.RLIM_INFINITY


has_limits = _is_limit_free()
_LISTS_CHILDREN = os.access("/proc/thread-self/children", os.R_OK)


class Process(NamedTuple):
    """One process at one moment."""

    pid: int
    parent: int
    session: int
    start: int
    """When it started, in ticks since the machine did."""
    state: str

    @property
    def is_dead(self) -> bool:
        """Whether it has ended and only waits for its parent to notice."""
        return self.state in "ZX"


def read(pid: int) -> Process | None:
    """The process with this number, if there is one."""
    data = _content(f"/proc/{pid}/stat")
    if not data:
        return None
    # The name stands in brackets and may hold anything, brackets and spaces included.
    fields = data[data.rindex(b")") + 2 :].split()
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]), fields[0].decode())


def everyone() -> dict[int, Process]:
    """All processes, by number. Those that come or go meanwhile may be missing."""
    found = (read(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {process.pid: process for process in found if process is not None}


def descendants(pid: int, among: Mapping[int, Process] | None = None) -> list[Process]:
    """Everything that `pid` has started, and what that has started; not `pid` itself."""
    return below([pid], everyone() if among is None else among)


def below(pids: Iterable[int], among: Mapping[int, Process]) -> list[Process]:
    """The descendants of several processes, parents before their children."""
    children: dict[int, list[Process]] = {}
    for process in among.values():
        children.setdefault(process.parent, []).append(process)
    found: dict[int, Process] = {}
    line = list(pids)
    while line:
        for child in children.get(line.pop(0), ()):
            if child.pid not in found:
                found[child.pid] = child
                line.append(child.pid)
    return list(found.values())


def children(pid: int) -> list[int]:
    """The children of a process, without a look at all processes; some may be missing if it starts or ends others."""
    if not _LISTS_CHILDREN:
        return [process.pid for process in everyone().values() if process.parent == pid]
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, _content(f"/proc/{pid}/task/{task}/children").split())
    return found


def walk(roots: Iterable[Process]) -> dict[int, Process]:
    """The roots and, as far as a quick look tells, their descendants."""
    found: dict[int, Process] = {}
    line = list(roots)
    while line:
        process = line.pop()
        if process.pid not in found:
            found[process.pid] = process
            line += [child for child in map(read, children(process.pid)) if child is not None]
    return found


def mark_for(stage: int, id: int) -> int:
    """The mark by which a process, and whatever it starts, is known to belong to a command of a stage."""
    return 1 << _SIGN_BIT | stage << _ID_BITS | id


def put_on(mark: int, env: dict[str, str]) -> dict[str, str]:
    """In the process that is to be marked; returns the environment that it has to have then."""
    if not has_limits:
        return {**env, MARK: str(mark)}
    resource.setrlimit(resource.RLIMIT_RTTIME, (mark, resource.RLIM_INFINITY))
    return env


def mark(pid: int) -> int:
    """The mark that a process carries; 0 if it has none, or has ended."""
    if has_limits:
        words = _content(f"/proc/{pid}/limits").partition(_LIMIT)[2].split(maxsplit=1)
    else:
        words = (b"\0" + _content(f"/proc/{pid}/environ")).partition(f"\0{MARK}=".encode())[2].split(b"\0", maxsplit=1)
    number = int(words[0]) if words and words[0].isdigit() else 0
    return number if number >> _SIGN_BIT == 1 else 0


def marked(stage: Process, among: Mapping[int, Process] | None = None) -> list[Process]:
    """Every process with a mark of this stage, and their descendants; not the one that asks."""
    among = everyone() if among is None else among
    return _with_descendants(
        [process for process, pid, _ in _marks(among) if pid == stage.pid and process.start >= stage.start], among
    )


def strays(among: Mapping[int, Process] | None = None) -> list[Process]:
    """Every process with a mark of a stage that is gone, and their descendants. Other containers have other numbers.

    A worker process marks what its own jobs start, with the id 0. Of that, what made a session of its own may go on.
    """
    among = everyone() if among is None else among
    marks = [(process, pid) for process, pid, id in _marks(among) if id or process.session == pid]
    lost = [process for process, pid in marks if not _was_before(pid, process)]
    here = _namespace(os.getpid())
    return _with_descendants([process for process in lost if _namespace(process.pid) == here], among)


def _marks(among: Mapping[int, Process]) -> list[tuple[Process, int, int]]:
    """The living that carry a mark, and the stage and the command of each."""
    marks = [(process, mark(process.pid)) for process in among.values() if not process.is_dead]
    parts = 1 << _ID_BITS
    return [(process, *divmod(number ^ 1 << _SIGN_BIT, parts)) for process, number in marks if number]


def _was_before(pid: int, process: Process) -> bool:
    """Whether the living process with this number may have started the other."""
    found = read(pid)
    return found is not None and not found.is_dead and found.start <= process.start


def _namespace(pid: int) -> int:
    """In which the process has its number."""
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino  # noqa: PTH116
    except OSError:
        return 0


def _with_descendants(roots: list[Process], among: Mapping[int, Process]) -> list[Process]:
    found = {process.pid: process for process in (*roots, *below([root.pid for root in roots], among))}
    found.pop(os.getpid(), None)
    return list(found.values())


def resident_bytes(processes: Iterable[Process]) -> int:
    """The memory that the processes hold together; what several share is counted for each."""
    pages = 0
    for process in processes:
        fields = _content(f"/proc/{process.pid}/statm").split()
        pages += int(fields[1]) if len(fields) > 1 else 0
    return pages * _PAGE


def send(process: Process, number: int) -> bool:
    """Signals this very process, never another one that has its number by now; returns whether it was there."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    except OSError:
        handle = -1  # No descriptor is left, or the kernel is old: the number has to do.
    try:
        now = read(process.pid)
        if now is None or now.start != process.start:
            return False
        if handle >= 0:
            signal.pidfd_send_signal(handle, number)
        else:
            os.kill(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        if handle >= 0:
            os.close(handle)
    return True


def send_all(processes: Iterable[Process], number: int) -> None:
    for process in processes:
        if not process.is_dead:
            send(process, number)


def kill(find: Callable[[], Iterable[Process]]) -> int:
    """Kills all that `find` finds, what is started meanwhile included; returns how many there were.

    First everything is stopped, again and again until nothing new appears: what stands still starts nothing.
    """
    found: dict[tuple[int, int], Process] = {}
    for _ in range(MOST_ROUNDS):
        new = [each for each in find() if not each.is_dead and (each.pid, each.start) not in found]
        if not new:
            break
        for process in new:
            found[process.pid, process.start] = process
            send(process, signal.SIGSTOP)
    for process in found.values():
        send(process, signal.SIGKILL)
    return len(found)


def _content(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""  # It has ended, or is somebody else's.
    try:
        pieces = []
        while piece := os.read(fd, 65536):
            pieces.append(piece)
        return b"".join(pieces)
    except OSError:
        return b""
    finally:
        os.close(fd)
