"""A workflow in full: its definition in the data form, and its runs in short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from rota.domain.errors import UnknownJob, UsageError
from rota.domain.status import Status
from rota.domain.workflow.difference import differences
from rota.domain.workflow.graph import Graph, to_data
from rota.ops.runs.run import decoded_graph
from rota.store import definition_reader, run_reader, workflow_reader
from rota.store.definition_reader import MOST, JobRow, VersionRow
from rota.store.port import View
from rota.store.run_reader import RunFilter
from rota.views.job_version import Difference
from rota.views.schedule_detail import Lane, Reception
from rota.views.shape import Paused, Shape, paused, shaped


class LastRun(Shape, frozen=True):
    """The newest run of a workflow."""

    run_id: str
    status: Status
    created_at: datetime


class Workflow(Shape, frozen=True):
    """A workflow with its version in force. `openCount` of its runs are open, sub-runs included."""

    workflow_id: str
    """The id of the workflow."""
    name: str
    app: str
    state: str
    """`active`, `paused` or `deleted`."""
    origin: str
    version: int
    description: str
    parameters: dict[str, Any]
    """The parameters of a run, with their types."""
    step_count: int
    open_count: int
    """How many runs have not ended."""
    paused: Paused | None
    last_run: LastRun | None
    """The newest run; null if there is none."""
    created_at: datetime
    created_by: str | None
    updated_at: datetime


class WorkflowInFull(Workflow, frozen=True):
    """A workflow with its definition in the data form, which PUT takes as it is."""

    definition: dict[str, Any]


class WorkflowChange(WorkflowInFull, frozen=True):
    """A workflow after an action. `changed` is false if nothing had to change."""

    changed: bool


class WorkflowPreview(WorkflowInFull, frozen=True):
    """A workflow that a dry run did not make, and which live workers would open its runs."""

    lane: Lane
    workers: list[str]
    reason: str | None


class WorkflowVersionInfo(Shape, frozen=True):
    """A version of a workflow. Versions count from 1 for each workflow."""

    version: int
    is_current: bool
    created_at: datetime
    created_by: str | None
    definition: dict[str, Any]


def called(view: View, namespace: str, name: str, app: str | None) -> JobRow:
    """The workflow of that name; `app.name` works too."""
    rows = [row for row in workflow_reader.workflows(view, namespace) if name in (row.name, f"{row.app}.{row.name}")]
    rows = [row for row in rows if app in (None, row.app)]
    if not rows:
        raise UnknownJob(f"there is no workflow {name!r}; `rota workflows` lists them")
    if len(rows) > 1:
        apps = ", ".join(row.app for row in rows)
        raise UsageError(f"the apps {apps} have a workflow {name!r}: say which with --app")
    return rows[0]


def chosen(view: View, namespace: str, name: str, app: str | None, number: int | None) -> tuple[JobRow, VersionRow]:
    """A workflow and one of its versions, by default the one in force."""
    row = called(view, namespace, name, app)
    return row, _chosen(row, _versions(view, namespace, row), number)


def chosen_two(
    view: View, namespace: str, name: str, app: str | None, old: int | None, new: int | None
) -> tuple[JobRow, VersionRow, VersionRow]:
    """A workflow and two of its versions, by default the one in force and the one before it."""
    row = called(view, namespace, name, app)
    known = _versions(view, namespace, row)
    after = _chosen(row, known, new)
    earlier = [number for number, one in known.items() if one.number < after.number]
    if old is None and not earlier:
        number = after.number - row.base
        raise UsageError(f"workflow {row.name} has no version before {number}: name two versions")
    return row, _chosen(row, known, earlier[0] if old is None else old), after


def workflows(view: View, namespace: str, rows: list[JobRow]) -> list[Workflow]:
    runs = workflow_reader.open_runs(view, namespace)
    return [shaped(Workflow, row, **_members(view, namespace, row, runs.get((row.app, row.name), 0))) for row in rows]


def in_full(view: View, namespace: str, row: JobRow) -> WorkflowInFull:
    return shaped(WorkflowInFull, row, **_all_members(view, namespace, row))


def change(view: View, namespace: str, row: JobRow, *, is_changed: bool) -> WorkflowChange:
    return shaped(WorkflowChange, row, **_all_members(view, namespace, row), changed=is_changed)


def preview(view: View, namespace: str, row: JobRow, taken: Reception) -> WorkflowPreview:
    members = _all_members(view, namespace, row)
    return shaped(WorkflowPreview, row, **members, lane=taken.lane, workers=taken.workers, reason=taken.reason)


def version(row: JobRow, found: VersionRow) -> WorkflowVersionInfo:
    return shaped(
        WorkflowVersionInfo,
        found,
        version=found.number - row.base,
        is_current=found.number == row.version,
        definition=to_data(graph_of(found)),
    )


def changes(before: VersionRow, after: VersionRow) -> Iterator[Difference]:
    """What differs; steps are named by their ids, not by their places."""
    for one in differences(graph_of(before), graph_of(after)):
        names = [*(["steps", one.step] if one.step is not None else []), *([one.field] if one.field else [])]
        path = "".join(f"/{name.replace('~', '~0').replace('/', '~1')}" for name in names)
        yield Difference(path, one.before, one.after)


def graph_of(row: JobRow | VersionRow) -> Graph:
    return decoded_graph(row.definition)


def _all_members(view: View, namespace: str, row: JobRow) -> dict[str, Any]:
    is_there = row.deleted_at is None
    number = workflow_reader.open_runs(view, namespace).get((row.app, row.name), 0) if is_there else 0
    return {**_members(view, namespace, row, number), "definition": to_data(graph_of(row))}


def _members(view: View, namespace: str, row: JobRow, open_count: int) -> dict[str, Any]:
    about = row.about
    return {
        "workflow_id": row.id,
        "state": row.state,
        "version": row.version - row.base,
        "description": about.description,
        "parameters": about.parameters,
        "step_count": len(graph_of(row).steps),
        "open_count": open_count,
        "paused": paused(row),
        "last_run": _last_run(view, namespace, row.app, row.name) if row.deleted_at is None else None,
        "created_at": row.made_at,
        "updated_at": row.made_at if row.updated_at is None else row.updated_at,
    }


def _versions(view: View, namespace: str, row: JobRow) -> dict[int, VersionRow]:
    """By the numbers that are shown, which count from 1 for each workflow; the newest first."""
    found = definition_reader.versions(view, namespace, row, row.base, MOST, MOST)
    return {one.number - row.base: one for one in found}


def _chosen(row: JobRow, known: Mapping[int, VersionRow], number: int | None) -> VersionRow:
    number = row.version - row.base if number is None else number
    if number not in known:
        raise UsageError(f"workflow {row.name} has no version {number}: it has {', '.join(map(str, known))}")
    return known[number]


def _last_run(view: View, namespace: str, app: str, name: str) -> LastRun | None:
    wanted = RunFilter(workflow=name, app=app, limit=1)
    found = run_reader.page_of_runs(view, namespace, wanted, [name]).rows
    return shaped(LastRun, found[0], run_id=found[0].id) if found else None
