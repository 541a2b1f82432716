"""Clocks that disagree: the database's, which decides and may jump, and each machine's own, which is wrong."""

from __future__ import annotations

from random import Random

from rota.domain.instant import MICROSECONDS
from tests.simulation.loop import VirtualLoop

START = 1_767_225_600_000_000


class StoreClock:
    """The database's clock: virtual time, plus the jumps so far."""

    def __init__(self, loop: VirtualLoop, entropy: Random) -> None:
        self._loop = loop
        self._entropy = entropy
        self._offset = 0
        self._furthest = 0
        self.jumps: list[tuple[float, float]] = []

    def now(self) -> int:
        return START + round(self._loop.time() * MICROSECONDS) + self._offset

    def monotonic(self) -> float:
        return self._loop.time()

    def random(self) -> float:
        return self._entropy.random()

    def secret_bits(self, count: int) -> int:
        return self.random_bits(count)

    def random_bits(self, count: int) -> int:
        return self._entropy.getrandbits(count)

    def jump(self, seconds: float) -> None:
        self._offset += round(seconds * MICROSECONDS)
        self._furthest = max(self._furthest, self._offset)
        self.jumps.append((self._loop.time(), seconds))

    def catch_up(self) -> None:
        """Jumps to the latest time that it ever showed, so that nothing scheduled meanwhile is far away."""
        if self._offset < self._furthest:
            self.jump((self._furthest - self._offset) / MICROSECONDS)


class MachineClock:
    """A machine's clock: its wall time is off by hours, its monotonic time counts from some boot."""

    def __init__(self, loop: VirtualLoop, entropy: Random, skew_s: float) -> None:
        self._loop = loop
        self._entropy = entropy
        self._skew = round(skew_s * MICROSECONDS)
        self._booted = entropy.uniform(0, 1e6)

    def now(self) -> int:
        return START + round(self._loop.time() * MICROSECONDS) + self._skew

    def monotonic(self) -> float:
        return self._booted + self._loop.time()

    def random(self) -> float:
        return self._entropy.random()

    def secret_bits(self, count: int) -> int:
        return self.random_bits(count)

    def random_bits(self, count: int) -> int:
        return self._entropy.getrandbits(count)
