"""The timers of a worker: for deadlines of attempts, and for a held event loop."""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections.abc import Callable
from math import ceil

PER_SECOND = 10
LATE_S = 0.1
ANSWER_S = 0.25
LOOK_S = 0.2


class Timers:
    """Calls `fire(key)` for every key whose deadline has passed.

    Most deadlines are removed before they pass, so add and remove take constant time, and there is one timer on the
    event loop. Deadlines are gathered in buckets a tenth of a second wide, so a deadline fires at most that late.
    """

    def __init__(self, fire: Callable[[str], None], earlier: Callable[[], None] = lambda: None) -> None:
        """`earlier()` is called when there is a deadline that comes before all others."""
        self._fire = fire
        self._earlier = earlier
        self._loop = asyncio.get_running_loop()  # Once: to ask costs a system call.
        self._buckets: dict[int, dict[str, None]] = {}
        self._order: list[int] = []
        self._handle: asyncio.TimerHandle | None = None
        self._armed_for = 0

    def add(self, after_s: float, key: str) -> int:
        """Sets a deadline; the returned bucket is what `remove` wants."""
        bucket = ceil((self._loop.time() + after_s) * PER_SECOND)
        keys = self._buckets.get(bucket)
        if keys is None:
            keys = self._buckets[bucket] = {}
            heapq.heappush(self._order, bucket)
            self._arm()
        keys[key] = None
        return bucket

    def remove(self, bucket: int, key: str) -> None:
        keys = self._buckets.get(bucket)
        if keys is not None:
            keys.pop(key, None)

    @property
    def first_at(self) -> float | None:
        """The first deadline, by the loop's clock; may be asked from any thread."""
        order = self._order
        return order[0] / PER_SECOND if order else None

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def _arm(self) -> None:
        first = self._order[0]
        if self._handle is not None:
            if self._armed_for == first:
                return
            self._handle.cancel()
        self._armed_for = first
        self._earlier()
        self._handle = self._loop.call_at(first / PER_SECOND, self._ring)

    def _ring(self) -> None:
        self._handle = None
        now = self._loop.time() * PER_SECOND
        while self._order and self._order[0] <= now + 0.001:
            for key in self._buckets.pop(heapq.heappop(self._order)):
                self._fire(key)
        if self._order:
            self._arm()


class Watchdog:
    """Ends a process whose event loop is held by an attempt that is past its time.

    An `async def` that computes, or waits without awaiting, holds the event loop, and with it the timer that should
    stop the attempt. So a thread checks: if a deadline has passed, the loop does not answer, and the task that holds
    the loop is the overdue one, the process reports which attempt that is and ends. Its other attempts are given back.

    The thread is started with the first deadline. `first_at()` is the first deadline, by the loop's clock.
    """

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
