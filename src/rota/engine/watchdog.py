"""Ends a process whose event loop is held by a job that is past its time.

An `async def` that computes, or waits without awaiting, keeps the loop, and with it the timer that should stop it. So a
thread looks: if a deadline has passed, the loop does not answer, and the task that holds it is the one that is overdue,
the process ends itself and says which it was. What else it ran is given back.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

LATE_S = 0.1
ANSWER_S = 0.25
LOOK_S = 0.2


class Watchdog:
    """One thread, started with the first deadline. `first_at()` is the first deadline, by the loop's clock."""

    def __init__(
        self,
        first_at: Callable[[], float | None],
        culprit: Callable[[], str | None],
        end: Callable[[str], None],
    ) -> None:
        """`culprit()` names the attempt that holds the loop and is overdue; both are called in the thread."""
        self._loop = asyncio.get_running_loop()
        self._first_at = first_at
        self._culprit = culprit
        self._end = end
        self._news = threading.Event()
        self._is_open = True
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """There is an earlier deadline than before."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rota-watchdog", daemon=True)
            self._thread.start()
        self._news.set()

    def close(self) -> None:
        self._is_open = False
        self._news.set()

    def _run(self) -> None:
        while self._is_open:
            first_at = self._first_at()
            wait_s = None if first_at is None else max(LOOK_S, first_at + LATE_S - self._loop.time())
            self._news.wait(wait_s)
            self._news.clear()
            if self._is_open and self._is_late() and not self._answers():
                held_by = self._culprit()
                if held_by is not None:
                    self._end(held_by)

    def _is_late(self) -> bool:
        first_at = self._first_at()
        return first_at is not None and self._loop.time() >= first_at + LATE_S

    def _answers(self) -> bool:
        """A loop that is only behind, or whose process was stopped for a while, answers within a moment."""
        heard = threading.Event()
        try:
            self._loop.call_soon_threadsafe(heard.set)
        except RuntimeError:
            return True  # It is closed: the process is on its way out.
        return heard.wait(ANSWER_S)
