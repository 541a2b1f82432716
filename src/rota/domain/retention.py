"""How long history is kept, and what may go when. Dead letters and what has not ended are never among it.

Retention is a promise to keep *at least* as long: everything here may go late, nothing may go early.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import msgspec

from rota.domain.instant import MICROSECONDS

FOREVER = 0
DAY_S = 86_400
DAY = DAY_S * MICROSECONDS
DAYS_AHEAD = 7
REACH = DAY
"""How far the time in an id may be from the database's: what `ops/enqueue.py` accepts."""
GRACE = DAY
"""How much longer a whole day is kept: what was enqueued in it has ended by then, and goes with it."""
AUDIT_S = 365 * DAY_S
"""The audit trail is small and asked for late: it is kept for a year, or as long as the history if that is longer."""

LOOK_S = 3600.0
"""How often somebody prunes."""
FULL_S = 86_400.0
"""How often a pass starts from the oldest execution, and not where the last pass ended."""
ABANDONED_S = 300.0
"""A pass of which nothing has been heard for so long is nobody's."""

FIRST_BATCH, LARGEST_BATCH = 100, 1000
AIM_S = 0.02
"""How long one transaction of pruning may take: others wait for it, or at least for the disk."""


class Retention(msgspec.Struct, frozen=True):
    """Seconds to keep what has ended: by default, and for the namespaces that have a say of their own."""

    default_s: int
    namespaces: Mapping[str, int | None]

    def of(self, namespace: str) -> int:
        own = self.namespaces.get(namespace)
        return self.default_s if own is None else own

    def _finite(self) -> list[int]:
        return [kept for name in self.namespaces if (kept := self.of(name)) != FOREVER]

    @property
    def shortest_s(self) -> int | None:
        """None if everything is kept for ever."""
        return min(self._finite(), default=None)

    @property
    def longest_s(self) -> int | None:
        """None if something is kept for ever."""
        finite = self._finite()
        return max(finite) if finite and len(finite) == len(self.namespaces) else None

    def cutoffs(self, now: int) -> list[tuple[str, int]]:
        """For each namespace that forgets: what ended before this instant may go."""
        kept = [(name, self.of(name)) for name in self.namespaces]
        return [(name, now - kept_s * MICROSECONDS) for name, kept_s in kept if kept_s != FOREVER]

    def hasty_cutoffs(self, now: int) -> list[tuple[str, int]]:
        """Those of namespaces that cannot wait until whole days go."""
        longest = self.longest_s
        return [(name, cutoff) for name, cutoff in self.cutoffs(now) if longest is None or self.of(name) < longest]


class Record(msgspec.Struct, frozen=True, array_like=True):
    """What the database remembers of the passes so far."""

    begun_at: int = 0
    beat_at: int = 0
    done_at: int = 0
    full_at: int = 0
    removed: int = 0
    mark: str = ""


class Pass(msgspec.Struct, frozen=True):
    """One round of pruning: when it began, and behind which id it starts."""

    begun_at: int
    full_at: int
    mark: str
    removed: int


def next_pass(known: Record, now: int) -> Pass | None:
    """The pass to begin or to take over; None if it is too early, or another node is at it."""
    if known.begun_at > known.done_at:
        if _within(known.beat_at, now, ABANDONED_S):
            return None
        # Whoever did it was killed. Its transactions are whole, so the rest is all there is to do.
        return Pass(now, known.full_at, known.mark, known.removed)
    if _within(known.done_at, now, 0.9 * LOOK_S):
        return None
    if _within(known.full_at, now, FULL_S):
        return Pass(now, known.full_at, known.mark, 0)
    return Pass(now, now, "", 0)


def _within(then: int, now: int, seconds: float) -> bool:
    """A clock that went back must not stop the pruning until it has caught up."""
    return 0 <= now - then < seconds * MICROSECONDS


def next_batch(size: int, took_s: float) -> int:
    """How many executions to look at next time, after `size` of them took so long."""
    if took_s > 2 * AIM_S:
        return max(1, size // 2)
    return min(LARGEST_BATCH, 2 * size) if took_s < AIM_S / 2 else size


def day_of(instant: int) -> int:
    """The first instant of the day, in UTC."""
    return instant - instant % DAY


def day_name(day: int) -> str:
    return f"{datetime.fromtimestamp(day // MICROSECONDS, UTC):%Y%m%d}"


def day_named(name: str) -> int | None:
    """The day that a name stands for; None if it stands for none."""
    try:
        day = datetime.strptime(name, "%Y%m%d").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(day.timestamp()) * MICROSECONDS


def days_wanted(now: int) -> list[int]:
    """The days that need a partition: all that an id may name today, and a week in which nobody need be here."""
    today = day_of(now)
    return [today + offset * DAY for offset in range(-1, DAYS_AHEAD + 1)]


def is_out_of_reach(day: int, now: int) -> bool:
    """Whether no id of this day can be accepted any more."""
    return day + DAY + REACH + REACH // 24 <= now


def days_to_drop(days: Iterable[int], retention: Retention, now: int) -> list[int]:
    """The days, oldest first, of which hardly anything need be kept."""
    longest = retention.longest_s
    if longest is None:
        return []
    oldest_kept = now - longest * MICROSECONDS - GRACE
    return sorted(day for day in days if day + DAY <= oldest_kept and is_out_of_reach(day, now))
