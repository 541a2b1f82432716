"""Workflows and their versions, as they are registered."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rota.domain import job as jobs
from rota.domain.errors import UnknownJob, UsageError
from rota.domain.status import Status
from rota.domain.workflow.difference import differences
from rota.domain.workflow.graph import Graph, to_data
from rota.executors import kinds
from rota.ops.runs.run import decoded_graph
from rota.store import run_reader
from rota.store.port import View
from rota.store.run_reader import RunFilter, VersionRow, WorkflowRow
from rota.views.shape import Paused, Shape, paused, shaped


class LastRun(Shape, frozen=True):
    """The newest run of a workflow."""

    run_id: str
    status: Status
    created_at: datetime


class WorkflowInfo(Shape, frozen=True):
    """A workflow as a list has it, with its version in force. `open_count` of its runs are open, sub-runs included."""

    workflow: str
    app: str
    version: int
    description: str
    parameters: dict[str, Any]
    step_count: int
    open_count: int
    paused: Paused | None
    last_run: LastRun | None


class WorkflowVersion(Shape, frozen=True):
    """One version of a workflow. `graph` is its data form."""

    workflow: str
    app: str
    version: int
    digest: str
    created_at: datetime
    in_force: bool
    graph: dict[str, Any]


class VersionChange(Shape, frozen=True):
    """What differs between two versions: added, removed or changed. `step` is None for the workflow itself."""

    kind: str
    step: str | None
    field: str | None
    before: Any
    after: Any


def workflows(view: View, namespace: str, app: str | None = None) -> list[WorkflowInfo]:
    return [_info(view, namespace, row) for row in _rows(view, namespace) if app in (None, row.app)]


def version(
    view: View, namespace: str, name: str, app: str | None, number: int | None
) -> tuple[WorkflowVersion, Graph]:
    """A version of a workflow, by default the one in force, and its graph."""
    row = _row(view, namespace, name, app)
    found = _version(run_reader.versions(view, namespace, row.app, row.name), row, number or row.version)
    graph = decoded_graph(found.definition)
    shape = shaped(
        WorkflowVersion,
        found,
        workflow=row.name,
        app=row.app,
        version=found.number,
        in_force=found.number == row.version,
        graph=to_data(graph),
    )
    return shape, graph


def changes(
    view: View, namespace: str, name: str, app: str | None, old: int | None, new: int | None
) -> tuple[int, int, list[VersionChange]]:
    """The two versions that were compared, and what differs. By default the one in force and the one before it."""
    row = _row(view, namespace, name, app)
    known = run_reader.versions(view, namespace, row.app, row.name)
    after = _version(known, row, new or row.version)
    earlier = [one.number for one in known if one.number < after.number]
    if old is None and not earlier:
        raise UsageError(f"workflow {row.name} has no version before {after.number}: name two versions")
    before = _version(known, row, old or earlier[0])
    found = differences(decoded_graph(before.definition), decoded_graph(after.definition))
    return before.number, after.number, [shaped(VersionChange, one) for one in found]


def last_run(view: View, namespace: str, app: str, name: str) -> LastRun | None:
    """The newest run of a workflow."""
    wanted = RunFilter(workflow=name, app=app, limit=1)
    found = run_reader.page_of_runs(view, namespace, wanted, [name]).rows
    return shaped(LastRun, found[0], run_id=found[0].id) if found else None


def _rows(view: View, namespace: str) -> list[WorkflowRow]:
    # The statement looks for the text of the kind anywhere in the definition.
    rows = run_reader.workflows(view, namespace)
    return [row for row in rows if jobs.decode(row.definition).target.get("kind") == kinds.WORKFLOW]


def _row(view: View, namespace: str, name: str, app: str | None) -> WorkflowRow:
    """The workflow of that name; `app.name`, as the list shows it, works too."""
    rows = [row for row in _rows(view, namespace) if name in (row.name, f"{row.app}.{row.name}")]
    rows = [row for row in rows if app in (None, row.app)]
    if not rows:
        raise UnknownJob(f"there is no workflow {name!r}; `rota workflows` lists them")
    if len(rows) > 1:
        raise UsageError(
            f"the apps {', '.join(row.app for row in rows)} have a workflow {name!r}: say which with --app"
        )
    return rows[0]


def _version(known: list[VersionRow], row: WorkflowRow, number: int) -> VersionRow:
    for one in known:
        if one.number == number:
            return one
    listed = ", ".join(str(one.number) for one in known)
    raise UsageError(f"workflow {row.name} has no version {number}: it has {listed}")


def _info(view: View, namespace: str, row: WorkflowRow) -> WorkflowInfo:
    known = jobs.decode(row.definition)
    return shaped(
        WorkflowInfo,
        row,
        workflow=row.name,
        description=known.description,
        parameters=known.parameters,
        step_count=len(decoded_graph(row.definition).steps),
        open_count=row.open,
        paused=paused(row),
        last_run=last_run(view, namespace, row.app, row.name),
    )
