"""Identifiers of executions: UUIDv7, made by the client, so that an id is known before its commit.

The first 48 bits are milliseconds, so ids sort by the time they were made and inserts stay sequential. The next
twelve bits count within one millisecond, so the ids of one source are strictly increasing even in a tight loop.
"""

from __future__ import annotations

import threading

from rota.clock import Clock

_VERSION = 0x7 << 76
_VARIANT = 0x2 << 62
_SEQUENCE_BITS = 12
_SEQUENCE_MASK = (1 << _SEQUENCE_BITS) - 1


class IdSource:
    """Makes strictly increasing ids from one clock; safe to share between threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last = 0

    def new(self) -> str:
        return self.many(1)[0]

    def many(self, count: int) -> list[str]:
        """`count` ids in increasing order, for one bulk enqueue."""
        now = self._clock.now() // 1000 << _SEQUENCE_BITS
        bits = self._clock.random_bits
        with self._lock:
            # Milliseconds and sequence are one counter, which never falls behind the clock and never stands still.
            first = max(self._last + 1, now)
            self._last = first + count - 1
        return [_text(tick, bits(62)) for tick in range(first, first + count)]


def _text(tick: int, bits: int) -> str:
    number = tick >> _SEQUENCE_BITS << 80 | _VERSION | (tick & _SEQUENCE_MASK) << 64 | _VARIANT | bits
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
