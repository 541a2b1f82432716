"""Reads schedules and their ledger of ticks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain import schedule
from rota.domain.instant import MICROSECONDS
from rota.domain.schedule import Spec
from rota.store.port import View

MOST = 1_000_000
LATELY = 20


class ScheduleRow(msgspec.Struct, frozen=True, array_like=True):
    """A schedule and its state. `next_at` is null if it is paused, over, or waits for its last execution."""

    id: int
    namespace: str
    app: str
    name: str
    job: str
    origin: str
    text: str
    cursor: int
    next_at: int | None
    paused_at: int | None
    paused_by: str | None
    paused_note: str | None
    last_at: int | None
    last_late: int | None
    last_outcome: str | None
    last_execution: str | None
    waits_for: str | None
    held: str
    created_at: int
    updated_at: int
    removed_at: int | None

    @property
    def spec(self) -> Spec:
        return schedule.decode(self.text)


class TickRow(msgspec.Struct, frozen=True, array_like=True):
    """The outcome of a tick, or of `count` ticks from `at` to `until`, and of the execution that it started."""

    schedule: int
    at: int
    until: int
    count: int
    decided_at: int
    execution: str | None
    outcome: str
    status: str | None
    reason: str | None


def schedules(
    view: View, namespace: str, app: str | None = None, name: str | None = None, most: int = MOST
) -> list[ScheduleRow]:
    """Sorted by app and name; `name` may also be that of a job."""
    where = {"namespace": namespace, "all_apps": app is None, "app": app or ""}
    if name is None:
        return view.records("schedules", ScheduleRow, most=most, **where)
    found = view.records("schedules_called", ScheduleRow, name=name, **where)
    return sorted(found, key=lambda row: (row.app, row.name))[:most]


def schedule_called(view: View, namespace: str, app: str, name: str) -> ScheduleRow | None:
    """The schedule with exactly this name."""
    found = view.records("schedule_called", ScheduleRow, namespace=namespace, app=app, name=name)
    return found[0] if found else None


def ticks(view: View, namespace: str, app: str, name: str, low: int, high: int, most: int) -> list[TickRow]:
    """The ledger between two instants, newest first, including removed schedules of that name."""
    found: list[TickRow] = []
    for (id,) in view.rows("schedules_ever", namespace=namespace, app=app, name=name):
        found += view.records("ticks_of", TickRow, schedule=id, low=low, high=high, most=most)
        found += view.records("range_of", TickRow, schedule=id, low=low)
    return sorted(found, key=lambda tick: (tick.at, tick.schedule), reverse=True)[:most]


def run_times(view: View, namespace: str, jobs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """The average run time of the last executions of each job (app, name), in seconds."""
    found: dict[tuple[str, str], float] = {}
    for app, job in jobs:
        row = view.one("run_time", namespace=namespace, app=app, job=job, most=LATELY)
        if row is not None and row[0] is not None:
            found[app, job] = float(row[0]) / MICROSECONDS
    return found
