"""How long history is kept, and when it may be deleted. Dead letters and unfinished executions are never deleted.

Retention is a promise to keep history *at least* as long: it may be deleted late, never early.
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
MOST_ID_SKEW = DAY
"""How far the time in an id may be from the database's time: `ops/enqueue.py` refuses other ids."""
GRACE = DAY
"""How much longer a whole day is kept, so that the executions of that day have ended and go with it."""
AUDIT_S = 365 * DAY_S
"""The audit trail is small and read late: it is kept for a year, or as long as the history if that is longer."""

LOOK_S = 3600.0
"""The time between two passes."""
FULL_S = 86_400.0
"""How often a pass starts from the oldest execution, and not where the last pass ended."""
ABANDONED_S = 300.0
"""Another supervisor takes over a pass that has had no heartbeat for this long."""

FIRST_BATCH, LARGEST_BATCH = 10, 1000
AIM_S = 0.02
"""How long one transaction of pruning should take, because other transactions wait for it or for the disk."""


class Retention(msgspec.Struct, frozen=True):
    """Seconds to keep finished executions: the default, and the namespaces, each with its own value or None."""

    default_s: int
    namespaces: Mapping[str, int | None]

    def of(self, namespace: str) -> int:
        own = self.namespaces.get(namespace)
        return self.default_s if own is None else own

    def _finite(self) -> list[int]:
        return [kept for name in self.namespaces if (kept := self.of(name)) != FOREVER]

    @property
    def shortest_s(self) -> int | None:
        """None if all namespaces keep history forever."""
        return min(self._finite(), default=None)

    @property
    def longest_s(self) -> int | None:
        """None if a namespace keeps history forever."""
        finite = self._finite()
        return max(finite) if finite and len(finite) == len(self.namespaces) else None

    def cutoffs(self, now: int) -> list[tuple[str, int]]:
        """For each namespace that does not keep history forever: executions that ended before this may be deleted."""
        kept = [(name, self.of(name)) for name in self.namespaces]
        return [(name, now - kept_s * MICROSECONDS) for name, kept_s in kept if kept_s != FOREVER]

    def hasty_cutoffs(self, now: int) -> list[tuple[str, int]]:
        """The cutoffs of namespaces whose retention is shorter than the longest, by which whole days are dropped."""
        longest = self.longest_s
        return [(name, cutoff) for name, cutoff in self.cutoffs(now) if longest is None or self.of(name) < longest]


class Record(msgspec.Struct, frozen=True, array_like=True):
    """The stored state of the passes so far."""

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
    """The pass to begin or to take over; None if it is too early, or another supervisor makes it."""
    if known.begun_at > known.done_at:
        if _within(known.beat_at, now, ABANDONED_S):
            return None
        # The supervisor that made the last pass was killed. Each of its transactions committed or was rolled back, so
        # the pass resumes at the stored mark.
        return Pass(now, known.full_at, known.mark, known.removed)
    if _within(known.done_at, now, 0.9 * LOOK_S):
        return None
    if _within(known.full_at, now, FULL_S):
        return Pass(now, known.full_at, known.mark, 0)
    return Pass(now, now, "", 0)


def _within(then: int, now: int, seconds: float) -> bool:
    """False if the clock was set back, so that pruning does not stop until the clock has caught up."""
    return 0 <= now - then < seconds * MICROSECONDS


def next_batch(size: int, took_s: float) -> int:
    """How many executions to read in the next transaction, after `size` of them took `took_s`."""
    if took_s > 2 * AIM_S:
        return max(1, size // 2)
    return min(LARGEST_BATCH, 2 * size) if took_s < AIM_S / 2 else size


def day_of(instant: int) -> int:
    """The first instant of the day, in UTC."""
    return instant - instant % DAY


def day_name(day: int) -> str:
    return f"{datetime.fromtimestamp(day // MICROSECONDS, UTC):%Y%m%d}"


def day_named(name: str) -> int | None:
    """The day with that name; None if the name is not a day."""
    try:
        day = datetime.strptime(name, "%Y%m%d").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(day.timestamp()) * MICROSECONDS


def days_wanted(now: int) -> list[int]:
    """The days that need a partition: those that an id of today may have, and a week ahead in case no janitor runs."""
    today = day_of(now)
    return [today + offset * DAY for offset in range(-1, DAYS_AHEAD + 1)]


def is_closed(day: int, now: int) -> bool:
    """Whether ids of this day are no longer accepted."""
    return day + DAY + MOST_ID_SKEW + MOST_ID_SKEW // 24 <= now


def days_to_drop(days: Iterable[int], retention: Retention, now: int) -> list[int]:
    """The days whose partitions can be dropped, oldest first; the few rows to keep are moved before."""
    longest = retention.longest_s
    if longest is None:
        return []
    oldest_kept = now - longest * MICROSECONDS - GRACE
    return sorted(day for day in days if day + DAY <= oldest_kept and is_closed(day, now))
