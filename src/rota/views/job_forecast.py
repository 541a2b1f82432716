"""A forecast for a job: its next ticks, and which live workers would take it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from rota.domain import requirement, schedule_lint, tick_policy
from rota.domain.instant import moment
from rota.domain.schedule import decode as decode_spec
from rota.store import definition_reader
from rota.store.definition_reader import JobRow
from rota.store.port import View
from rota.views.shape import Shape

TICKS = 10


class Lane(Shape, frozen=True):
    """The queue of a job, and what it needs of a worker, in words."""

    queue: str
    needs: str


class Forecast(Shape, frozen=True):
    """`workers` are live ones that would take it; `reason` says why none would."""

    next_ticks: list[datetime]
    lane: Lane
    workers: list[str]
    reason: str | None


def forecast(view: View, namespace: str, row: JobRow) -> Forecast:
    about = row.about
    needed = requirement.written(about.needs)
    own = [one for one in definition_reader.schedules(view, namespace, [row.name]) if one.app == row.app]
    ticks = sorted(at for one in own for at in islice(_ticks(one.spec, view.now), TICKS))
    found = takers(view, namespace, row)
    return Forecast(
        next_ticks=[moment(at) for at in ticks[:TICKS]],
        lane=Lane(about.queue, requirement.words(needed)),
        workers=found,
        reason=None if found else _reason(row),
    )


def takers(view: View, namespace: str, row: JobRow) -> list[str]:
    """The live workers that would take executions of the job."""
    found = definition_reader.takers(view, namespace, row.app, row.name, row.about.queue)
    return [str(worker) for worker in found]


def warnings(view: View, namespace: str, row: JobRow) -> list[str]:
    """Warnings about a definition: schedules that skip ticks, and a job that no live worker would run."""
    own = [one for one in definition_reader.schedules(view, namespace, [row.name]) if one.app == row.app]
    specs = {one.name: decode_spec(one.spec) for one in own}
    found = [finding.message for finding in schedule_lint.lint(specs, view.now, {})] if specs else []
    return found if takers(view, namespace, row) else [*found, _reason(row)]


def _reason(row: JobRow) -> str:
    command = "rota worker" if row.runs in ("*command", "*http") else f"a worker of app {row.app}"
    return f"no live worker would take it: start {command}"


def _ticks(text: str, now: int) -> Iterator[int]:
    spec, at = decode_spec(text), now
    while (found := tick_policy.next_at(spec, at)) is not None:
        yield found
        at = found
