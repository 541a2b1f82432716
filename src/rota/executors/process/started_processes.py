"""The processes that a spawner has started, each with all that it starts: their memory, their cost and their end.

A process in a session of its own may outlive its parent. It then becomes a child of the spawner, an orphan, and its
mark says which process of the spawner it belongs to (`process_tree`). The end of a process is reported when nothing of
its tree is left.

The spawner's own program imports this file: nothing but the standard library here.
"""

from __future__ import annotations

import errno
import functools
import math
import os
import signal
from collections.abc import Callable
from typing import Any

from rota.executors.process import process_tree
from rota.executors.process.process_tree import Process, present

LOOK_S, LOOK_LIMITED_S = 0.25, 0.1
"""How often the memory of all trees is measured, and how often if one of them has a limit."""
_FINAL = {
    getattr(errno, name)
    for name in ("ENOENT", "EACCES", "EPERM", "ENOEXEC", "ENOTDIR", "ELOOP", "ENAMETOOLONG", "E2BIG", "EINVAL")
}
"""Errors that another attempt would meet again."""


class Refused(Exception):
    """A process was not started. `step` says what failed: the program, its directory, the fork, the descriptors."""

    def __init__(self, step: str, code: int | None) -> None:
        super().__init__(os.strerror(code or 0))
        self.step = step
        self.code = code or 0

    @property
    def is_final(self) -> bool:
        return self.step in ("program", "directory") and self.code in _FINAL


class Started:
    """One process, and what is known of its tree."""

    def __init__(self, pid: int, mark: int, memory_bytes: int | None, report: Callable[[dict[str, Any]], None]) -> None:
        self.pid = pid
        self.mark = mark
        self.memory_bytes = memory_bytes
        self.report = report
        """Is called with the exit status and the cost when nothing of the tree is left."""
        self.status: int | None = None
        self.kill_at = math.inf
        """0 if it was killed."""
        self.cpu_s = 0.0
        self.peak_bytes = 0
        self.is_out_of_memory = False


