"""A run of a workflow: in a list, and in full with its steps, its critical path, and what a retry would run again."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from rota.domain import job as jobs
from rota.domain.blocker import Kind
from rota.domain.errors import Conflict, UsageError
from rota.domain.status import TERMINAL, Status
from rota.domain.workflow import critical_path as paths
from rota.domain.workflow import retry
from rota.domain.workflow.critical_path import Span
from rota.domain.workflow.graph import Graph
from rota.domain.workflow.letters import CANCELLED, FAILED, OPEN
from rota.executors import kinds
from rota.ops.runs.run import graph_of
from rota.store import reader, run_reader
from rota.store.port import View
from rota.store.run_reader import RunFilter, RunRow
from rota.views.shape import Page, Paused, Shape, page, paused, seconds, shaped
from rota.views.step import StepInfo, ended_count, steps
from rota.views.stored_json import decoded, error_text
from rota.views.why import Why, why


class RunSummary(Shape, frozen=True):
    """A run as a list has it.

    `paused` says since when and why an open run is paused, `stopping` why it is stopping. `ended_count` of its
    `step_count` steps have ended; a map is one step. `waiting_steps` are those that wait for a time, an answer or an
    event. `failed_step` is the first one that failed the run.
    """

    run_id: str
    workflow: str
    app: str
    version: int
    status: Status
    reason: str | None
    paused: Paused | None
    stopping: str | None
    scheduled_for: datetime
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    duration: timedelta | None
    step_count: int
    ended_count: int
    waiting_steps: list[str]
    failed_step: str | None
    error_message: str | None
    parent_run_id: str | None
    parent_step: str | None
    parent_index: int | None
    replay_of: str | None


class CriticalPath(Shape, frozen=True):
    """The steps that decided how long the run took, first to last, with the item of a map that ended last."""

    steps: list[str]
    duration: timedelta
    """The sum over these steps, without the time that they waited for a worker."""


class RetryPlan(Shape, frozen=True):
    """What `retry` would run again. The counts are of executions: each item of a map is one."""

    again: list[str]
    kept_count: int
    total_count: int


class RunDetail(RunSummary, frozen=True):
    """A run in full. `timeout_at` is when an open run stops by itself; `retry` is None if nothing is to be retried."""

    arguments: Any
    result: Any
    error: Any
    actor: str | None
    key: str | None
    tags: list[str] | None
    schedule: str | None
    timeout_at: datetime | None
    why: Why | None
    steps: list[StepInfo]
    critical_path: CriticalPath | None
    retry: RetryPlan | None


def runs(view: View, namespace: str, wanted: RunFilter) -> Page[RunSummary]:
    """Newest first."""
    one_more = msgspec.structs.replace(wanted, limit=wanted.limit + 1)
    if wanted.parent is not None and wanted.status not in (Status.RUNNING, run_reader.PAUSED, run_reader.STOPPING):
        rows = _sub_runs(view, namespace, one_more, wanted.parent)
    else:
        known = [row.name for row in run_reader.workflows(view, namespace)]
        rows = run_reader.page_of_runs(
            view, namespace, one_more, known if wanted.workflow is None else [wanted.workflow]
        )
    return page([shaped(RunSummary, row, **_members(view, row)) for row in rows], wanted.limit)


def run(view: View, namespace: str, id: str) -> RunDetail:
    row = run_row(view, namespace, id)
    graph = run_graph(view, row)
    infos = steps(view, row, graph) if graph else []
    about = reader.execution(view, namespace, id)
    end = reader.ending(view, namespace, id) if row.status in TERMINAL else None
    return shaped(
        RunDetail,
        row,
        **_members(view, row),
        arguments=decoded(about.arguments),
        result=decoded(end.result) if end else None,
        error=decoded(end.error) if end else None,
        actor=about.actor or None,
        key=about.key,
        tags=decoded(about.tags),
        schedule=about.schedule,
        timeout_at=row.deadline,
        why=why(view, namespace, id),
        steps=infos,
        critical_path=_critical_path(view, row, graph, infos) if graph and row.status in TERMINAL else None,
        retry=_retry(row, graph, infos) if graph and row.parent is None else None,
    )


def run_row(view: View, namespace: str, id: str) -> RunRow:
    """Refuses an execution that is no run."""
    row = run_reader.run(view, namespace, id)
    if row is None:
        raise reader.unknown(id)
    if not row.letters and not _is_workflow(view, row):
        raise UsageError(f"{id} is an execution of job {row.job}, which is no workflow: `rota show {id}`")
    return row


def run_graph(view: View, row: RunRow) -> Graph | None:
    """The graph that is pinned, or the one in force for a run that has not opened; None if its version is gone."""
    return graph_of(view, row) if row.graph else None


def _is_workflow(view: View, row: RunRow) -> bool:
    where = {"namespace": row.namespace, "app": row.app, "job": row.job, "version": row.version}
    found = view.one("definition_of_version", **where)
    return found is not None and jobs.decode(found[0]).target.get("kind") == kinds.WORKFLOW


def _sub_runs(view: View, namespace: str, wanted: RunFilter, parent: str) -> list[RunRow]:
    """The runs of the sub-workflows of a run, those that a retry kept too."""
    graph = run_graph(view, run_row(view, namespace, parent))
    if graph is None:
        return []
    ids: set[str] = set()
    for number, step in enumerate(graph.steps):
        if step.workflow is not None and wanted.workflow in (None, step.workflow):
            ids |= set(
                run_reader.page_of_steps(
                    view, parent, number, status=wanted.status, before=wanted.before, limit=wanted.limit
                )
            )
    return run_reader.runs(view, namespace, sorted(ids, reverse=True)[: wanted.limit])


def _members(view: View, row: RunRow) -> dict[str, Any]:
    """The members that the row has under another name or in another form."""
    graph = run_graph(view, row)
    until = row.finished_at or view.now
    return {
        "run_id": row.id,
        "workflow": row.job,
        "reason": None if row.reason in ("", Kind.RUN) else row.reason,
        "paused": paused(row),
        "scheduled_for": row.run_at if row.tick is None else row.tick,
        "completed_at": row.finished_at,
        "duration": None if row.started_at is None else seconds(max(0, until - row.started_at)),
        "step_count": len(graph.steps) if graph else len(row.letters),
        "ended_count": ended_count(row.letters),
        "waiting_steps": _waiting_steps(graph, row.letters),
        "failed_step": _failed_step(graph, row.letters),
        "error_message": error_text(decoded(row.error)),
        "parent_run_id": row.parent,
        "parent_step": _parent_step(view, row),
        "parent_index": row.parent_item,
    }


def _waiting_steps(graph: Graph | None, letters: str) -> list[str]:
    steps = graph.steps if graph else ()
    return [step.id for step, letter in zip(steps, letters, strict=False) if letter == OPEN and step.wait is not None]


def _failed_step(graph: Graph | None, letters: str) -> str | None:
    """The first that failed; if none did, the first that was cancelled."""
    for wanted in (FAILED, CANCELLED):
        for step, letter in zip(graph.steps if graph else (), letters.lower(), strict=False):
            if letter == wanted and not step.may_fail:
                return step.id
    return None


def _parent_step(view: View, row: RunRow) -> str | None:
    above = None if row.parent is None else run_reader.run(view, row.namespace, row.parent)
    graph = run_graph(view, above) if above else None
    return None if graph is None or row.parent_step is None else graph.steps[row.parent_step].id


def _critical_path(view: View, row: RunRow, graph: Graph, infos: list[StepInfo]) -> CriticalPath | None:
    spans = {number: span for number, info in enumerate(infos) if (span := _span(info)) is not None}
    path = paths.critical_path(graph, spans)
    if not path:
        return None
    took = sum((spans[number].ended_at - spans[number].started_at for number in path), timedelta())
    names = [_with_item(view, row, number, infos[number]) for number in path]
    return CriticalPath(steps=names, duration=took)


def _span(info: StepInfo) -> Span | None:
    if info.is_kept or info.started_at is None or info.completed_at is None:
        return None
    return Span(info.placed_at or info.started_at, info.started_at, info.completed_at)


def _with_item(view: View, row: RunRow, number: int, info: StepInfo) -> str:
    if info.map is None:
        return info.step
    item = run_reader.last_item(view, row.id, number)
    return info.step if item is None else f"{info.step}[{item}]"


def _retry(row: RunRow, graph: Graph, infos: list[StepInfo]) -> RetryPlan | None:
    if row.status not in TERMINAL or not row.letters:
        return None
    try:
        plan = retry.plan(graph, row.letters)
    except (UsageError, Conflict):
        return None
    counts = [info.map.width if info.map else 1 for info in infos]
    kept = sum(count for number, count in enumerate(counts) if number not in plan.again)
    kept += sum(about.success for number in plan.partial if (about := infos[number].map))
    return RetryPlan(again=[graph.steps[number].id for number in plan.again], kept_count=kept, total_count=sum(counts))
