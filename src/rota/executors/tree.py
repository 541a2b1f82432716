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
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

MARK = "ROTA_STAGE_ID"
"""The variable that holds the mark, if no limit does."""
_SIGN_BIT = 62
"""What all marks begin with: as a limit, more than a hundred thousand years."""
_ID_BITS = 40
_LIMIT = b"Max realtime timeout"
MOST_ROUNDS = 50
_PAGE = os.sysconf("SC_PAGESIZE")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_GROWN_TICKS = 10 * _TICKS_PER_S
"""A process that is older than that runs its program, and has the mark that it will ever have."""


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
    data = _record(f"/proc/{pid}/stat")
    if not data:
        return None
    # The name stands in brackets and may hold anything, brackets and spaces included.
    fields = data[data.rindex(b")") + 2 :].split(maxsplit=20)
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]), fields[0].decode())


def everyone() -> dict[int, Process]:
    """All processes, by number. Those that come or go meanwhile may be missing."""
    return {process.pid: process for process in map(read, _numbers()) if process is not None}


def _numbers() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


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
        words = _record(f"/proc/{pid}/limits").partition(_LIMIT)[2].split(maxsplit=1)
    else:
        words = (b"\0" + _content(f"/proc/{pid}/environ")).partition(f"\0{MARK}=".encode())[2].split(b"\0", maxsplit=1)
    number = int(words[0]) if words and words[0].isdigit() else 0
    return number if number >> _SIGN_BIT == 1 else 0


def marked(stage: Process) -> list[Process]:
    """Every process with a mark of this stage, and their descendants; not the one that asks."""
    among = everyone()
    living = (process for process in among.values() if not process.is_dead and process.start >= stage.start)
    ours = [process for process in living if _parts(mark(process.pid))[0] == stage.pid]
    here = _namespace(os.getpid())
    return _with_descendants([process for process in ours if _namespace(process.pid) == here], among)


def strays(bare: set[tuple[int, int]] | None = None) -> Iterator[Process]:
    """Every process with a mark of a stage that is gone, and their descendants. Other containers have other numbers.

    A worker process marks what its own jobs start, with the id 0. Of that, what made a session of its own may go on.

    The newest come first, each as soon as it is found: it may be about to start its successor and to end. `bare` is
    kept from look to look: those that carry no mark, and need not be asked again, for a mark is inherited, or put on
    in the first moments of a process.
    """
    bare = set() if bare is None else bare
    here, grown = _namespace(os.getpid()), _now() - _GROWN_TICKS
    among: dict[int, Process] = {}
    lost: list[Process] = []
    for process in map(read, sorted(_numbers(), reverse=True)):
        if process is None:
            continue
        among[process.pid] = process
        if process.is_dead or (process.pid, process.start) in bare:
            continue
        stage, id = _parts(mark(process.pid))
        if not stage:
            if process.start < grown:
                bare.add((process.pid, process.start))
        elif (id or process.session == stage) and not _was_before(stage, process) and _namespace(process.pid) == here:
            lost.append(process)
            if process.pid != os.getpid():
                yield process
    bare.intersection_update([(process.pid, process.start) for process in among.values()])
    yield from _with_descendants(lost, among)


def _parts(number: int) -> tuple[int, int]:
    """The stage and the command that a mark names; two zeros if it is none."""
    return divmod(number ^ 1 << _SIGN_BIT, 1 << _ID_BITS) if number else (0, 0)


def _now() -> int:
    """In ticks since the machine started; some containers count from their own start, and say less."""
    return int(float((_content("/proc/uptime").split() or [b"0"])[0]) * _TICKS_PER_S)


def _was_before(pid: int, process: Process) -> bool:
    """Whether the living process with this number may have started the other."""
    found = read(pid)
    if found is None:
        return _is_hidden(pid)
    return not found.is_dead and found.start <= process.start


def _is_hidden(pid: int) -> bool:
    """Whether there is such a process all the same: some systems show nobody those of others."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False  # It has come just now, and started nothing that we have seen.


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


def kill(find: Callable[[], Iterable[Process]], quiet: int = 1) -> int:
    """Kills all that `find` finds, what is started meanwhile included; returns how many there were.

    First everything is stopped, again and again until nothing new appears, so many looks in a row as `quiet` says: what
    stands still starts nothing, but what passes itself on from process to process may be between two of them in a look.
    """
    found: dict[tuple[int, int], Process] = {}
    nothing = 0
    for _ in range(MOST_ROUNDS):
        is_new = False
        for process in find():
            if not process.is_dead and (process.pid, process.start) not in found:
                is_new = True
                found[process.pid, process.start] = process
                send(process, signal.SIGSTOP)
        nothing = 0 if is_new else nothing + 1
        if nothing >= quiet:
            break
    for process in found.values():
        send(process, signal.SIGKILL)
    return len(found)


def _record(path: str) -> bytes:
    """The content of a small file that the kernel gives out in one piece."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""  # It has ended, or is somebody else's.
    try:
        return os.read(fd, 16384)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _content(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        pieces = []
        while piece := os.read(fd, 65536):
            pieces.append(piece)
        return b"".join(pieces)
    except OSError:
        return b""
    finally:
        os.close(fd)
