"""A run of a workflow: in a list, and in full with its steps, its critical path, and what a retry would run again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from rota.domain import job as jobs
from rota.domain.blocker import Kind
from rota.domain.errors import Conflict, UnknownExecution, UsageError
from rota.domain.status import TERMINAL, Reason, Status
from rota.domain.workflow import critical_path as paths
from rota.domain.workflow import retry, undo
from rota.domain.workflow.critical_path import Span
from rota.domain.workflow.graph import Graph
from rota.domain.workflow.letters import CANCELLED, FAILED, OPEN
from rota.executors import kinds
from rota.ops.runs.run import graph_of
from rota.store import reader, run_reader, workflow_reader
from rota.store.port import View
from rota.store.run_reader import RunFilter, RunPage, RunRow
from rota.views.inputs import complete_arguments
from rota.views.shape import Page, Paused, Shape, page, paused, seconds, shaped
from rota.views.step import StepInfo, ended_count, steps
from rota.views.stored_json import decoded, error_text
from rota.views.wait import question
from rota.views.why import Why, why

Questions = dict[str, list[str]]
"""The texts of open approvals, by run."""


class RunSummary(Shape, frozen=True):
    """A run as a list has it.

    `paused` says since when and why an open run is paused, `stopping` why it is stopping. `is_undoing` says whether the
    steps of an open run are being undone. `undo_run_id` is the run that undoes or has undone this one; in that run,
    `undo_of` is this one. `ended_count` of its `step_count` steps have ended; a map is one step. `waiting_steps` are
    the open steps that wait for a time, an answer or an event, and `questions` are the texts of its open approvals.
    `failed_step` is the first step that failed the run; None if the run failed because of its own timeout.
    """

    run_id: str
    workflow: str
    app: str
    version: int
    status: Status
    reason: str | None
    paused: Paused | None
    stopping: str | None
    """Why the run is stopping; null if it is not."""
    is_undoing: bool
    """Whether the steps of an open run are being undone."""
    scheduled_for: datetime
    """The time that the run was to start."""
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    duration: timedelta | None
    step_count: int
    ended_count: int
    waiting_steps: list[str]
    """The open steps that wait for a time, an answer or an event."""
    questions: list[str]
    """The texts of its open approvals."""
    failed_step: str | None
    """The first step that failed the run; null if none did, as after a timeout of the run."""
    error_message: str | None
    parent_run_id: str | None
    """The run that this one is a step of; null if it is none."""
    parent_step: str | None
    """The step of that run."""
    parent_index: int | None
    """The item of the map, if that step is a map."""
    replay_of: str | None
    undo_run_id: str | None
    """The run that undoes or has undone this one."""
    undo_of: str | None
    """The run that this one undoes."""


class CriticalPath(Shape, frozen=True):
    """The steps that decided how long the run took, first to last, with the item of a map that ended last."""

    steps: list[str]
    """The names of the steps, first to last."""
    duration: timedelta
    """The sum over these steps, without the time that they waited for a worker."""


class PartialMap(Shape, frozen=True):
    """A map with `width` items: a retry runs `again_count` of them again, and keeps the others."""

    step: str
    again_count: int
    """How many items a retry runs again."""
    width: int


class RetryPlan(Shape, frozen=True):
    """What `retry` would run again: the steps in `again`, and of the maps in `partial` only some items.

    `kept_step_count` is the number of steps that do not run again. After a failed undo, a retry runs no step: it
    repeats the undos of the steps in `undos`.
    """

    again: list[str]
    """The steps that run again."""
    partial: list[PartialMap]
    """The maps of which only some items run again."""
    undos: list[str]
    """The steps whose undos a retry repeats."""
    kept_step_count: int
    """How many steps do not run again."""


class RunAbout(RunSummary, frozen=True):
    """A run in full, but for its steps.

    `timeout_at` is when an open run stops by itself. `retry` is None if nothing is to be retried. `timeout` is how long
    the run may take. `retried_as` is the last run that retries this one, and `retried_status` its status.
    """

    arguments: Any
    result: Any
    error: Any
    actor: str | None
    key: str | None
    tags: list[str] | None
    schedule: str | None
    """The name of the schedule that started it; null if none did."""
    timeout: timedelta | None
    """How many seconds the run may take; null is no limit."""
    timeout_at: datetime | None
    """When an open run stops by itself; null for never."""
    why: Why | None
    """What an open run waits for, check by check; null if nothing is to be explained."""
    critical_path: CriticalPath | None
    """The steps that decided how long the run took."""
    retry: RetryPlan | None
    """What a retry would run again; null if nothing is to be retried."""
    retried_as: str | None
    """The last run that retries this one."""
    retried_status: Status | None
    """The status of that run."""


class RunDetail(RunAbout, frozen=True):
    """A run in full. `undos` are the undos of its steps, each under the name of its step."""

    steps: list[StepInfo]
    undos: list[StepInfo]
    """The undos of its steps, each under the name of its step."""


def runs(view: View, namespace: str, wanted: RunFilter) -> Page[RunSummary]:
    """Newest first."""
    one_more = msgspec.structs.replace(wanted, limit=wanted.limit + 1)
    if wanted.parent is not None and wanted.status not in run_reader.OPEN:
        found = _sub_runs(view, namespace, one_more, wanted.parent)
    else:
        known = [row.name for row in workflow_reader.workflows(view, namespace)]
        found = run_reader.page_of_runs(
            view, namespace, one_more, known if wanted.workflow is None else [wanted.workflow]
        )
    asked = _questions(view, found.rows)
    shown = [shaped(RunSummary, row, **_members(view, row, asked)) for row in found.rows]
    return page(shown, wanted.limit, found.scanned_to)


def summary(view: View, namespace: str, id: str) -> RunSummary:
    row = run_row(view, namespace, id)
    return shaped(RunSummary, row, **_members(view, row, _questions(view, [row])))


def about(view: View, namespace: str, id: str) -> RunAbout:
    found = run(view, namespace, id)
    return RunAbout(**{name: getattr(found, name) for name in RunAbout.__struct_fields__})


def run(view: View, namespace: str, id: str) -> RunDetail:
    row = run_row(view, namespace, id)
    graph = run_graph(view, row)
    infos = steps(view, row, graph) if graph else []
    undo_row = None if row.undo is None else run_reader.run(view, namespace, row.undo)
    execution = reader.execution(view, namespace, id)
    end = reader.ending(view, namespace, id) if row.status in TERMINAL else None
    retried = _retried(view, namespace, id) if row.status in TERMINAL else None
    return shaped(
        RunDetail,
        row,
        **_members(view, row, _questions(view, [row])),
        arguments=complete_arguments(view, execution),
        result=decoded(end.result) if end else None,
        error=decoded(end.error) if end else None,
        actor=execution.actor or None,
        key=execution.key,
        tags=decoded(execution.tags),
        schedule=execution.schedule,
        timeout=graph.timeout if graph else None,
        timeout_at=row.deadline,
        why=why(view, namespace, id),
        steps=infos,
        undos=_undos(view, undo_row),
        critical_path=_critical_path(graph, infos) if graph and row.status in TERMINAL else None,
        retry=_retry(row, undo_row, graph, infos) if graph and row.parent is None else None,
        retried_as=retried.id if retried else None,
        retried_status=retried.status if retried else None,
    )


def run_steps(view: View, namespace: str, id: str) -> list[StepInfo]:
    """All steps of a run, in the order of the graph."""
    row = run_row(view, namespace, id)
    graph = run_graph(view, row)
    return steps(view, row, graph) if graph else []


def begun_retry(steps: Sequence[StepInfo], undos: list[str]) -> RetryPlan:
    """What a retry that has just begun runs again. `steps` are those of the new run."""
    again = [] if undos else [step.step for step in steps if not step.is_kept]
    partial = [
        PartialMap(step.step, step.map.width - step.map.kept, step.map.width)
        for step in steps
        if step.map is not None and step.map.kept and not step.is_kept
    ]
    return RetryPlan(again=again, partial=partial, undos=undos, kept_step_count=len(steps) - len(again))


def run_row(view: View, namespace: str, id: str) -> RunRow:
    """Refuses an execution that is not a run."""
    row = run_reader.run(view, namespace, id)
    if row is None:
        raise reader.unknown(id)
    if not row.letters and not _is_workflow(view, row):
        raise UnknownExecution(f"{id} is an execution of job {row.job}, which is not a workflow: `rota show {id}`")
    return row


def run_graph(view: View, row: RunRow) -> Graph | None:
    """The graph that is pinned, or the one in force for a run that has not opened; None if its version is gone."""
    return graph_of(view, row) if row.graph else None


def _is_workflow(view: View, row: RunRow) -> bool:
    where = {"namespace": row.namespace, "app": row.app, "job": row.job, "version": row.version}
    found = view.one("definition_of_version", **where)
    return found is not None and jobs.decode(found[0]).target.get("kind") == kinds.WORKFLOW


def _sub_runs(view: View, namespace: str, wanted: RunFilter, parent: str) -> RunPage:
    """The runs of the sub-workflows of a run, those that a retry kept too."""
    graph = run_graph(view, run_row(view, namespace, parent))
    numbers = [
        number
        for number, step in enumerate(graph.steps if graph else ())
        if step.workflow is not None and wanted.workflow in (None, step.workflow)
    ]
    return run_reader.page_of_sub_runs(view, namespace, parent, numbers, wanted)


def _retried(view: View, namespace: str, id: str) -> RunRow | None:
    """The last retry of a run; None if there is none, or retention has deleted it."""
    new_id = reader.replayed_as(view, id)
    return None if new_id is None else run_reader.run(view, namespace, new_id)


def _questions(view: View, rows: Sequence[RunRow]) -> Questions:
    """The texts of the open approvals, by run."""
    found: Questions = {}
    for run, arguments in run_reader.open_approvals(view, [row.id for row in rows if row.finished_at is None]):
        found.setdefault(run, []).append(question(arguments))
    return found


def _members(view: View, row: RunRow, asked: Questions) -> dict[str, Any]:
    """The members that the row has under another name or in another form."""
    graph = run_graph(view, row)
    until = row.finished_at or view.now
    return {
        "run_id": row.id,
        "workflow": row.job,
        "version": row.version - row.base,
        "reason": None if row.reason in ("", Kind.RUN) else row.reason,
        "paused": paused(row),
        "scheduled_for": row.run_at if row.tick is None else row.tick,
        "completed_at": row.finished_at,
        "duration": None if row.started_at is None else seconds(max(0, until - row.started_at)),
        "step_count": len(graph.steps) if graph else len(row.letters),
        "ended_count": ended_count(row.letters),
        "waiting_steps": _waiting_steps(graph, row.letters),
        "questions": asked.get(row.id, []),
        "failed_step": None if row.reason == Reason.RUN_TIMEOUT else _failed_step(graph, row.letters),
        "error_message": error_text(decoded(row.error)),
        "parent_run_id": row.parent,
        "parent_step": _parent_step(view, row),
        "parent_index": row.parent_item,
        "is_undoing": row.undo is not None and row.finished_at is None,
        "undo_run_id": row.undo,
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


def _critical_path(graph: Graph, infos: list[StepInfo]) -> CriticalPath | None:
    spans = {number: span for number, info in enumerate(infos) if (span := _span(info)) is not None}
    path = paths.critical_path(graph, spans)
    if not path:
        return None
    took = sum((spans[number].ended_at - spans[number].started_at for number in path), timedelta())
    names = [_with_item(infos[number]) for number in path]
    return CriticalPath(steps=names, duration=took)


def _span(info: StepInfo) -> Span | None:
    if info.is_kept or info.started_at is None or info.completed_at is None:
        return None
    return Span(info.placed_at or info.started_at, info.started_at, info.completed_at)


def _with_item(info: StepInfo) -> str:
    if info.map is None:
        return info.step
    return info.step if info.map.last_index is None else f"{info.step}[{info.map.last_index}]"


def _undos(view: View, row: RunRow | None) -> list[StepInfo]:
    """The steps of an undo, without those that undo nothing."""
    graph = run_graph(view, row) if row is not None and row.letters else None
    if row is None or graph is None:
        return []
    done = undo.undone(row.letters)
    return [info for number, info in enumerate(steps(view, row, graph)) if number in done]


def _retry(row: RunRow, undo_row: RunRow | None, graph: Graph, infos: list[StepInfo]) -> RetryPlan | None:
    if row.status not in TERMINAL or not row.letters:
        return None
    letters_of_undo = undo_row.letters if undo_row else ""
    if failed := undo.failures(letters_of_undo):
        names = [graph.steps[number].id for number in failed]
        return RetryPlan(again=[], partial=[], undos=names, kept_step_count=len(graph.steps))
    try:
        plan = retry.plan(graph, row.letters, undone=undo.undone(letters_of_undo))
    except (UsageError, Conflict):
        return None
    return RetryPlan(
        again=[graph.steps[number].id for number in plan.again],
        partial=[
            PartialMap(graph.steps[number].id, about.width - about.success, about.width)
            for number in plan.partial
            if (about := infos[number].map) and about.success
        ],
        undos=[],
        kept_step_count=len(graph.steps) - len(plan.again),
    )
