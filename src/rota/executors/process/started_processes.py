"""The processes that a spawner has started, each with its descendants, its tree: their memory, cost and end.

A process whose parent has ended becomes a child of the spawner, also if it has made a session of its own. Its mark says
which tree this orphan belongs to (`process_tree`). The end of a tree is reported when no process of it is left.

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
    """One process and its tree."""

    def __init__(self, pid: int, mark: int, memory_bytes: int | None, report: Callable[[dict[str, Any]], None]) -> None:
        self.pid = pid
        self.mark = mark
        self.memory_bytes = memory_bytes
        self.report = report
        """Is called with the exit status and the cost when no process of the tree is left."""
        self.status: int | None = None
        self.kill_at = math.inf
        """0 if it was killed."""
        self.cpu_s = 0.0
        self.peak_bytes = 0
        self.is_out_of_memory = False


class StartedProcesses:
    """All processes that one spawner has started and not reported yet. `now` is read from a monotonic clock."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._pid = os.getpid()
        self._home = os.open(".", os.O_PATH | os.O_CLOEXEC)
        self._count = 0
        self._by_mark: dict[int, Started] = {}
        self._by_pid: dict[int, Started] = {}
        """Only those whose main process has not ended."""
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
        process_tree.set_mark(mark)  # The program inherits it.
        started = Started(self._executed(argv, env, cwd, fds), mark, memory_bytes, report)
        self._by_mark[mark] = self._by_pid[started.pid] = started
        self._look_at = min(self._look_at, self._monotonic() + (LOOK_S if memory_bytes is None else LOOK_LIMITED_S))
        return started

    def stop(self, started: Started, grace_s: float) -> None:
        """Sends SIGTERM to the whole tree, and kills the rest of it after the grace."""
        for process in self._family(started):
            process_tree.send_signal(process, signal.SIGTERM)
        started.kill_at = min(started.kill_at, self._monotonic() + grace_s)

    def kill(self, started: Started) -> None:
        started.kill_at = 0.0
        process_tree.kill(lambda: self._family(started))

    def kill_all(self) -> bool:
        """Kills all processes that this process has started, and all orphans. Returns whether there were any."""
        left = present(process_tree.children(self._pid))
        process_tree.kill(functools.partial(process_tree.family, left))
        return bool(left)

    def reap(self) -> None:
        """After SIGCHLD: reaps the children that have ended, and reports the trees that have ended with them."""
        self._has_children = True
        try:
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                self._reap(ended.si_pid)
        except ChildProcessError:
            self._has_children = False
        self._report_ended()

    @property
    def due_at(self) -> float:
        """When `act` has something to do."""
        return min([self._look_at, *(one.kill_at for one in self._by_mark.values() if one.kill_at)])

    def act(self, now: float) -> None:
        """Kills trees whose grace is over, measures memory, and kills orphans that were not found before."""
        for started in [one for one in self._by_mark.values() if 0 < one.kill_at <= now]:
            self.kill(started)
        if now >= self._look_at:
            orphans = self._orphans()
            for started in list(self._by_pid.values()):
                self._measure(started, orphans)
            self._report_ended()
            self._kill_strays(orphans)
            is_limited = any(one.memory_bytes is not None for one in self._by_mark.values())
            look_s = LOOK_LIMITED_S if is_limited else LOOK_S
            self._look_at = now + look_s if self._by_mark or orphans else math.inf

    def _executed(self, argv: list[str], env: dict[str, str], cwd: str | None, fds: list[int]) -> int:
        """Starts the program in a session of its own, and returns its pid."""
        places = [(os.POSIX_SPAWN_DUP2, fd, place) for fd, place in zip(fds, (1, 2, 0), strict=False)]
        step = "directory"
        try:
            if cwd is not None:
                os.chdir(cwd)
            step = "program"
            os.environ["PATH"] = env.get("PATH", os.defpath)  # posix_spawnp searches the path of the calling process.
            return os.posix_spawnp(argv[0], argv, env, file_actions=places, setsid=True)
        except (OSError, ValueError) as error:
            code = getattr(error, "errno", errno.EINVAL)
            raise Refused("fork" if code in (errno.EAGAIN, errno.ENOMEM) else step, code) from None
        finally:
            os.fchdir(self._home)

    def _orphans(self) -> list[Process]:
        """Children that this process did not start: descendants of those that it did, whose parents have ended."""
        return present(pid for pid in process_tree.children(self._pid) if pid not in self._by_pid)

    def _family(self, started: Started, orphans: list[Process] | None = None) -> list[Process]:
        """The processes of a tree: the main process, its orphans, and their descendants."""
        main = present([started.pid]) if started.status is None else []
        orphans = self._orphans() if orphans is None else orphans
        return process_tree.family([*main, *(one for one in orphans if process_tree.mark_of(one.pid) == started.mark)])

    def _reap(self, pid: int) -> None:
        """Reaps a child, and adds its cost to its tree."""
        main = self._by_pid.pop(pid, None)
        started = main or self._by_mark.get(process_tree.mark_of(pid))
        _, status, usage = os.wait4(pid, 0)
        if main is not None:
            main.status = status
        if started is not None:
            started.cpu_s += usage.ru_utime + usage.ru_stime
            started.peak_bytes = max(started.peak_bytes, usage.ru_maxrss * 1024)

    def _report_ended(self) -> None:
        """For each program whose main process has ended: reports it if no descendant is left; otherwise kills the
        descendants, after a `stop` only when its grace is over."""
        ended = [started for started in self._by_mark.values() if started.status is not None]
        orphans = self._orphans() if ended and self._has_children else []
        left = {process_tree.mark_of(orphan.pid) for orphan in orphans}
        now = self._monotonic()
        for started in ended:
            if started.mark not in left:
                del self._by_mark[started.mark]
                started.report(_account(started))
            elif started.kill_at == math.inf or started.kill_at <= now:
                self.kill(started)

    def _kill_strays(self, orphans: list[Process]) -> None:
        """Kills orphans whose tree was reported before they were found. Orphans without a mark end with the spawner."""
        if strays := [orphan for orphan in orphans if process_tree.mark_of(orphan.pid) not in {0, *self._by_mark}]:
            process_tree.kill(functools.partial(process_tree.family, strays))

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
