"""Who runs below a supervisor at one moment: worker processes, spawners, and what those have started.

supervisor ──┬── worker process ── spawner of a suspect, or after the death of the other
             └── spawner ──┬── process for isolated jobs
                           └── command ── grandchild, in a session of its own

Which worker process has asked for a command cannot be seen, so it is listed for each.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from tests.kill.fleet import Program
from tests.kill.processes import PROC, Process, children_of, parent_of, spawners_of

GONE_S = 20.0
"""How long what a command has started may outlive it: the spawner looks for that when it hears of the command's end."""


class Role(StrEnum):
    CHILD = "child"
    SPAWNER = "spawner"
    JOB_PROCESS = "job process"
    COMMAND = "command"
    GRANDCHILD = "grandchild"


class Someone(msgspec.Struct, frozen=True):
    """One process, by numbers that may be out of date."""

    pid: int
    parent: int
    role: Role
    worker: int
    """The worker process to which it belongs."""


def take(supervisors: Sequence[Program]) -> list[Someone]:
    """Everybody below the supervisors; those that come or go meanwhile may be missing."""
    found: list[Someone] = []
    for supervisor in supervisors:
        for child in children_of(supervisor.pid):
            found.append(Someone(child, supervisor.pid, Role.CHILD, child))
            for parent in (supervisor.pid, child):
                for spawner in spawners_of(parent):
                    found.append(Someone(spawner, parent, Role.SPAWNER, child))
                    found += _of_spawner(spawner, child)
    return found


def below(someone: Someone, everybody: Sequence[Someone]) -> list[Someone]:
    """Those that die with this one, apart from grandchildren, which must be looked for."""
    match someone.role:
        case Role.CHILD:
            return [other for other in everybody if other.worker == someone.pid and other is not someone]
        case Role.SPAWNER:
            return [other for other in everybody if someone.pid in (other.parent, other.pid) and other is not someone]
        case _:
            return [other for other in everybody if other.pid == someone.pid and other is not someone]


def pinned(someone: Someone) -> Process | None:
    """A handle, if it is still who it was."""
    with contextlib.suppress(ProcessLookupError):
        process = Process(someone.pid)
        if parent_of(someone.pid) == someone.parent:
            return process
        process.close()
    return None


class Orphans:
    """Watches what commands have started in sessions of their own, from the day they are seen to their end."""

    def __init__(self, gone_s: float = GONE_S) -> None:
        self._gone_s = gone_s
        self._known: dict[int, tuple[Process, int]] = {}
        self._left_at: dict[int, float] = {}
        self.seen = 0

    def look(self, everybody: Sequence[Someone]) -> list[str]:
        """Those that have outlived their command for too long, each told once."""
        for someone in everybody:
            if someone.role is Role.GRANDCHILD and someone.pid not in self._known:
                process = pinned(someone)
                if process is not None:
                    self._known[someone.pid] = (process, someone.parent)
                    self.seen += 1
        return [problem for pid in list(self._known) if (problem := self._judge(pid))]

    def close(self) -> None:
        for process, _ in self._known.values():
            process.close()
        self._known.clear()

    def _judge(self, pid: int) -> str | None:
        process, command = self._known[pid]
        if not process.is_gone():
            if parent_of(pid) == command:
                return None
            left_at = self._left_at.setdefault(pid, time.monotonic())
            if time.monotonic() - left_at < self._gone_s:
                return None
        is_left = not process.is_gone()
        process.close()
        del self._known[pid]
        self._left_at.pop(pid, None)
        return f"process {pid} outlived the command that started it by {self._gone_s:g} s" if is_left else None


def _of_spawner(spawner: int, worker: int) -> list[Someone]:
    found: list[Someone] = []
    for pid in children_of(spawner):
        words = _words(pid)
        if b"rota.cli.job_process" in words:
            found.append(Someone(pid, spawner, Role.JOB_PROCESS, worker))
        elif b"program.py" in words:
            found.append(Someone(pid, spawner, Role.COMMAND, worker))
            found += [Someone(grandchild, pid, Role.GRANDCHILD, worker) for grandchild in children_of(pid)]
    return found


def _words(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return (PROC / f"{pid}/cmdline").read_bytes()
    return b""
