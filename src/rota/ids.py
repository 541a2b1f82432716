"""Identifiers of executions and jobs: UUIDv7, made by the client, so that an id is known before its commit.

The first 48 bits are milliseconds, so ids sort by the time they were made and inserts stay sequential. The next
twelve bits count within one millisecond, so the ids of one source are strictly increasing even in a tight loop.
"""

from __future__ import annotations

import functools
import hashlib
import re
import threading
from collections.abc import Iterator

from rota.clock import Clock

FIRST_ID = "00000000-0000-0000-0000-000000000000"
LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"
_FORM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_VARIANT = 0b10 << 62
_RANDOM = (1 << 62) - 1
_SEQUENCE_BITS = 12
_SEQUENCE_MASK = (1 << _SEQUENCE_BITS) - 1
_SEQUENCES = [f"{number:03x}" for number in range(_SEQUENCE_MASK + 1)]


class IdSource:
    """Makes strictly increasing ids from one clock; safe to share between threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last = 0

    def new(self) -> str:
        """One id; `many(1)` would take twice as long."""
        now = self._clock.now() // 1000 << _SEQUENCE_BITS
        with self._lock:
            self._last = tick = max(self._last + 1, now)
        head, tail = f"{tick >> _SEQUENCE_BITS:012x}", f"{self._clock.random_bits(64) & _RANDOM | _VARIANT:016x}"
        return f"{head[:8]}-{head[8:]}-7{_SEQUENCES[tick & _SEQUENCE_MASK]}-{tail[:4]}-{tail[4:]}"

    def many(self, count: int) -> list[str]:
        """`count` ids in increasing order, for one bulk enqueue."""
        now = self._clock.now() // 1000 << _SEQUENCE_BITS
        with self._lock:
            # Milliseconds and sequence are one counter, which is never behind the clock and always increases.
            first = max(self._last + 1, now)
            self._last = first + count - 1
        # Sixteen digits for each id; two of their bits are the variant of the UUID.
        random = self._clock.random_bits(64 * count) & _repeated(_RANDOM, count) | _repeated(_VARIANT, count)
        return list(_texts(first, count, f"{random:0{16 * count}x}"))


def named(instant: int, name: str, place: int | None = None) -> str:
    """The id of a thing with a unique name: like the ids above, with a hash of the name instead of random bits.

    Ids of one instant are in the order of their `place`, if it is given.
    """
    bits = int.from_bytes(hashlib.sha256(name.encode()).digest()[:10])
    first = (max(0, instant) // 1000 << _SEQUENCE_BITS) + ((bits if place is None else place) & _SEQUENCE_MASK)
    return next(_texts(first, 1, f"{bits >> _SEQUENCE_BITS & _RANDOM | _VARIANT:016x}"))


def is_id(text: str) -> bool:
    """Whether this has the form of an id."""
    return _FORM.fullmatch(text) is not None


def range_of(prefix: str) -> tuple[str, str] | None:
    """The lowest and the highest id that start with `prefix`; None if no id can."""
    low, high = prefix + FIRST_ID[len(prefix) :], prefix + LAST_ID[len(prefix) :]
    return (low, high) if is_id(low) and is_id(high) else None


def made_at(id: str) -> int:
    """When an id was made, by the clock of the client that made it."""
    return int(id[:8] + id[9:13], 16) * 1000


def sequence(id: str) -> int:
    """The position of an id among those that its maker made in the same millisecond."""
    return int(id[15:18], 16)


def first_at(instant: int) -> str:
    """The lowest id that can be made at `instant`: every lower id is older, by the clock of its client."""
    text = f"{max(0, instant) // 1000:012x}"
    return f"{text[:8]}-{text[8:]}{FIRST_ID[13:]}"


def _texts(first: int, count: int, random: str) -> Iterator[str]:
    tick, place, end = first, 0, first + count
    while tick < end:
        millisecond = f"{tick >> _SEQUENCE_BITS:012x}"
        head = f"{millisecond[:8]}-{millisecond[8:]}-7"
        last = min(end, (tick | _SEQUENCE_MASK) + 1)
        for sequence in _SEQUENCES[tick & _SEQUENCE_MASK : (tick & _SEQUENCE_MASK) + last - tick]:
            yield f"{head}{sequence}-{random[place : place + 4]}-{random[place + 4 : place + 16]}"
            place += 16
        tick = last


@functools.lru_cache(maxsize=8)
def _repeated(bits: int, count: int) -> int:
    return int.from_bytes(bits.to_bytes(8) * count)
