"""Threads that a job has left behind: they would run beside the next job in the same process.

A thread that waits for work without a timeout may stay: a library keeps it for its next use, as an executor keeps its
workers. Any other new thread would print, hold a core or end the process later. Threads that have never run Python
code, such as those of a numerical library, are not seen here.
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import thread as executors
from types import FrameType

OURS = "rota-"
"""Prefix of the names of the threads that an app has for its database."""
LOOKS, PAUSE_S = 10, 0.005
"""A thread that has just done its work gets a moment to wait or to end."""
_WAITS = threading.Condition.wait.__code__
_WORKER = executors._worker.__code__


class LeftoverThreads:
    """Threads that were started since this was made."""

    def __init__(self) -> None:
        self._first = set(sys._current_frames())

    def busy(self) -> list[str]:
        """The names of those that are alive and do not wait for work."""
        found = self._busy()
        for _ in range(LOOKS):
            if not found:
                break
            threading.Event().wait(PAUSE_S)
            found = self._busy()
        return found

    def _busy(self) -> list[str]:
        frames = sys._current_frames()
        if len(frames) == len(self._first) == 1:
            return []
        self._first &= frames.keys()  # Another thread may get the number of one that has ended.
        if len(frames) == len(self._first):
            return []
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        new = ((names.get(ident, "a thread"), frame) for ident, frame in frames.items() if ident not in self._first)
        return [name for name, frame in new if not name.startswith(OURS) and not _is_at_rest(frame)]


def _is_at_rest(frame: FrameType) -> bool:
    if frame.f_code is _WAITS:
        return frame.f_locals.get("timeout") is None
    if frame.f_code is _WORKER:
        held = frame.f_locals
        return held.get("work_item") is None and bool(held["work_queue"].empty())
    return False
