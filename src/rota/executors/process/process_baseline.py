"""The state of a process that jobs share which run there one after the other. It is restored after each job.

The environment and the modules are not restored: what a job loads once is what the process is kept warm for. A process
that a job has left in a state that cannot be restored is replaced.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import threading
from concurrent.futures import thread as executors
from types import FrameType

_PR_SET_CHILD_SUBREAPER = 36
_LIMITS = (
    resource.RLIMIT_CPU,
    resource.RLIMIT_AS,
    resource.RLIMIT_DATA,
    resource.RLIMIT_FSIZE,
    resource.RLIMIT_NOFILE,
    resource.RLIMIT_NPROC,
)
"""Limits of the process that a job may lower, so that another job would fail. Reading one costs half a microsecond for
each job."""
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_STANDARD = (0, 1, 2)
OURS = "rota-"
"""Prefix of the names of the threads that an app has for its database."""
LOOKS, PAUSE_S = 10, 0.005
"""A thread that has just done its work gets a moment to wait or to end."""
_WAITS = threading.Condition.wait.__code__
_WORKER = executors._worker.__code__


class ProcessBaseline:
    """The state of the process when this was made."""

    def __init__(self) -> None:
        self._out, self._err = sys.stdout, sys.stderr
        self._mask = os.umask(0o077)
        os.umask(self._mask)
        self._directory = os.open(".", os.O_PATH | os.O_CLOEXEC)  # It may be removed while a deploy replaces it.
        self._signals = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._limits = list(map(resource.getrlimit, _LIMITS))
        self._threads = set(threading.enumerate())
        # Orphans of a job become children of this process, not of its spawner, so that they are found.
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def restored(self) -> str:
        """Restores the state; returns what cannot be restored, so that the process must be replaced."""
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._signals)
        os.umask(self._mask)
        try:
            os.fchdir(self._directory)
        except OSError:
            return "a closed descriptor"
        if sys.stdout is not self._out or sys.stderr is not self._err:
            _flush(sys.stdout, sys.stderr)
            sys.stdout, sys.stderr = self._out, self._err
        _flush(self._out, self._err)
        if self._out.closed or self._err.closed or not all(map(_is_open, _STANDARD)):
            return "a closed standard stream"
        if [*map(resource.getrlimit, _LIMITS)] != self._limits:
            return "other resource limits"
        if _has_children():
            return "processes"
        busy = self._busy_threads()
        return f"threads ({', '.join(busy)})" if busy else ""

    def _busy_threads(self) -> list[str]:
        """Names of new threads that do not wait for work: they would run beside the next job.

        A thread that waits without a timeout may stay: a library keeps it for its next use.
        """
        busy: list[str] = []
        for look in range(LOOKS if threading.active_count() > 1 else 0):
            if look:
                threading.Event().wait(PAUSE_S)
            frames = sys._current_frames()
            new = [one for one in threading.enumerate() if one not in self._threads and not one.name.startswith(OURS)]
            busy = [one.name for one in new if one.ident in frames and not _is_at_rest(frames[one.ident])]
            if not busy:
                break
        return busy


def _is_at_rest(frame: FrameType) -> bool:
    return frame.f_code is _WORKER or (frame.f_code is _WAITS and frame.f_locals.get("timeout") is None)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _flush(*streams: object) -> None:
    for stream in streams:
        with contextlib.suppress(Exception):  # A job may have put anything there.
            stream.flush()  # type: ignore[attr-defined]


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
