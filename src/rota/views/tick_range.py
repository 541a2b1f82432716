"""The ticks of all schedules in a range of time, those to come too, and the days of one schedule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime

import msgspec

from rota.domain import schedule, tick_policy, tick_range
from rota.domain.instant import moment
from rota.domain.schedule import Spec
from rota.domain.status import Status
from rota.domain.tick_range import QUARTER, DayTick
from rota.domain.trigger import After
from rota.store import calendar_reader, schedule_reader
from rota.store.port import View
from rota.store.schedule_reader import ScheduleRow, TickRow
from rota.views.shape import Shape

MOST_SCHEDULES = 1000
MOST_PAST, MOST_PLANNED = 20_000, 5_000
"""How many rows of the ledger are read, and how many ticks to come are computed, for all schedules together."""
MOST_OF_DAYS = 200_000
PLANNED = "planned"


class TickOfAll(Shape, frozen=True):
    """A tick of a schedule, or `count` ticks with one outcome from `at` to `until`.

    `outcome` is planned for a tick to come. `status` is null until its execution has ended.
    """

    at: datetime
    """The time of the tick, or of the first one."""
    until: datetime
    """The time of the last one; the same as `at` for one tick."""
    count: int
    """How many ticks in a row have this outcome."""
    schedule_id: str
    schedule: str
    """The name of the schedule."""
    app: str
    job: str
    outcome: str
    """The outcome of the tick, such as `fired`, `overlap` or `missed`; `planned` for one to come."""
    is_planned: bool
    """Whether the tick is still to come."""
    execution_id: str | None
    status: Status | None
    """The status of its execution; null until that has ended."""


class Quarter(Shape, frozen=True):
    """How many ticks there are in a quarter hour."""

    at: datetime
    """When the quarter hour begins."""
    count: int
    """How many ticks it has."""


class TicksOfAll(Shape, frozen=True):
    """Oldest first. `isCapped` says that some are left out; `dense` are the ids of schedules with more than are shown.

    `quarters` counts all ticks in each quarter hour, shown or not.
    """

    from_: datetime = msgspec.field(name="from")
    to: datetime
    items: list[TickOfAll]
    """The ticks, oldest first."""
    is_capped: bool
    """Whether some ticks are left out."""
    dense: list[str]
    """The ids of schedules with more ticks than the list has."""
    quarters: list[Quarter]
    """How many ticks each quarter of an hour has, shown or not."""


class ScheduleDay(Shape, frozen=True):
    """A day in the zone of the schedule. `worst` is the worst of its ticks, from missed to success."""

    day: str
    """The date, in the zone of the schedule."""
    worst: str
    """The worst state of its ticks: `missed`, `failed`, `overlap` … to `success`."""
    ticks: int
    """How many ticks the day had."""
    outcomes: dict[str, int]
    """How many ticks, by outcome."""


class ScheduleDays(Shape, frozen=True):
    """Days with ticks, oldest first; `incomplete` are those with ticks that did not run or failed."""

    tz: str
    """The time zone of the days."""
    items: list[ScheduleDay]
    """The days with ticks, oldest first."""
    complete: int
    """On how many days no tick was left out or failed."""
    incomplete: int
    """On how many days a tick was left out or failed."""
    is_capped: bool
    """Whether there are more ticks than were counted."""


def ticks(
    view: View, namespace: str, low: int, high: int, names: Sequence[str], limit: int, merge: int | None = None
) -> TicksOfAll:
    """In schedules with more than `merge` ticks, consecutive ticks with the same outcome are one item."""
    rows = schedule_reader.schedules(view, namespace, most=MOST_SCHEDULES + 1)
    is_capped = len(rows) > MOST_SCHEDULES
    rows = [row for row in rows[:MOST_SCHEDULES] if not names or row.name in names or str(row.id) in names]
    by_id = {row.id: row for row in rows}
    each = max(50, MOST_PAST // max(1, len(rows)))
    past = schedule_reader.ticks_between(view, list(by_id), low, high, each)
    planned = _planned(view, namespace, rows, low, high)
    counts = Counter(row.schedule for row in past)
    dense = {id for id, count in counts.items() if count >= each}
    dense |= {id for id, ats in planned.items() if len(ats) >= _each_planned(len(rows))}
    items = [_past(by_id[row.schedule], row) for row in past]
    items += [_to_come(by_id[id], at) for id, ats in planned.items() for at in ats]
    items.sort(key=lambda one: (one.at, one.schedule_id))
    if merge is not None:
        items = _merged(items, merge)
    sparse = [(row.at, row.count) for row in past if row.schedule not in dense]
    sparse += [(at, 1) for id, ats in planned.items() if id not in dense for at in ats]
    found = tick_range.quarters(sparse, [by_id[id].spec for id in sorted(dense)], low, high)
    return TicksOfAll(
        from_=moment(low),
        to=moment(high),
        items=items[:limit],
        is_capped=is_capped or bool(dense) or len(items) > limit,
        dense=[str(id) for id in sorted(dense)],
        quarters=[Quarter(moment(low + place * QUARTER), count) for place, count in enumerate(found)],
    )


def _merged(items: Sequence[TickOfAll], most: int) -> list[TickOfAll]:
    """An item that stands for several has no execution."""
    rows = Counter(one.schedule_id for one in items)
    found: list[TickOfAll] = []
    latest: dict[str, int] = {}
    for one in items:
        place = latest.get(one.schedule_id)
        if rows[one.schedule_id] > most and place is not None and _is_alike(found[place], one):
            before = found[place]
            count = before.count + one.count
            found[place] = msgspec.structs.replace(before, until=one.until, count=count, execution_id=None)
        else:
            latest[one.schedule_id] = len(found)
            found.append(one)
    return found


def _is_alike(before: TickOfAll, after: TickOfAll) -> bool:
    return (before.outcome, before.status) == (after.outcome, after.status)


def days(view: View, namespace: str, row: ScheduleRow, low: int) -> ScheduleDays:
    ids = schedule_reader.ever(view, namespace, row.app, row.name)
    about = {"schedules": ids, "low": low, "high": view.now + 1, "most": MOST_OF_DAYS}
    rows = [
        DayTick(at, count, outcome, bool(has_started), status)
        for at, count, outcome, has_started, status in view.rows("days_of_ticks", **about)
    ]
    found = tick_range.days(rows, row.spec.tz)
    complete = sum(day.is_complete for day in found)
    shown = [ScheduleDay(day.day, day.worst, day.ticks, day.outcomes) for day in found]
    return ScheduleDays(row.spec.tz, shown, complete, len(found) - complete, len(rows) >= MOST_OF_DAYS)


def _planned(view: View, namespace: str, rows: Sequence[ScheduleRow], low: int, high: int) -> dict[int, list[int]]:
    """The ticks to come of the schedules that are not paused, up to a bound for each."""
    if high <= view.now:
        return {}
    calendars = _calendars(view, namespace) if any(row.spec.calendars for row in rows) else {}
    found: dict[int, list[int]] = {}
    for row in rows:
        if row.paused_at is None:
            after = max(view.now, row.cursor, low - 1)
            found[row.id] = _next(row, row.spec, after, high, _each_planned(len(rows)), calendars)
    return found


def _next(
    row: ScheduleRow, spec: Spec, after: int, high: int, most: int, calendars: dict[str, frozenset[date]]
) -> list[int]:
    if isinstance(spec.trigger, After):
        return [row.next_at] if row.next_at is not None and after < row.next_at < high else []
    holidays = schedule.days(spec.excluded).union(*(calendars.get(name, frozenset()) for name in spec.calendars))
    return tick_policy.upcoming(spec, after, most, holidays, until=high - 1)


def _each_planned(schedules: int) -> int:
    return max(20, MOST_PLANNED // max(1, schedules))


def _calendars(view: View, namespace: str) -> dict[str, frozenset[date]]:
    rows = calendar_reader.calendars(view, namespace)
    return {row.name: schedule.days(tuple(msgspec.json.decode(row.days, type=list[str]))) for row in rows}


def _past(of: ScheduleRow, row: TickRow) -> TickOfAll:
    status = None if row.status is None else Status(row.status)
    about = (str(of.id), of.name, of.app, of.job)
    return TickOfAll(moment(row.at), moment(row.until), row.count, *about, row.outcome, False, row.execution, status)


def _to_come(of: ScheduleRow, at: int) -> TickOfAll:
    about = (str(of.id), of.name, of.app, of.job)
    return TickOfAll(moment(at), moment(at), 1, *about, PLANNED, True, None, None)
