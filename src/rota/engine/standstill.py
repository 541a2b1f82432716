"""Worker processes that do not run: stopped (SIGSTOP, a shell's Ctrl-Z), held by a debugger, or in a frozen cgroup.

The supervisor renews the lease of a child without hearing from it, because a job may hold the interpreter for as long
as it likes. But a process that the kernel does not run would keep its executions until an operator continues it, and no
timeout or cancel would have an effect. So a child that stands still for a whole lease is killed, and its executions run
elsewhere, as after any other crash.

`/proc/PID/stat` has the state of a process. A process under strace stops for an instant at every system call, so the
state alone is not enough: the process must also have used no processor time. A job that sleeps in C is in another state
and does not count.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec

from rota.clock import Clock
from rota.engine.loop import Loop
from rota.store.port import WRITER

LOOKS_PER_LEASE = 4
PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
_WRITING = ("R", "D")
_STATES = {"T": "it was stopped by a signal", "t": "a debugger holds it"}
_STATE, _USER_TICKS, _SYSTEM_TICKS, _PAGES = 0, 11, 12, 21
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class ProcessState(msgspec.Struct, frozen=True):
    """Why the kernel does not run a process (empty if it does), and the processor time that it has used, in ticks."""

    why: str
    ticks: int
    memory: int = 0
    """The bytes of memory that it has in use."""


def process_state(pid: int, proc: Path = PROC, cgroups: Path = CGROUPS) -> ProcessState:
    """Reads /proc. A process that is gone does not stand still."""
    try:
        fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])
        why = _STATES.get(fields[_STATE], "")
        why = why or ("its cgroup is frozen" if _is_frozen(pid, proc, cgroups) else "")
        return ProcessState(why, ticks, int(fields[_PAGES]) * _PAGE_BYTES)
    except (OSError, IndexError, ValueError):
        return ProcessState("", 0)


def is_writing(pid: int, thread: str, proc: Path = PROC) -> bool:
    """Whether a thread of this name runs, waits for a processor (both are state R), or waits for the disk (D).

    A thread that waits for the interpreter, which other code of its process holds, sleeps.
    """
    for task in (proc / str(pid) / "task").glob("*"):
        with contextlib.suppress(OSError, IndexError):
            name, _, rest = (task / "stat").read_text().rpartition(")")
            if name.endswith(f"({thread}") and rest.split()[_STATE] in _WRITING:
                return True
    return False


def _is_frozen(pid: int, proc: Path, cgroups: Path) -> bool:
    """For cgroups v2 only: a process that cgroups v1 has frozen cannot be killed either."""
    for line in (proc / str(pid) / "cgroup").read_text().splitlines():
        if line.startswith("0::/"):
            events = cgroups / line.removeprefix("0::/") / "cgroup.events"
            return events.exists() and "frozen 1" in events.read_text().splitlines()
    return False


class Standstill:
    """Watches all children: reports those that stand still to the store, and kills them after a lease."""

    def __init__(
        self,
        clock: Clock,
        lease_s: float,
        states: Callable[[], Mapping[int, ProcessState]],
        tell: Callable[[int, str], Awaitable[None]],
        end: Callable[[int, str], None],
    ) -> None:
        """`states()` has the process of each worker. `tell(worker, why)` reports a standstill, or its end by an empty
        `why`. `end(worker, why)` kills a worker that has stood still for a lease."""
        self._clock = clock
        self._lease_s = lease_s
        self._states, self._tell, self._end = states, tell, end
        self._since: dict[int, tuple[float, int]] = {}
        self._told: dict[int, str] = {}
        self.loop = Loop("standstill", self.step)

    async def step(self) -> float | None:
        now, found = self._clock.monotonic(), self._states()
        self._told = {worker: why for worker, why in self._told.items() if worker in found}
        still = {worker: one for worker, one in found.items() if one.why}
        self._since = {worker: self._since.get(worker, (now, one.ticks)) for worker, one in still.items()}
        for worker, one in still.items():
            since, ticks = self._since[worker]
            if ticks != one.ticks:
                self._since[worker] = (now, one.ticks)
            elif now - since >= self._lease_s:
                self._end(worker, one.why)
        for worker, one in found.items():
            if one.why != self._told.get(worker, ""):
                await self._tell(worker, one.why)
                self._told[worker] = one.why
        return self._lease_s / LOOKS_PER_LEASE


class IdleWriter:
    """Tells a process that holds the write lock and does nothing with it from one that writes.

    An idle process was stopped, or user code holds its interpreter, in the middle of a write. A process that was seen
    at work is left alone: a large submission takes long on a busy machine, and no worker loses its lease meanwhile.
    """

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._waited_s = 0.0
        self._at_work: dict[int, float] = {}

    def is_idle(self, pid: int, waited_s: float) -> bool:
        """To be asked while a heartbeat waits for the lock; `waited_s` counts from the start of its wait."""
        if waited_s < self._waited_s:
            self._at_work.clear()
        self._waited_s = waited_s
        if is_writing(pid, WRITER):
            self._at_work[pid] = waited_s
        return waited_s - self._at_work.get(pid, 0.0) >= self._longest_s
