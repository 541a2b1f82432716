"""A shared file that jobs write to, so that the measuring process can count and time them without asking a database.

Every thread has a counter of its own in it, and every numbered delay has a place. Only the standard library is used:
peers import this as well, in an environment without Rota.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from functools import cache
from pathlib import Path

VARIABLE = "BENCHMARKS_PROBE"
COUNTERS = 8192
DELAYS = 16384
_SIZE = (COUNTERS + DELAYS) * 8
_COUNTER = struct.Struct("<q")
_DELAY = struct.Struct("<d")


class Probe:
    """The file, mapped into memory. A counter has one writer: numbers of threads are unique on a machine."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SIZE)

    def bump(self) -> None:
        offset = (threading.get_native_id() % COUNTERS) * 8
        _COUNTER.pack_into(self._map, offset, _COUNTER.unpack_from(self._map, offset)[0] + 1)

    def note(self, number: int, since: float) -> None:
        """Keeps the time from `since` to now under `number`; nothing but the count if `since` is 0."""
        if since:
            _DELAY.pack_into(self._map, (COUNTERS + number) * 8, time.time() - since)
        self.bump()

    def forget(self) -> None:
        """All delays so far; the counts stay."""
        self._map[COUNTERS * 8 :] = bytes(DELAYS * 8)

    def count(self) -> int:
        """Bumps so far, of all processes."""
        return sum(struct.unpack_from(f"<{COUNTERS}q", self._map))

    def delays(self, number: int) -> list[float]:
        """The first `number` delays in seconds; those that were never noted are left out."""
        found = struct.unpack_from(f"<{number}d", self._map, COUNTERS * 8)
        return [delay for delay in found if delay != 0]


def create(path: Path) -> Probe:
    """A new file, all zeros."""
    with path.open("wb") as file:
        file.truncate(_SIZE)
    return Probe(path)


@cache
def current() -> Probe:
    """The probe of the process that started this one."""
    return Probe(Path(os.environ[VARIABLE]))
