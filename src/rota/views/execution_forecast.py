"""When an execution is expected to start and to end, and when a run is."""

from __future__ import annotations

from datetime import datetime

from rota.domain import execution_forecast as domain
from rota.domain import requirement
from rota.domain.execution_forecast import Expected
from rota.domain.instant import instant, moment
from rota.domain.served import ALL_APPS
from rota.domain.status import TERMINAL, Status
from rota.domain.workflow import edges
from rota.store import claim_reader, finding_reader, notes, reader
from rota.store.claim_reader import MOST_COUNTED, ClaimFacts
from rota.store.port import View
from rota.store.reader import ExecutionRow
from rota.views.run import run_graph, run_row
from rota.views.shape import Shape, seconds
from rota.views.step import StepInfo, steps
from rota.views.stored_json import decoded
from rota.views.why import PLACE, explain

MOST_JOBS = 30
"""The usual duration is read for at most this many jobs of a run."""


class ExecutionForecast(Shape, frozen=True):
    """`place` counts from 1 among the queued executions of the queue with the same needs, up to 10,000.

    `usualS` is the median of the last 30 successes of the job. `startsAt` and `endsAt` are null if they cannot be
    known: it is held back (`heldBy` is the code of the check), there is no slot for it, or its job never ran.
    """

    status: Status
    place: int | None
    """Its place in line among executions with the same needs; 1 is next."""
    place_is_capped: bool
    """Whether counting stopped, so that its place may be further back."""
    slots: int
    """How many executions the live workers that could take it can run at once."""
    usual_s: float | None
    """How long the job usually runs, in seconds: the median of its last 30 successes."""
    starts_at: datetime | None
    """When it is expected to start; null if that is not known."""
    ends_at: datetime | None
    """When it is expected to end; null if that is not known."""
    held_by: str | None
    """The code of the check that holds it back; null if it only waits in line."""


class StepForecast(Shape, frozen=True):
    """A step that has not ended. `usualS` is the median of the last 30 successes of its job."""

    step: str
    usual_s: float | None
    """How long the step usually takes, in seconds."""
    starts_at: datetime | None
    """When it is expected to start."""
    ends_at: datetime | None
    """When it is expected to end."""


class RunForecast(Shape, frozen=True):
    """`usualS` is the median of the last 30 runs that succeeded. `endsAt` is by the steps that have not ended."""

    status: Status
    usual_s: float | None
    """How long runs of the workflow usually take, in seconds."""
    ends_at: datetime | None
    """When the run is expected to end; null if that is not known."""
    steps: list[StepForecast]
    """The steps that have not ended."""


def execution(view: View, namespace: str, id: str) -> ExecutionForecast:
    row = reader.execution(view, namespace, id)
    if row.status in TERMINAL:
        return _shown(row, Expected(row.started_at, row.finished_at), None)
    took = domain.usual(finding_reader.durations(view, namespace, row.app, row.job, row.id))
    if row.status is Status.RUNNING:
        told = notes.state(view, namespace, id)
        share = told.done / told.total if told and told.total and told.done is not None else None
        return _shown(row, domain.running(view.now, row.started_at or view.now, took, share), took)
    facts = claim_reader.claim_facts(view, namespace, id)
    slots = _slots(view, namespace, facts)
    found = explain(facts, view.now)
    held = [check.code for check in (found.checks if found else []) if check.holds is False and check.code != PLACE]
    expected = domain.in_line(view.now, facts.ahead, slots, took)
    if held == ["due"] and facts.due_at is not None:
        expected = Expected(facts.due_at, None if took is None else facts.due_at + took)
    elif held or row.status is not Status.QUEUED:
        expected = Expected()
    return _shown(row, expected, took, facts, slots, held[0] if held else None)


def _shown(
    row: ExecutionRow,
    expected: Expected,
    took: int | None,
    facts: ClaimFacts | None = None,
    slots: int = 0,
    held: str | None = None,
) -> ExecutionForecast:
    is_queued = facts is not None and row.status is Status.QUEUED
    ahead = facts.ahead if facts is not None else 0
    return ExecutionForecast(
        status=row.status,
        place=min(ahead, MOST_COUNTED) + 1 if is_queued else None,
        place_is_capped=is_queued and ahead > MOST_COUNTED,
        slots=slots,
        usual_s=seconds(took),
        starts_at=_moment(expected.starts_at),
        ends_at=_moment(expected.ends_at),
        held_by=held,
    )


def _slots(view: View, namespace: str, facts: ClaimFacts) -> int:
    """The slots of the live workers that could take it."""
    total = 0
    for worker in reader.workers(view, namespace, view.now):
        queues = decoded(worker.queues)
        is_live = worker.stopped_at is None and worker.state == "live" and worker.lease_until > view.now
        serves = worker.app in (facts.app, ALL_APPS) and (queues is None or facts.queue in queues)
        if is_live and serves and requirement.fits(facts.requirements or "", worker.offers):
            total += worker.concurrency
    return total


def run(view: View, namespace: str, id: str) -> RunForecast:
    row = run_row(view, namespace, id)
    status = Status(row.status)
    took = domain.usual(finding_reader.durations(view, namespace, row.app, row.job, row.id))
    graph = run_graph(view, row)
    if status in TERMINAL or graph is None:
        return RunForecast(status, seconds(took), _moment(row.finished_at), [])
    infos, index, usual = steps(view, row, graph), edges.of(graph), dict[str, int | None]()
    for step in graph.steps:
        name = step.job or step.workflow
        if name is not None and name not in usual and len(usual) < MOST_JOBS:
            usual[name] = domain.usual(finding_reader.durations(view, namespace, row.app, name, row.id))
    known = [
        domain.Step(
            upstream=frozenset(index.steps[number].upstream),
            started_at=None if info.started_at is None else instant(info.started_at),
            ended_at=None if info.completed_at is None else instant(info.completed_at),
            is_left_out=_is_left_out(info),
            took=usual.get(info.job or info.workflow or ""),
        )
        for number, info in enumerate(infos)
    ]
    expected = domain.steps(view.now, known)
    ends = [one.ends_at for one in expected.values()]
    ends_at = max((one for one in ends if one is not None), default=None) if None not in ends else None
    return RunForecast(
        status,
        seconds(took),
        _moment(ends_at),
        [
            StepForecast(infos[n].step, seconds(known[n].took), _moment(one.starts_at), _moment(one.ends_at))
            for n, one in expected.items()
        ],
    )


def _is_left_out(info: StepInfo) -> bool:
    return info.completed_at is None and info.status in ("blocked", Status.SKIPPED, Status.SUCCESS, Status.CANCELLED)


def _moment(at: int | None) -> datetime | None:
    return None if at is None else moment(at)
