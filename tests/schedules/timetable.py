"""Short words for the operations on schedules, and for what the ledger says. Instants are seconds from the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rota.clock import ManualClock
from rota.domain.claim import Claim
from rota.domain.schedule import Overlap, Spec
from rota.domain.ticks import Gap
from rota.domain.trigger import After, At, Cron, Every, Trigger
from rota.ops import after_end, backfill, calendars, firing, schedule, upkeep
from rota.ops.backfill import Step
from rota.ops.firing import Fired
from rota.store import schedule_reader
from rota.store.port import Store
from rota.store.schedule_reader import ScheduleRow, TickRow
from tests.support.world import APP, NAMESPACE, World

SECOND = 1_000_000
DAY_S = 86_400
START = ManualClock().now()
"""Midnight UTC, 1 January 2026: a Thursday."""
FOR_EVER = 2**62


class Entry(NamedTuple):
    """One row of the ledger, in seconds from the start."""

    at: float
    outcome: str
    ticks: int = 1


def every(seconds: float) -> Every:
    return Every(round(seconds * SECOND))


def after(seconds: float) -> After:
    return After(round(seconds * SECOND))


def at(*seconds: float) -> At:
    return At(tuple(instant(one) for one in seconds))


def cron(expression: str, tz: str = "UTC", gap: Gap = Gap.NEXT) -> Cron:
    return Cron(expression, tz, gap)


def instant(seconds: float) -> int:
    return START + round(seconds * SECOND)


def since_start(instant: int) -> float:
    return (instant - START) / SECOND


def spec(trigger: Trigger, **options: Any) -> Spec:
    """Runs may overlap, unless the test says something else."""
    return Spec(**{"job": "send", "trigger": trigger, "overlap": Overlap.ALLOW, **options})


class Timetable:
    """The schedules of the world's app."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.last_worker = 0

    @property
    def store(self) -> Store:
        return self.world.store

    # Owners.

    def put(self, trigger: Trigger, name: str = "s", **options: Any) -> bool:
        return self.store.transact(schedule.put, NAMESPACE, APP, name, spec(trigger, **options), "test")

    def declare(self, **wanted: Spec) -> list[str]:
        return self.store.transact(schedule.declare, NAMESPACE, APP, list(wanted.items()))

    def remove(self, name: str = "s") -> bool:
        return self.store.transact(schedule.remove, NAMESPACE, APP, name, "test")

    def pause(self, name: str = "s", note: str = "") -> bool:
        return self.store.transact(schedule.pause, NAMESPACE, APP, name, "test", note)

    def resume(self, name: str = "s") -> bool:
        return self.store.transact(schedule.resume, NAMESPACE, APP, name, "test")

    def calendar(self, name: str, *days: str) -> None:
        self.store.transact(calendars.put, NAMESPACE, name, days, "test")

    def backfill(self, low: float, high: float, name: str = "s", most: int = backfill.MOST) -> Step:
        """The ticks from `low` to `high`, both included."""
        span = (instant(low) - 1, instant(high))
        return self.store.transact(
            backfill.backfill, NAMESPACE, APP, name, *span, "test", self.world.ids.many, most=most
        )

    # Time.

    def fire(self) -> Fired:
        return self.store.transact(firing.fire, upkeep.ALL_SHARDS, self.world.ids.many)

    def go_to(self, seconds: float) -> Fired:
        """The clock is set, and whatever is due is decided."""
        self.world.clock.set(instant(seconds))
        return self.fire()

    def visit(self, *seconds: float) -> None:
        for one in seconds:
            self.go_to(one)

    def follow(self) -> int:
        return self.store.transact(after_end.wake_forgotten)

    def claim(self) -> Claim:
        """The one execution that is ready."""
        self.last_worker = self.world.join(lease_s=10 * DAY_S)
        (claimed,) = self.world.claim(self.last_worker)
        return claimed

    # Looking.

    def rows(self, name: str = "s") -> list[TickRow]:
        """The ledger, oldest first."""
        return self.store.read(schedule_reader.ticks, NAMESPACE, APP, name, 0, FOR_EVER, FOR_EVER)[::-1]

    def ledger(self, name: str = "s") -> list[Entry]:
        return [Entry(since_start(row.at), row.outcome, row.count) for row in self.rows(name)]

    def started(self, name: str = "s") -> list[str]:
        """The executions that the ledger names, oldest tick first."""
        return [row.execution for row in self.rows(name) if row.execution is not None]

    def info(self, name: str = "s") -> ScheduleRow:
        (row,) = self.store.read(schedule_reader.schedules, NAMESPACE, APP, name)
        return row

    def next_at(self, name: str = "s") -> float | None:
        found = self.info(name).next_at
        return None if found is None else since_start(found)

    def names(self) -> list[str]:
        return [row.name for row in self.store.read(schedule_reader.schedules, NAMESPACE, APP)]


def ticks_of(rows: Sequence[TickRow], period_s: float) -> list[int]:
    """Every tick of a fixed rate that the rows speak of, as often as they do; a range must have its number of them."""
    period = round(period_s * SECOND)
    found: list[int] = []
    for row in rows:
        inside = list(range(row.at, row.until + 1, period))
        assert (len(inside), inside[-1]) == (row.count, row.until), f"the range {row} does not add up"
        found += inside
    return found
