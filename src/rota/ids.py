"""Identifiers of executions: UUIDv7, made by the client, so that an id is known before its commit.

The first 48 bits are milliseconds, so ids sort by the time they were made and inserts stay sequential. The next
twelve bits count within one millisecond, so the ids of one source are strictly increasing even in a tight loop.
"""

from __future__ import annotations

import threading

from rota.clock import Clock

_VERSION = 0x7 << 76
_VARIANT = 0x2 << 62
_SEQUENCE_LIMIT = 1 << 12


class IdSource:
    """Makes strictly increasing ids from one clock; safe to share between threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._millisecond = 0
        self._sequence = 0

    def new(self) -> str:
        return self.many(1)[0]

    def many(self, count: int) -> list[str]:
        """`count` ids in increasing order, for one bulk enqueue."""
        with self._lock:
            self._millisecond = max(self._millisecond, self._clock.now() // 1000)
            return [self._next() for _ in range(count)]

    def _next(self) -> str:
        self._sequence += 1
        if self._sequence == _SEQUENCE_LIMIT:
            self._sequence = 0
            self._millisecond += 1
        bits = self._clock.random_bits(62)
        number = self._millisecond << 80 | _VERSION | self._sequence << 64 | _VARIANT | bits
        text = f"{number:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
