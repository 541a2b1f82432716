"""A schedule: when it fires, in words and as it was declared, and the outcome of its last tick."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from rota.domain import schedule_lint, trigger_words
from rota.domain import trigger as triggers
from rota.domain.errors import UnknownExecution, UnknownSchedule
from rota.domain.instant import MICROSECONDS, moment
from rota.domain.schedule import CatchUp, Spec
from rota.domain.status import Status
from rota.domain.trigger import After, At, Cron, Every
from rota.store import reader, schedule_reader
from rota.store.port import View
from rota.store.schedule_reader import ScheduleRow
from rota.views.shape import Page, Paused, Shape, page, paused, rfc3339, seconds, shaped
from rota.views.stored_json import decoded

OVERDUE_S = 10
USUAL_CATCH_UP = 100
_held = msgspec.json.Decoder(list[int])


class LastTick(Shape, frozen=True):
    """The newest tick that was decided. `status` is that of its execution, if still kept."""

    at: datetime
    """The time of the tick."""
    outcome: str | None
    """The outcome of the tick, such as `fired`, `overlap` or `missed`."""
    late_by: timedelta | None
    execution_id: str | None
    status: Status | None
    """The status of its execution; null if it has none, or it is no longer kept."""


class Schedule(Shape, frozen=True):
    """A schedule and its state. `next_at` is None if it is paused, over, or waits for its last execution.

    `words` say when it fires. The options are named as `@app.job(…)` names them; `window` is the one in force.
    """

    schedule_id: str
    name: str
    app: str
    job: str
    origin: str
    """What defined it: `code`, `api`, or `run_time` for a call of `app.schedule`."""
    words: str
    next_at: datetime | None
    """When the next tick is; null if it is paused, over, or waits for its last execution."""
    is_overdue: bool
    """Whether its next tick is more than ten seconds late."""
    paused: Paused | None
    last_tick: LastTick | None
    """The newest tick that was decided; null if there is none."""
    waits_for: str | None
    """The id of the execution after whose end the next one starts; null if there is none."""
    held: list[datetime]
    """The ticks that wait for the end of an earlier execution."""
    decided_until: datetime
    """All ticks up to this time are decided."""
    created_at: datetime
    updated_at: datetime
    arguments: Any
    queue: str
    priority: int
    start_within: timedelta | None
    """How many seconds an execution may wait for its start; then it is skipped."""
    cron: str | None
    every: timedelta | None
    """The time between two ticks, in seconds."""
    after: timedelta | None
    """How long after the end of one execution the next one starts, in seconds."""
    at: list[datetime] | None
    """The times at which it fires."""
    phase: timedelta | None
    """By how much all ticks of `every` are moved, in seconds."""
    dst_gap: str | None
    dst_overlap: str | None
    tz: str
    start: datetime | None
    end: datetime | None
    exclude: list[str]
    calendars: list[str]
    catch_up: str | int
    window: timedelta
    """The maximum age of a missed tick that is caught up, in seconds."""
    overlap: str
    jitter: timedelta
    """How much later than its tick an execution may start, in seconds."""


def schedule(view: View, namespace: str, app: str, name: str) -> Schedule:
    """The schedule of an app with exactly this name."""
    row = schedule_reader.schedule_called(view, namespace, app, name)
    if row is None:
        raise UnknownSchedule(f"app {app!r} has no schedule {name!r}")
    return of_row(view, row)


def schedules(view: View, namespace: str, app: str | None, limit: int) -> Page[Schedule]:
    """By app and name."""
    rows = schedule_reader.schedules(view, namespace, app, None, limit + 1)
    return page([of_row(view, row) for row in rows], limit)


class LintResult(Shape, frozen=True):
    """Remarks on the schedules that are not paused, and how many those are."""

    schedules: int
    """How many schedules are not paused."""
    findings: list[schedule_lint.LintFinding]
    """What was found."""


def lint(view: View, namespace: str, app: str | None) -> LintResult:
    rows = [row for row in schedule_reader.schedules(view, namespace, app) if row.paused_at is None]
    took = schedule_reader.run_times(view, namespace, sorted({(row.app, row.job) for row in rows}))
    specs = {f"{row.app}.{row.name}": row.spec for row in rows}
    times = {f"{row.app}.{row.name}": took[row.app, row.job] for row in rows if (row.app, row.job) in took}
    return LintResult(schedules=len(rows), findings=schedule_lint.lint(specs, view.now, times))


def not_in_ledger(row: ScheduleRow, low: int, high: int, now: int) -> list[str]:
    """Remarks on a time for which the ledger cannot have all ticks."""
    words = undecided(row, high, now)
    if 0 < low < row.created_at:
        made = _to_the_second(row.created_at)
        words.append(f"schedule {row.name} was made at {made}: before that it has no ticks but backfilled ones")
    return words


def undecided(row: ScheduleRow, high: int, now: int) -> list[str]:
    """A remark on the ticks up to `high` that are not decided yet, because of a pause or because no worker runs."""
    low, end = max(row.cursor, (row.spec.start or 0) - 1), now if row.spec.end is None else min(now, row.spec.end)
    number = triggers.count(row.spec.trigger, low, min(high, end))
    ticks, since = f"{number:,} {'tick' if number == 1 else 'ticks'}", _to_the_second(row.cursor)
    if number and row.paused_at is not None:
        return [f"paused since {since}, which leaves out {ticks} so far"]
    if number and _is_overdue(row, now):
        return [f"{ticks} since {since} not decided yet: is a worker running?"]
    return []


def _to_the_second(instant: int) -> str:
    return rfc3339(moment(instant // MICROSECONDS * MICROSECONDS))


def of_row(view: View, row: ScheduleRow) -> Schedule:
    return shaped(Schedule, row, **members(view, row))


def members(view: View, row: ScheduleRow) -> dict[str, Any]:
    """The members of a schedule that are not columns of its row."""
    spec = row.spec
    return dict(
        schedule_id=str(row.id),
        words=trigger_words.explain(spec.trigger),
        is_overdue=_is_overdue(row, view.now),
        paused=paused(row),
        last_tick=_last_tick(view, row),
        held=[moment(at) for at in _held.decode(row.held)],
        decided_until=row.cursor,
        arguments=decoded(spec.arguments),
        queue=spec.queue,
        priority=spec.priority,
        start_within=spec.start_within_s,
        **_when(spec),
    )


def _when(spec: Spec) -> dict[str, Any]:
    cron = spec.trigger if isinstance(spec.trigger, Cron) else None
    every = spec.trigger if isinstance(spec.trigger, Every) else None
    return {
        "cron": cron.expression if cron else None,
        "every": seconds(every.period) if every else None,
        "after": seconds(spec.trigger.delay) if isinstance(spec.trigger, After) else None,
        "at": [moment(at) for at in spec.trigger.instants] if isinstance(spec.trigger, At) else None,
        "phase": seconds(every.phase) if every else None,
        "dst_gap": cron.gap.value if cron else None,
        "dst_overlap": cron.repeat.value if cron else None,
        "tz": spec.tz,
        "start": spec.start,
        "end": spec.end,
        "exclude": list(spec.excluded),
        "calendars": list(spec.calendars),
        "catch_up": catch_up(spec),
        "window": spec.reach_s,
        "overlap": spec.overlap.value,
        "jitter": spec.jitter_s,
    }


def catch_up(spec: Spec) -> str | int:
    is_number = spec.catch_up is CatchUp.ALL and spec.catch_up_most != USUAL_CATCH_UP
    return spec.catch_up_most if is_number else spec.catch_up.value


def _last_tick(view: View, row: ScheduleRow) -> LastTick | None:
    if row.last_at is None:
        return None
    return shaped(
        LastTick,
        row,
        at=row.last_at,
        outcome=row.last_outcome,
        late_by=seconds(row.last_late),
        execution_id=row.last_execution,
        status=_status(view, row),
    )


def _status(view: View, row: ScheduleRow) -> Status | None:
    """None if the execution is no longer kept."""
    if row.last_execution is None:
        return None
    try:
        return reader.status(view, row.namespace, row.last_execution)
    except UnknownExecution:
        return None


def _is_overdue(row: ScheduleRow, now: int) -> bool:
    return row.next_at is not None and row.next_at < now - OVERDUE_S * MICROSECONDS
