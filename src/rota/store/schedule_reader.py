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
LAST_NAME = "\U0010ffff"
"""Behind every name."""


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
    revision: int

    @property
    def spec(self) -> Spec:
        return schedule.decode(self.text)


class ListedRow(msgspec.Struct, frozen=True, array_like=True):
    """The columns of a schedule that lists filter by."""

    id: int
    name: str
    app: str
    job: str
    origin: str
    paused_at: int | None


class ScheduleFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which schedules to list. `name` is the start of a name. None means any."""

    name: str | None = None
    app: str | None = None
    job: str | None = None
    state: str | None = None
    """`active` or `paused`."""
    origin: str | None = None

    def fits(self, row: ListedRow) -> bool:
        return (
            row.name.startswith(self.name or "")
            and self.app in (None, row.app)
            and self.job in (None, row.job)
            and self.state in (None, "active" if row.paused_at is None else "paused")
            and self.origin in (None, row.origin)
        )


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


def by_ids(view: View, namespace: str, ids: Sequence[int]) -> dict[int, ScheduleRow]:
    found = view.records("schedules_by_id", ScheduleRow, namespace=namespace, ids=list(ids))
    return {row.id: row for row in found}


def listed(view: View, namespace: str, after: tuple[str, str] | None, most: int, *, is_down: bool) -> list[ListedRow]:
    """In the order of name and app, or backwards with `is_down`, behind the one with this name and app."""
    name, app = after or ((LAST_NAME, "") if is_down else ("", ""))
    statement = "schedules_listed" if is_down else "schedules_listed_asc"
    return view.records(statement, ListedRow, namespace=namespace, name=name, app=app, most=most)


def due_together(view: View, row: ScheduleRow, most: int) -> list[Spec]:
    """Other schedules of the namespace whose next tick is at the same instant."""
    shards = [(number,) for number in range(schedule.SHARDS)]
    where = {"namespace": row.namespace, "id": row.id, "at": row.next_at, "shards": shards}
    return [schedule.decode(text) for (text,) in view.rows("due_together", most=most, **where)]


def ledgers(view: View, namespace: str, name: str) -> list[tuple[str, str]]:
    """App and name of the schedules with this name, also of removed ones, whose ledger stays."""
    return [(app, name) for app, name in view.rows("ledgers_called", namespace=namespace, name=name)]


def ledger_of(view: View, namespace: str, id: int) -> list[tuple[str, str]]:
    """The same of the schedule with this id; empty if there is none."""
    return [(app, name) for app, name in view.rows("ledger_of", namespace=namespace, id=id)]


def ticks(view: View, namespace: str, app: str, name: str, low: int, high: int, most: int) -> list[TickRow]:
    """The ledger between two instants, newest first, including removed schedules of that name."""
    found: list[TickRow] = []
    for (id,) in view.rows("schedules_ever", namespace=namespace, app=app, name=name):
        found += view.records("ticks_of", TickRow, schedule=id, low=low, high=high, most=most)
        found += view.records("range_of", TickRow, schedule=id, low=low)
    return sorted(found, key=lambda tick: (tick.at, tick.schedule), reverse=True)[:most]


def page_of_ticks(
    view: View,
    schedules: Sequence[int],
    between: tuple[int, int],
    after: tuple[int, int] | None,
    most: int,
    is_down: bool,
) -> list[TickRow]:
    """Ticks between two instants, newest first with `is_down`, behind the one with this instant and schedule."""
    low, high = between
    statement = "ticks_of" if is_down else "ticks_of_asc"
    start, end = (low, high) if after is None else (low, min(high, after[0])) if is_down else (max(low, after[0]), high)
    found: list[TickRow] = []
    for id in schedules:
        # One more, because the tick that the page begins behind is read again.
        found += view.records(statement, TickRow, schedule=id, low=start, high=end, most=most + 1)
        found += view.records("range_of", TickRow, schedule=id, low=low)
    places = [((tick.at, tick.schedule), tick) for tick in found]
    if after is not None:
        places = [one for one in places if (one[0] < after if is_down else one[0] > after)]
    return [tick for _, tick in sorted(places, key=lambda one: one[0], reverse=is_down)[:most]]


def ticks_between(view: View, schedules: Sequence[int], low: int, high: int, each: int) -> list[TickRow]:
    """The ledger of several schedules from `low` to before `high`, oldest first; at most `each` rows of one."""
    rows = [(id,) for id in schedules]
    return view.records("ticks_between", TickRow, schedules=rows, low=low, high=high, each=each) if rows else []


def sums_of_ticks(view: View, schedules: Sequence[int], low: int, high: int, most: int) -> tuple[dict[str, int], bool]:
    """How many ticks had which outcome, and whether only the newest `most` rows of a schedule were counted."""
    sums: dict[str, int] = {}
    is_capped = False
    for id in schedules:
        rows = view.rows("tick_sums", schedule=id, low=low, high=high, most=most)
        is_capped = is_capped or sum(number for _, number, _ in rows) >= most
        begun = view.records("range_of", TickRow, schedule=id, low=low)
        for outcome, ticks in [*((one, int(ticks)) for one, _, ticks in rows), *((t.outcome, t.count) for t in begun)]:
            sums[outcome] = sums.get(outcome, 0) + ticks
    return sums, is_capped


def ever(view: View, namespace: str, app: str, name: str) -> list[int]:
    """The ids of all schedules that had this name."""
    return [id for (id,) in view.rows("schedules_ever", namespace=namespace, app=app, name=name)]


def run_times(view: View, namespace: str, jobs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """The average run time of the last executions of each job (app, name), in seconds."""
    found: dict[tuple[str, str], float] = {}
    for app, job in jobs:
        row = view.one("run_time", namespace=namespace, app=app, job=job, most=LATELY)
        if row is not None and row[0] is not None:
            found[app, job] = float(row[0]) / MICROSECONDS
    return found
