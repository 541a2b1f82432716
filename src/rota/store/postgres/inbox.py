"""Operations that wait for a connection.

Calls that can run together leave together. While as many groups of one operation as make sense are on their way, more
of its calls gather here instead of each taking a connection: a commit costs the same for one as for all of them.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from rota.clock import MACHINE
from rota.store.pending_call import MOST_ROWS, PendingCall
from rota.store.port import declared

MOST_IN_GROUP = 256
MOST_GROUPS = 2


class Inbox:
    """A queue for several takers. `hire()` is called, outside the lock, when work comes and nobody is free."""

    def __init__(self, hire: Callable[[], None]) -> None:
        self._hire = hire
        self._works: deque[PendingCall] = deque()
        self._changed = threading.Condition()
        self._free = 0
        self._groups: Counter[Callable[..., Any]] = Counter()
        self._is_closed = False

    @property
    def is_empty(self) -> bool:
        """Whether nobody waits; a look without the lock."""
        return not self._works

    def put(self, work: PendingCall) -> bool:
        """False if nothing is taken any more."""
        with self._changed:
            if self._is_closed:
                return False
            self._works.append(work)
            has_taker = self._free > 0
            if has_taker:
                self._changed.notify()
        if not has_taker:
            self._hire()
        return True

    def take(self) -> list[PendingCall]:
        """The next call, or group of calls; empty at the end."""
        with self._changed:
            while True:
                if group := self._next():
                    return group
                if self._is_closed:
                    return []
                self._free += 1
                self._changed.wait(self._pause_s())
                self._free -= 1

    def done(self, group: list[PendingCall]) -> None:
        """To be called by the taker when a group has been dealt with."""
        with self._changed:
            self._groups[group[0].op] -= 1
            if self._works and self._free:
                self._changed.notify()

    def close(self) -> list[PendingCall]:
        """Nothing is taken any more; returns what nobody will take."""
        with self._changed:
            self._is_closed = True
            rest = list(self._works)
            self._works.clear()
            self._changed.notify_all()
        return rest

    def _pause_s(self) -> float | None:
        """Until the first of those that were postponed may try again."""
        first = min((work.not_before for work in self._works if work.not_before), default=None)
        return None if first is None else max(0.001, first - MACHINE.monotonic())

    def _next(self) -> list[PendingCall]:
        now = MACHINE.monotonic()
        for index, work in enumerate(self._works):
            if work.not_before > now:
                continue
            if declared(work.op).together is None:
                del self._works[index]
                self._groups[work.op] += 1
                return [work]
            if self._groups[work.op] < MOST_GROUPS:
                self._groups[work.op] += 1
                return self._gathered(work.op, now)
        return []

    def _gathered(self, op: Callable[..., Any], now: float) -> list[PendingCall]:
        group: list[PendingCall] = []
        others: deque[PendingCall] = deque()
        rows = 0
        for work in self._works:
            fits = work.op is op and work.not_before <= now and len(group) < MOST_IN_GROUP and rows < MOST_ROWS
            (group if fits else others).append(work)
            rows += work.rows if fits else 0
        self._works = others
        return group
