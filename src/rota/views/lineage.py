"""The origin of an execution and its descendants: tick or caller, run, children, replays."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rota.domain.event import decode_info
from rota.domain.instant import moment
from rota.domain.status import Status
from rota.store import execution_reader, reader, run_reader
from rota.store.execution_reader import Criteria, Where
from rota.store.port import View
from rota.store.reader import ExecutionRow
from rota.store.scan import Budget
from rota.views.execution_list import schedule_ids
from rota.views.shape import Shape
from rota.views.step import step_names
from rota.views.stored_json import decoded

MOST_SHOWN = 20
MOST_COUNTED = 1000


class Origin(Shape, frozen=True):
    """The origin of an execution: `schedule`, `event`, `run`, `execution` or `caller`.

    `name` and `id` are those of the schedule, the event, the workflow, the job of the execution above, or the caller;
    `at` is when the tick was, or the event was emitted, or the execution was made.
    """

    kind: str
    """`schedule`, `event`, `run`, `execution` or `caller`."""
    name: str | None
    """The name of the schedule, event, workflow, job or caller; null if it is not known."""
    id: str | None
    """The id of the schedule, event, run or execution; null for a caller."""
    at: datetime
    """When the tick was, the event was emitted, or the execution was made."""
    actor: str | None


class Relative(Shape, frozen=True):
    """Another execution, in short."""

    execution_id: str
    job: str
    app: str
    status: Status
    created_at: datetime
    completed_at: datetime | None


class RunOfStep(Shape, frozen=True):
    """The run that an execution is a step of."""

    run_id: str
    workflow: str
    status: Status
    step: str | None
    index: int | None


class Lineage(Shape, frozen=True):
    """`children` and `replays` are the newest; `childCount` and `replayCount` are counted up to 1,000.

    `upstream` are the executions of other jobs that it was started after.
    """

    origin: Origin
    """The origin of the execution."""
    run: RunOfStep | None
    """The run that it is a step of; null if it is none."""
    parent: Relative | None
    """The execution that has enqueued it; null if there is none."""
    upstream: list[Relative]
    """The executions of other jobs that it was started after."""
    children: list[Relative]
    """The newest 20 executions that it has enqueued."""
    child_count: int
    """How many executions it has enqueued, counted up to 1,000."""
    replay_of: Relative | None
    """The execution that it replays; null if there is none."""
    replays: list[Relative]
    """The newest 20 executions that replay it."""
    replay_count: int
    """How many executions replay it, counted up to 1,000."""


def lineage(view: View, namespace: str, id: str) -> Lineage:
    row = reader.execution(view, namespace, id)
    children = _below(view, namespace, Criteria(parent=(row.id,)))
    replays = _below(view, namespace, Criteria(replay_of=(row.id,)))
    upstream = decoded(row.upstream)
    before = [str(one) for one in upstream.values()] if isinstance(upstream, dict) else []
    single = [one for one in (row.parent, row.replay_of) if one is not None]
    wanted = {*children[:MOST_SHOWN], *replays[:MOST_SHOWN], *before, *single}
    known = {one.id: _relative(one) for one in reader.executions_of(view, namespace, sorted(wanted))}

    def of(ids: Sequence[str | None]) -> list[Relative]:
        return [known[one] for one in ids if one in known]

    return Lineage(
        origin=_origin(view, namespace, row, known.get(row.parent or "")),
        run=_run(view, namespace, row),
        parent=known.get(row.parent or ""),
        upstream=of(before),
        children=of(children[:MOST_SHOWN]),
        child_count=len(children),
        replay_of=known.get(row.replay_of or ""),
        replays=of(replays[:MOST_SHOWN]),
        replay_count=len(replays),
    )


def _below(view: View, namespace: str, wanted: Criteria) -> list[str]:
    return execution_reader.page(view, namespace, wanted, Where(), MOST_COUNTED, Budget()).keys


def _origin(view: View, namespace: str, row: ExecutionRow, parent: Relative | None) -> Origin:
    actor, at = row.actor or None, moment(row.created_at)
    if row.schedule is not None:
        id = schedule_ids(view, namespace, [row]).get((row.app, row.schedule))
        return Origin("schedule", row.schedule, id, at if row.tick is None else moment(row.tick), actor)
    if row.event is not None:
        event = decode_info(row.event)
        return Origin("event", event.name, event.id, event.emitted_at, actor)
    if row.run is not None:
        above = run_reader.run(view, namespace, row.run)
        return Origin("run", None if above is None else above.job, row.run, at, actor)
    if row.parent is not None:
        return Origin("execution", None if parent is None else parent.job, row.parent, at, actor)
    return Origin("caller", actor, None, at, actor)


def _run(view: View, namespace: str, row: ExecutionRow) -> RunOfStep | None:
    above = None if row.run is None else run_reader.run(view, namespace, row.run)
    if above is None:
        return None
    step = step_names(view, namespace, [row]).get((row.run, row.step))
    return RunOfStep(above.id, above.job, Status(above.status), step, row.map_index)


def _relative(row: ExecutionRow) -> Relative:
    ended = None if row.finished_at is None else moment(row.finished_at)
    return Relative(row.id, row.job, row.app, row.status, moment(row.created_at), ended)
