"""The state of a process that jobs share which run there one after the other. It is restored after each job.

The environment and the modules are not restored: what a job loads once is what the process is kept warm for.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys

from rota.executors.process.leftover_threads import LeftoverThreads

_STREAMS = (1, 2)
_PR_SET_CHILD_SUBREAPER = 36
_LIMITS = (
    resource.RLIMIT_CPU,
    resource.RLIMIT_AS,
    resource.RLIMIT_DATA,
    resource.RLIMIT_FSIZE,
    resource.RLIMIT_NOFILE,
    resource.RLIMIT_NPROC,
)
"""Lower limits by which another job would fail. Reading one costs half a microsecond for each job."""
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


class ProcessBaseline:
    """The state of the process when this was made."""

    def __init__(self) -> None:
        self._out, self._err = sys.stdout, sys.stderr
        self._streams = _places()
        self._mask = os.umask(0o077)
        os.umask(self._mask)
        self._directory = _directory()
        self._signals = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._limits = list(map(resource.getrlimit, _LIMITS))
        self._threads = LeftoverThreads()
        _adopt()

    def restored(self) -> str:
        """Restores the state; returns what cannot be restored, so that the process must be replaced."""
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._signals)
        os.umask(self._mask)
        if sys.stdout is not self._out or sys.stderr is not self._err:
            _flush(sys.stdout, sys.stderr)
            sys.stdout, sys.stderr = self._out, self._err
        _flush(self._out, self._err)
        if self._out.closed or self._err.closed or _places() != self._streams:
            return "another standard output or error"
        if not self._is_back():
            return "another directory"
        if not self._has_limits():
            return "lower limits"
        if _has_children():
            return "processes"
        busy = self._threads.busy()
        return f"threads ({', '.join(busy)})" if busy else ""

    def _has_limits(self) -> bool:
        if [*map(resource.getrlimit, _LIMITS)] != self._limits:
            try:
                for which, limit in zip(_LIMITS, self._limits, strict=True):
                    resource.setrlimit(which, limit)
            except (OSError, ValueError):
                return False
        return True

    def _is_back(self) -> bool:
        if _directory() == self._directory:
            return True
        try:
            os.chdir(self._directory)
        except OSError:
            return False
        return True


def _flush(*streams: object) -> None:
    for stream in streams:
        with contextlib.suppress(Exception):  # A job may have put anything there.
            stream.flush()  # type: ignore[attr-defined]


def _directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return ""  # It was removed.


def _places() -> list[tuple[int, int]]:
    """The files that the descriptors of the streams refer to."""
    try:
        return [(found.st_dev, found.st_ino) for found in map(os.fstat, _STREAMS)]
    except OSError:
        return []


def _adopt() -> None:
    """Makes orphans of a job children of this process, not of its spawner, so that they are found."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
