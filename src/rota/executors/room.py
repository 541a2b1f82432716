"""What jobs that run in one process after the other share, and one may have changed: each finds it as the first did.

The environment and the modules stay as they are: what a job loads or sets up once is what the process is kept warm for.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

_STREAMS = (1, 2)
_PR_SET_CHILD_SUBREAPER = 36
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


class Room:
    """A process as it was when this was made."""

    def __init__(self) -> None:
        self._out, self._err = sys.stdout, sys.stderr
        self._streams = _places()
        self._mask = os.umask(0o077)
        os.umask(self._mask)
        self._directory = _directory()
        _adopt()

    def tidied(self) -> bool:
        """Puts everything back; False if that cannot be done, or a job has left processes, which only end with this."""
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        os.umask(self._mask)
        if sys.stdout is not self._out or sys.stderr is not self._err:
            _flush(sys.stdout, sys.stderr)
            sys.stdout, sys.stderr = self._out, self._err
        _flush(self._out, self._err)
        is_open = not self._out.closed and not self._err.closed and _places() == self._streams
        return is_open and self._is_back() and not _has_children()

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