class StartedProcesses:
    """All that one spawner has started. `now` is read from a monotonic clock."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._pid = os.getpid()
        self._home = os.open(".", os.O_PATH | os.O_CLOEXEC)
        self._count = 0
        self._by_mark: dict[int, Started] = {}
        self._by_pid: dict[int, Started] = {}
        """Those that have not ended."""
        self._look_at = math.inf
        self._has_children = False

    def start(
        self,
        argv: list[str],
        env: dict[str, str],
        cwd: str | None,
        fds: list[int],
        memory_bytes: int | None,
        report: Callable[[dict[str, Any]], None],
    ) -> Started:
        """Starts a program, with `fds` as its standard output, error and, if there is a third, input."""
        self._count += 1
        mark = process_tree.mark_for(self._pid, self._count)
        process_tree.put_on(mark)  # The program inherits it.
        started = Started(self._executed(argv, env, cwd, fds), mark, memory_bytes, report)
        self._by_mark[mark] = self._by_pid[started.pid] = started
        self._look_at = min(self._look_at, self._monotonic() + (LOOK_S if memory_bytes is None else LOOK_LIMITED_S))
        return started

    def stop(self, started: Started, grace_s: float) -> None:
        """SIGTERM to the whole tree; what is left of it after the grace is killed."""
        for process in self._family(started):
            process_tree.send(process, signal.SIGTERM)
        started.kill_at = min(started.kill_at, self._monotonic() + grace_s)

    def kill(self, started: Started) -> None:
        started.kill_at = 0.0
        process_tree.kill(lambda: self._family(started))

    def kill_all(self) -> bool:
        """Kills whatever this process has started, and all orphans. Returns whether there was anything."""
        left = present(process_tree.children(self._pid))
        process_tree.kill(functools.partial(process_tree.family, left))
        return bool(left)

    def reap(self) -> None:
        """After SIGCHLD: takes in what has ended, and reports what has ended with its whole tree."""
        self._has_children = True
        try:
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                self._bury(ended.si_pid)
        except ChildProcessError:
            self._has_children = False
        self._settle_all()

    @property
    def due_at(self) -> float:
        """When `act` has something to do."""
        return min([self._look_at, *(one.kill_at for one in self._by_mark.values() if one.kill_at)])

    def act(self, now: float) -> None:
        """Kills those whose grace is over, measures memory, and looks for processes that an earlier look missed."""
        for started in [one for one in self._by_mark.values() if 0 < one.kill_at <= now]:
            self.kill(started)
        if now >= self._look_at:
            orphans = self._orphans()
            for started in list(self._by_pid.values()):
                self._measure(started, orphans)
            self._settle_all()
            self._end_ownerless(orphans)
            is_limited = any(one.memory_bytes is not None for one in self._by_mark.values())
            self._look_at = now + (LOOK_LIMITED_S if is_limited else LOOK_S) if self._by_mark else math.inf

    def _executed(self, argv: list[str], env: dict[str, str], cwd: str | None, fds: list[int]) -> int:
        places = [(os.POSIX_SPAWN_DUP2, fd, place) for fd, place in zip(fds, (1, 2, 0), strict=False)]
        if cwd is None:
            return _executed(argv, env, places)
        try:
            os.chdir(cwd)
        except (OSError, ValueError) as error:
            raise Refused("directory", getattr(error, "errno", errno.EINVAL)) from None
        try:
            return _executed(argv, env, places)
        finally:
            os.fchdir(self._home)

    def _orphans(self) -> list[Process]:
        """Children that this process did not start: descendants of those that it did, whose parents have ended."""
        return present(pid for pid in process_tree.children(self._pid) if pid not in self._by_pid)

    def _owner(self, orphan: Process) -> Started | None:
        """The process that an orphan belongs to, if its end was not reported yet."""
        return self._by_mark.get(process_tree.mark(orphan.pid))

    def _family(self, started: Started, orphans: list[Process] | None = None) -> list[Process]:
        main = present([started.pid]) if started.status is None else []
        orphans = self._orphans() if orphans is None else orphans
        return process_tree.family([*main, *(orphan for orphan in orphans if self._owner(orphan) is started)])

    def _bury(self, pid: int) -> None:
        """Reaps a child, and adds its cost to the process that it belongs to."""
        main = self._by_pid.pop(pid, None)
        started = main or next(map(self._owner, present([pid])), None)
        _, status, usage = os.wait4(pid, 0)
        if main is not None:
            main.status = status
        if started is not None:
            started.cpu_s += usage.ru_utime + usage.ru_stime
            started.peak_bytes = max(started.peak_bytes, usage.ru_maxrss * 1024)

    def _settle_all(self) -> None:
        """Reports the trees of which nothing is left. Of the others kills the rest, after the grace of a stop."""
        ended = [started for started in self._by_mark.values() if started.status is not None]
        orphans = self._orphans() if ended and self._has_children else []
        left = {owner.mark for orphan in orphans if (owner := self._owner(orphan)) is not None}
        now = self._monotonic()
        for started in ended:
            if started.mark not in left:
                del self._by_mark[started.mark]
                started.report(_account(started))
            elif started.kill_at == math.inf or started.kill_at <= now:
                self.kill(started)
        if ended and not self._by_mark:
            self._look_at = math.inf
            self._end_ownerless(orphans)

    def _end_ownerless(self, orphans: list[Process]) -> None:
        """Kills orphans whose process has ended. Those without a mark live until the spawner ends."""
        if left := [orphan for orphan in orphans if process_tree.mark(orphan.pid) not in {0, *self._by_mark}]:
            process_tree.kill(functools.partial(process_tree.family, left))

    def _measure(self, started: Started, orphans: list[Process]) -> None:
        held = process_tree.resident_bytes(self._family(started, orphans))
        started.peak_bytes = max(started.peak_bytes, held)
        if started.memory_bytes is not None and held > started.memory_bytes and not started.is_out_of_memory:
            started.is_out_of_memory = True
            self.kill(started)


def _account(started: Started) -> dict[str, Any]:
    code = os.waitstatus_to_exitcode(started.status or 0)
    return {
        "exit_code": code if code >= 0 else None,
        "signal": -code if code < 0 else None,
        "cpu_s": started.cpu_s,
        "peak_bytes": started.peak_bytes,
        "out_of_memory": started.is_out_of_memory,
    }


def _executed(argv: list[str], env: dict[str, str], places: list[tuple[int, int, int]]) -> int:
    """Starts the program in a session of its own, and returns its pid."""
    os.environ["PATH"] = env.get("PATH", os.defpath)  # posix_spawnp searches the path of the process that calls it.
    try:
        return os.posix_spawnp(argv[0], argv, env, file_actions=places, setsid=True)
    except OSError as error:
        step = "fork" if error.errno in (errno.EAGAIN, errno.ENOMEM) else "program"
        raise Refused(step, error.errno) from None
    except ValueError:
        raise Refused("program", errno.EINVAL) from None
