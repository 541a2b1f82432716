"""One schedule in full: its definition, what its owner may not expect, and a preview of what it would do."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from rota.domain import clock_changes, schedule_lint, tick_policy
from rota.domain.clock_changes import YEAR_S, ScheduleWarning
from rota.domain.instant import MICROSECONDS, moment
from rota.domain.trigger import After, Cron
from rota.store import definition_reader, schedule_reader
from rota.store.port import View
from rota.store.schedule_reader import ScheduleRow
from rota.views import schedule as schedules
from rota.views.schedule import Schedule
from rota.views.shape import Shape, shaped

MOST_TOGETHER = 1000
PREVIEWED = 10


class ScheduleDetail(Schedule, frozen=True):
    """A schedule with its definition, as a POST takes it, and warnings about changed clocks and herds."""

    definition: dict[str, Any]
    warnings: list[ScheduleWarning]


class ScheduleChanged(ScheduleDetail, frozen=True):
    """A schedule after an action. `changed` is false if nothing had to change."""

    changed: bool


class Lane(Shape, frozen=True):
    """Where executions wait."""

    app: str
    job: str
    queue: str


class Reception(Shape, frozen=True):
    """Which live workers would take an execution. `reason` says why none would."""

    lane: Lane
    workers: list[str]
    reason: str | None


class SchedulePreview(ScheduleDetail, frozen=True):
    """A schedule that a dry run did not make, its next ten ticks, and which live workers would take its executions."""

    next_ticks: list[datetime]
    lane: Lane
    workers: list[str]
    reason: str | None


def detail(view: View, row: ScheduleRow, definition: dict[str, Any]) -> ScheduleDetail:
    return shaped(ScheduleDetail, row, **_members(view, row, definition))


def changed(view: View, row: ScheduleRow, definition: dict[str, Any], *, is_changed: bool) -> ScheduleChanged:
    return shaped(ScheduleChanged, row, **_members(view, row, definition), changed=is_changed)


def preview(view: View, row: ScheduleRow, definition: dict[str, Any], holidays: frozenset[date]) -> SchedulePreview:
    spec = row.spec
    if isinstance(spec.trigger, After):
        ticks = [] if row.next_at is None else [row.next_at]
    else:
        ticks = tick_policy.upcoming(spec, max(view.now, row.cursor), PREVIEWED, holidays)
    taken = reception(view, row.namespace, row.app, row.job, spec.queue)
    return shaped(
        SchedulePreview,
        row,
        **_members(view, row, definition),
        next_ticks=[moment(at) for at in ticks],
        lane=taken.lane,
        workers=taken.workers,
        reason=taken.reason,
    )


def reception(view: View, namespace: str, app: str, job: str, queue: str) -> Reception:
    """Which workers would take an execution of this job."""
    workers = definition_reader.takers(view, namespace, app, job, queue)
    reason = None if workers else f"no live worker of app {app} runs {job} and serves queue {queue}"
    lane = Lane(app=app, job=job, queue=queue)
    return Reception(lane=lane, workers=[str(worker) for worker in workers], reason=reason)


def _members(view: View, row: ScheduleRow, definition: dict[str, Any]) -> dict[str, Any]:
    warnings = [*_changed_clocks(row, view.now), *_herd(view, row)]
    return {**schedules.members(view, row), "definition": definition, "warnings": warnings}


def _changed_clocks(row: ScheduleRow, now: int) -> list[ScheduleWarning]:
    trigger, after = row.spec.trigger, now // MICROSECONDS
    return clock_changes.warnings(trigger, after, after + YEAR_S) if isinstance(trigger, Cron) else []


def _herd(view: View, row: ScheduleRow) -> list[ScheduleWarning]:
    """Schedules that fire often are left out, as by `rota schedules lint`: they meet others all the time."""
    spec, now = row.spec, view.now
    if row.next_at is None or not schedule_lint.may_be_of_herd(spec, now):
        return []
    others = schedule_reader.due_together(view, row, MOST_TOGETHER)
    number = 1 + sum(schedule_lint.may_be_of_herd(one, now) for one in others)
    if number < schedule_lint.HERD:
        return []
    when = f"{datetime.fromtimestamp(row.next_at // MICROSECONDS, UTC):%H:%M} UTC"
    return [ScheduleWarning("herd", f"{number} schedules at {when}: {schedule_lint.SPREAD}")]
