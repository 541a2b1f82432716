"""How many executions per second end with each outcome, for the pulse of streams.

Each look reads the counts of the last minutes from the statistics, and compares them with those of the look before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rota.clock import Clock
from rota.domain import statistics
from rota.domain.instant import MICROSECONDS
from rota.domain.statistics import MINUTE_S
from rota.store.feed_reader import OutcomeCount

OUTCOMES = ("success", "failed", "cancelled", "skipped", "retries")
LATE = 2 * MINUTE_S * MICROSECONDS
"""A transaction may commit so long after the time that it counts its ends for."""
Counts = dict[int, OutcomeCount]


class OutcomeRates:
    """The rates of one server's streams."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._before: dict[str, Counts] = {}
        self._looked_at = clock.monotonic()

    def since(self) -> int:
        """The first minute to read."""
        return statistics.begin_of(self._clock.now() - LATE, MINUTE_S)

    def measure(self, namespaces: Sequence[str], found: Iterable[OutcomeCount]) -> dict[str, dict[str, float]]:
        """The rates of each namespace since the last call; all are 0 at the first one."""
        now: dict[str, Counts] = {namespace: {} for namespace in namespaces}
        for one in found:
            now[one.namespace][one.minute] = one
        looked_at = self._clock.monotonic()
        elapsed_s = max(looked_at - self._looked_at, 0.001)
        rates = {namespace: _rates(self._before.get(namespace), now[namespace], elapsed_s) for namespace in namespaces}
        self._before, self._looked_at = now, looked_at
        return rates


def _rates(before: Counts | None, now: Counts, elapsed_s: float) -> dict[str, float]:
    counted = dict.fromkeys(OUTCOMES, 0)
    for minute, counts in now.items() if before is not None else ():
        known = before.get(minute) if before else None
        for name in OUTCOMES:
            counted[name] += getattr(counts, name) - (getattr(known, name) if known else 0)
    return {name: round(max(0, count) / elapsed_s, 1) for name, count in counted.items()}
