"""What jobs that run in one process after the other share, and one may have changed: each finds it as the first did.

The environment and the modules stay as they are: what a job loads or sets up once is what the process is kept warm for.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys

from rota.executors.lingering import Lingering

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
"""Those by which work fails that is innocent of them. To ask for one costs half a microsecond for each job."""
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


class Room:
    """A process as it was when this was made."""

    def __init__(self) -> None:
        self._out, self._err = sys.stdout, sys.stderr
        self._streams = _places()
        self._mask = os.umask(0o077)
        os.umask(self._mask)
        self._directory = _directory()
        self._signals = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._limits = list(map(resource.getrlimit, _LIMITS))
        self._lingering = Lingering()
        _adopt()

    def tidied(self) -> str:
        """Puts everything back; returns what is not as it was, if that can only end with this process."""
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
        busy = self._lingering.busy()
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
    """What the descriptors of the streams lead to."""
    try:
        return [(found.st_dev, found.st_ino) for found in map(os.fstat, _STREAMS)]
    except OSError:
        return []


def _adopt() -> None:
    """What loses its parent in a job becomes a child of this process, and is seen: not of the one that started this."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
