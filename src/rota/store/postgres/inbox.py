"""Calls that wait for a connection.

Calls that can run together are taken together. While `MOST_GROUPS` groups of one operation are running, its further
calls wait here instead of taking another connection: a commit costs the same for one call as for many.
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
    """A queue for several writer threads. `start_writer()` is called, outside the lock, when no thread is free."""

    def __init__(self, start_writer: Callable[[], None]) -> None:
        self._start_writer = start_writer
        self._calls: deque[PendingCall] = deque()
        self._changed = threading.Condition()
        self._free = 0
        self._groups: Counter[Callable[..., Any]] = Counter()
        self._expected: set[Callable[..., Any]] = set()
        """Operations whose waiting calls a thread was woken for, and has not taken yet."""
        self._is_closed = False

    @property
    def is_empty(self) -> bool:
        """Whether no call waits; checked without the lock."""
        return not self._calls

    def put(self, call: PendingCall) -> bool:
        """False if the inbox is closed."""
        with self._changed:
            if self._is_closed:
                return False
            self._calls.append(call)
            if self._joins(call):
                return True
            is_taken = self._free > 0
            if is_taken:
                self._changed.notify()
        if not is_taken:
            self._start_writer()
        return True

    def take(self) -> list[PendingCall]:
        """Waits for the next call, or group of calls; empty if the inbox is closed."""
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
        """Called by the writer thread after a group."""
        with self._changed:
            self._groups[group[0].op] -= 1
            if self._calls and self._free:
                self._changed.notify()

    def _joins(self, call: PendingCall) -> bool:
        """Whether no further thread is needed: one will take the call with others, or after the groups that run."""
        if declared(call.op).together is None or call.not_before:
            return False
        if call.op in self._expected or self._groups[call.op] >= MOST_GROUPS:
            return True
        self._expected.add(call.op)
        return False

    def close(self) -> list[PendingCall]:
        """Refuses further calls; returns those that no thread has taken."""
        with self._changed:
            self._is_closed = True
            rest = list(self._calls)
            self._calls.clear()
            self._changed.notify_all()
        return rest

    def _pause_s(self) -> float | None:
        """The time until the first postponed call may be tried again."""
        first = min((call.not_before for call in self._calls if call.not_before), default=None)
        return None if first is None else max(0.001, first - MACHINE.monotonic())

    def _next(self) -> list[PendingCall]:
        now = MACHINE.monotonic()
        for index, call in enumerate(self._calls):
            if call.not_before > now:
                continue
            if declared(call.op).together is None:
                del self._calls[index]
                self._groups[call.op] += 1
                return [call]
            if self._groups[call.op] < MOST_GROUPS:
                self._groups[call.op] += 1
                return self._gathered(call.op, now)
        return []

    def _gathered(self, op: Callable[..., Any], now: float) -> list[PendingCall]:
        group: list[PendingCall] = []
        others: deque[PendingCall] = deque()
        rows = 0
        for call in self._calls:
            fits = call.op is op and call.not_before <= now and len(group) < MOST_IN_GROUP and rows < MOST_ROWS
            (group if fits else others).append(call)
            rows += call.rows if fits else 0
        self._calls = others
        self._expected.discard(op)
        return group
