"""The ticks of many schedules in a range of time: how many in each quarter hour, and the worst outcome of each day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from rota.domain import trigger as triggers
from rota.domain.instant import MICROSECONDS
from rota.domain.schedule import Spec
from rota.domain.tick_policy import TickOutcome
from rota.domain.zone import day_of

QUARTER = 900 * MICROSECONDS
_WORST = ("missed", "failed", "overlap", "other", "cancelled", "skipped", "running", "success")
_SAME = {TickOutcome.OUTSIDE_WINDOW: "missed", TickOutcome.UNKNOWN_JOB: "missed", TickOutcome.MISSED: "missed"}
_OVERLAPS = {TickOutcome.OVERLAP, TickOutcome.QUEUED}
_LEFT_OUT = ("missed", "failed", "overlap")


class DayTick(msgspec.Struct, frozen=True):
    """A row of the ledger. `status` is None while the execution has not ended."""

    at: int
    count: int
    outcome: str
    has_started: bool
    status: str | None


class Day(msgspec.Struct, frozen=True):
    """The ticks of one day in the zone of the schedule."""

    day: str
    worst: str
    ticks: int
    outcomes: dict[str, int]

    @property
    def is_complete(self) -> bool:
        return self.worst not in _LEFT_OUT


def quarters(instants: Iterable[tuple[int, int]], dense: Sequence[Spec], low: int, high: int) -> list[int]:
    """How many ticks are in each quarter hour from `low` on: `instants` with counts, and those of `dense` schedules."""
    counts = [0] * max(0, -(-(high - low) // QUARTER))
    for at, count in instants:
        if low <= at < high:
            counts[(at - low) // QUARTER] += count
    for spec in dense:
        for place in range(len(counts)):
            begin = low + place * QUARTER
            counts[place] += triggers.count(spec.trigger, begin - 1, min(begin + QUARTER, high) - 1)
    return counts


def days(ticks: Iterable[DayTick], tz: str) -> list[Day]:
    """Oldest first."""
    found: dict[str, list[DayTick]] = {}
    for tick in ticks:
        found.setdefault(day_of(tz, tick.at).isoformat(), []).append(tick)
    return [_day(day, found[day]) for day in sorted(found)]


def _day(day: str, ticks: Sequence[DayTick]) -> Day:
    outcomes: dict[str, int] = {}
    for tick in ticks:
        outcomes[tick.outcome] = outcomes.get(tick.outcome, 0) + tick.count
    worst = min((_state(tick) for tick in ticks), key=_WORST.index)
    return Day(day, worst, sum(tick.count for tick in ticks), outcomes)


def _state(tick: DayTick) -> str:
    """How bad a tick was, as one of `_WORST`."""
    if tick.has_started:
        return tick.status if tick.status in _WORST else "running"
    if tick.outcome in _OVERLAPS:
        return "overlap"
    return _SAME.get(TickOutcome(tick.outcome), "other")
