"""Many deadlines, most of which never come: add and remove in constant time, and one timer on the event loop.

Deadlines are gathered in buckets a tenth of a second wide, so a deadline fires at most that late.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from math import ceil
from typing import Generic, TypeVar

K = TypeVar("K")
PER_SECOND = 10


class Timers(Generic[K]):
    """Calls `fire(key)` for every key whose deadline has passed."""

    def __init__(self, fire: Callable[[K], None], earlier: Callable[[], None] = lambda: None) -> None:
        """`earlier()` is called when there is a deadline that comes before all others."""
        self._fire = fire
        self._earlier = earlier
        self._loop = asyncio.get_running_loop()  # Once: to ask costs a system call.
        self._buckets: dict[int, dict[K, None]] = {}
        self._order: list[int] = []
        self._handle: asyncio.TimerHandle | None = None
        self._armed_for = 0

    def add(self, after_s: float, key: K) -> int:
        """Sets a deadline; the returned bucket is what `remove` wants."""
        bucket = ceil((self._loop.time() + after_s) * PER_SECOND)
        keys = self._buckets.get(bucket)
        if keys is None:
            keys = self._buckets[bucket] = {}
            heapq.heappush(self._order, bucket)
            self._arm()
        keys[key] = None
        return bucket

    def remove(self, bucket: int, key: K) -> None:
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
