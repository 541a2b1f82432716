"""Threads that a job has left behind: what they go on to do would happen to the next job in the same process.

One that waits for work, with no end to its wait, does nothing until somebody gives it some: it is what a library keeps
for its next use, as the workers of an executor are, and stays. Whatever else was not there at first goes on by itself:
it prints, it holds a core, it ends the process, now or when its timer is over. Of threads that know nothing of Python,
such as those of a library that multiplies matrices, nothing is seen here; they wait, too.
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import thread as executors
from types import FrameType

OURS = "rota-"
"""What the names of the threads begin with that an app has for its database."""
LOOKS, PAUSE_S = 10, 0.005
"""How often we look, and how long we wait in between: one that has just done its work is about to wait or to end."""
_WAITS = threading.Condition.wait.__code__
_WORKER = executors._worker.__code__


class Lingering:
    """Threads that have begun since this was made."""

    def __init__(self) -> None:
        self._first = set(sys._current_frames())

    def busy(self) -> list[str]:
        """The names of those that are there still, and do not wait for work."""
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
        self._first &= frames.keys()  # Of one that has ended, another may get the number.
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
