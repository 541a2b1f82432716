"""Time and randomness: the only module that may ask the machine for either.

Instants are whole microseconds since 1970 in UTC, durations are seconds as a float. Code that needs the time, a random
number or an id takes a `Clock`, so that tests and the simulator can run the whole engine on a clock of their own.
"""

from __future__ import annotations

import os
import random
import time
from typing import Protocol

from rota.domain.instant import MICROSECONDS


class Clock(Protocol):
    """The source of instants, monotonic time and random numbers."""

    def now(self) -> int:
        """The wall clock, in microseconds since 1970 UTC. It may jump."""

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back, comparable between the processes of one machine."""

    def random(self) -> float:
        """A number in [0, 1)."""

    def random_bits(self, count: int) -> int:
        """An integer of `count` random bits."""

    def secret_bits(self, count: int) -> int:
        """Random bits that cannot be foretold from others, for tokens and keys. Slower than `random_bits`."""


class SystemClock:
    """The machine's own clock and randomness."""

    def __init__(self) -> None:
        # A generator in the process, because the system's costs a system call per id. After a fork, the child must seed
        # it again: otherwise both processes would make the same numbers, and so the same ids.
        self._entropy = random.Random(os.urandom(32))
        os.register_at_fork(after_in_child=lambda: self._entropy.seed(os.urandom(32)))

    def now(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        return time.monotonic()

    def random(self) -> float:
        return self._entropy.random()

    def random_bits(self, count: int) -> int:
        return self._entropy.getrandbits(count)

    def secret_bits(self, count: int) -> int:
        # Ids show what the generator of this process makes, and its next numbers follow from enough of them.
        return int.from_bytes(os.urandom((count + 7) // 8)) & ((1 << count) - 1)


MACHINE: Clock = SystemClock()
"""For waits: threads, processes and connections take real time, even if a test gives the engine another clock."""


class ManualClock:
    """A clock that moves only when `advance` or `set` is called; its random numbers follow from a seed."""

    def __init__(self, start: int = 1_767_225_600 * MICROSECONDS, seed: int = 0) -> None:
        self._start = start
        self._now = start
        self._entropy = random.Random(seed)

    def now(self) -> int:
        return self._now

    def monotonic(self) -> float:
        return (self._now - self._start) / MICROSECONDS

    def random(self) -> float:
        return self._entropy.random()

    def random_bits(self, count: int) -> int:
        return self._entropy.getrandbits(count)

    def secret_bits(self, count: int) -> int:
        return self._entropy.getrandbits(count)

    def advance(self, seconds: float) -> None:
        self._now += round(seconds * MICROSECONDS)

    def set(self, instant: int) -> None:
        self._now = instant
