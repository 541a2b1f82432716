"""How many executions to claim beyond the free slots.

While a claim is on its way the slots of a fast worker run dry, and many small claims cost more than a few large ones.
So a worker whose slots are used again within a blink claims ahead what it will begin within that time.
"""

from __future__ import annotations

from rota.clock import Clock

HORIZON_S = 0.03
GATHER_S = 0.003
MOST_PER_SLOT = 6


class Pace:
    """Counts the attempts that end, and decides from that."""

    def __init__(self, clock: Clock, concurrency: int) -> None:
        self._clock = clock
        self._concurrency = concurrency
        self._since = clock.monotonic()
        self.ended = 0
        self.ahead = 0
        """Claims that may wait in this process until a slot is free."""

    @property
    def worthwhile(self) -> int:
        """How many free places make a claim worth its cost while there is plenty of work: with something at hand half
        of them may become free before the next claim, without it nearly all must."""
        places = self._concurrency + self.ahead
        return max(1, places // 2 if self.ahead else places * 9 // 10)

    @property
    def gather_s(self) -> float:
        """How long to wait for so many."""
        return HORIZON_S / 2 if self.ahead else GATHER_S

    def measure(self) -> None:
        """To be called before each claim."""
        now = self._clock.monotonic()
        elapsed_s = now - self._since
        if elapsed_s < HORIZON_S:
            return
        soon = int(self.ended * HORIZON_S / elapsed_s)
        self._since, self.ended = now, 0
        self.ahead = min(soon, MOST_PER_SLOT * self._concurrency) if soon >= self._concurrency else 0
