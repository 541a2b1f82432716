"""Workflows: define, read, change and delete them. The body of a write is the data form of a workflow."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from rota.api import definitions, listing, named, problem, revision, workflow_body
from rota.api.answer import Answer, created, no_content, shown
from rota.api.call import Call
from rota.api.dry_run import would
from rota.api.named import NamedPage, OfApp, OfAppOrDry
from rota.api.problem import Problem
from rota.api.route import route
from rota.api.workflow_body import merged
from rota.domain import callback
from rota.domain.access import Scope
from rota.domain.errors import DefinitionError, NameTaken
from rota.executors import kinds
from rota.ops import job_definitions
from rota.ops.job_definitions import HasDependents, JobToStore, Written
from rota.store import definition_reader, workflow_reader
from rota.store.definition_reader import Ambiguous, JobRow
from rota.store.port import Tx, View
from rota.views import schedule_detail, workflow_detail
from rota.views.workflow_detail import Workflow, WorkflowInFull


class WorkflowQuery(NamedPage, frozen=True, kw_only=True, rename="camel"):
    """`name` is the start of a name."""

    name: str | None = None
    """The start of the name."""
    app: str | None = None
    state: Annotated[str, msgspec.Meta(pattern="^(active|paused)$")] | None = None
    """`active` or `paused`."""
    origin: Annotated[str, msgspec.Meta(pattern="^(code|api|file)$")] | None = None


class DeleteQuery(OfAppOrDry, frozen=True, kw_only=True, rename="camel"):
    """`pending=cancel` cancels the runs that have not ended; else they continue."""

    pending: Literal["keep", "cancel"] = "keep"


_EXAMPLE = {
    "rota": "workflow/1",
    "name": "etl",
    "parameters": {"day": {"type": "string"}},
    "steps": [
        {"id": "extract", "job": "extract", "with": {"day": {"$": "input.day"}}},
        {"id": "load", "job": "load", "with": {"rows": {"$": "extract"}}},
    ],
    "result": {"$": "load"},
}
_CODES = ("ambiguous_name", "precondition_failed", "bad_workflow", "defined_in_code", "name_taken")


@route("GET /workflows", Scope.READ, answer=listing.of(Workflow))
async def list_workflows(call: Call, query: WorkflowQuery) -> Answer:
    """Workflows in the order of their names."""

    def read(view: View) -> list[Workflow]:
        rows = [row for row in workflow_reader.workflows(view, call.namespace) if _fits(row, query)]
        return workflow_detail.workflows(view, call.namespace, rows)

    return listing.of_all(call, query, Workflow, await call.read(read), lambda one: [one.name, one.app])


@route(
    "POST /workflows",
    Scope.DEFINE,
    answer=WorkflowInFull,
    status=201,
    codes=("name_taken", "bad_workflow", "bad_definition"),
    example=_EXAMPLE,
)
async def create(call: Call, query: OfAppOrDry, body: dict[str, Any]) -> Answer:
    """Makes a workflow of the app that `app` names, or of the app default. The body is its data form."""
    app = _app(query.app or definitions.DEFAULT_APP)

    def act(tx: Tx) -> Written:
        wanted = workflow_body.wanted(tx, call.namespace, app, body)
        try:
            return job_definitions.create(tx, call.namespace, wanted, call.services.ids.new(), call.actor)
        except NameTaken as taken:
            raise Problem("name_taken", str(taken), existing={"workflowId": taken.holder, "app": app}) from None

    return await call.act(lambda tx, done: written(call, tx, done), act)


@route("GET /workflows/{workflow}", Scope.READ, answer=WorkflowInFull, codes=("ambiguous_name",))
async def get(call: Call, query: OfApp) -> Answer:
    """One workflow with its definition, by its id or its name."""

    def read(view: View) -> Answer:
        row = find(view, call, query.app)
        return revision.not_modified(call.headers, row.revision) or answer(view, call, row)

    return await call.read(read)


@route("PUT /workflows/{workflow}", Scope.DEFINE, answer=WorkflowInFull, codes=_CODES, example=_EXAMPLE)
async def put(call: Call, query: OfAppOrDry, body: dict[str, Any]) -> Answer:
    """Makes a workflow, or replaces it. The same content makes no new version."""
    conditions = revision.conditions(call.headers)

    def check(known: JobRow | None) -> None:
        conditions.check(None if known is None else known.revision)
        if known is not None and not is_workflow(known):
            words = f"app {known.app} has a job {known.name} that is no workflow: choose another name"
            raise Problem("name_taken", words, existing={"jobId": known.id, "app": known.app})
        if known is not None:
            refused_if_code(known)

    def act(tx: Tx) -> Written:
        thing = call.path["workflow"]
        known = find(tx, call, query.app) if named.is_id(thing) else _called(tx, call, thing, query.app)
        check(known)  # Also later, once the app is locked; but before the content is judged.
        app, name = (_app(query.app or definitions.DEFAULT_APP), thing) if known is None else (known.app, known.name)
        wanted = workflow_body.wanted(tx, call.namespace, app, body, name)
        return job_definitions.put(tx, call.namespace, wanted, call.services.ids.new(), call.actor, check)

    return await call.act(lambda tx, done: written(call, tx, done), act)


@route(
    "PATCH /workflows/{workflow}",
    Scope.DEFINE,
    answer=WorkflowInFull,
    codes=(*_CODES, "deleted"),
    example={"description": "Loads the files of a day."},
)
async def change(call: Call, query: OfAppOrDry, body: dict[str, Any]) -> Answer:
    """Replaces the named members of the data form; null puts the default back."""
    conditions = revision.conditions(call.headers)

    def act(tx: Tx) -> Written:
        row = find(tx, call, query.app)

        def build(known: JobRow) -> JobToStore:
            data = merged(msgspec.json.decode(known.source or "{}"), body)
            return workflow_body.wanted(tx, call.namespace, known.app, data, known.name)

        return job_definitions.change(
            tx, call.namespace, refused_if_code(row), build, call.actor, lambda known: conditions.check(_number(known))
        )

    return await call.act(lambda tx, done: written(call, tx, done), act)


@route(
    "DELETE /workflows/{workflow}",
    Scope.DEFINE,
    status=204,
    codes=("ambiguous_name", "has_dependents", "defined_in_code", "deleted", "precondition_failed"),
)
async def remove(call: Call, query: DeleteQuery) -> Answer:
    """Deletes a workflow: its schedules end, its name is free. Its runs continue, and its id still reads."""
    conditions = revision.conditions(call.headers)

    def act(tx: Tx) -> JobRow:
        row = find(tx, call, query.app)
        _refuse_used(tx, call.namespace, row)
        job_definitions.delete(
            tx,
            call.namespace,
            row,
            call.actor,
            lambda known: conditions.check(_number(known)),
            cancels=query.pending == "cancel",
        )
        return row

    def show(tx: Tx, gone: JobRow) -> Answer:
        return would({"workflowId": gone.id, "name": gone.name}) if call.is_dry_run else no_content()

    return await call.act(show, act)


def find(view: View, call: Call, app: str | None) -> JobRow:
    """The workflow that a path means. A deleted one is found by its id."""
    row = _called(view, call, call.path["workflow"], app)
    if row is None or not is_workflow(row):
        raise problem.not_found()
    return row


def is_workflow(row: JobRow) -> bool:
    return bool(row.about.target.get("kind") == kinds.WORKFLOW)


def refused_if_code(row: JobRow) -> JobRow:
    """The row, unless code or a file defines the workflow."""
    if row.origin != job_definitions.API and row.deleted_at is None:
        where = "a file" if row.origin == "file" else "code"
        raise Problem("defined_in_code", f"workflow {row.name} of app {row.app} is defined in {where}: change it there")
    return row


def answer(view: View, call: Call, row: JobRow) -> Answer:
    return shown(workflow_detail.in_full(view, call.namespace, row), headers=revision.header(row.revision))


def written(call: Call, tx: Tx, done: Written) -> Answer:
    """The answer to a write of a definition."""
    row = done.row
    if call.is_dry_run:
        taken = schedule_detail.reception(tx, call.namespace, row.app, row.name, row.about.queue)
        return would(workflow_detail.preview(tx, call.namespace, row, taken))
    if done.is_new:
        value = workflow_detail.in_full(tx, call.namespace, row)
        return created(value, f"/api/v1/workflows/{row.id}", headers=revision.header(row.revision))
    return answer(tx, call, row)


def _called(view: View, call: Call, thing: str, app: str | None) -> JobRow | None:
    try:
        row = definition_reader.find(view, call.namespace, thing, app)
    except Ambiguous as error:
        existing = [{"id": id} for id in error.ids]
        raise Problem("ambiguous_name", str(error), existing=existing) from None
    return row if row is None or app in (None, row.app) else None


def _fits(row: JobRow, query: WorkflowQuery) -> bool:
    return (
        row.name.startswith(query.name or "")
        and query.app in (None, row.app)
        and query.state in (None, row.state)
        and query.origin in (None, row.origin)
    )


def _app(name: str) -> str:
    try:
        return callback.check_app(name)
    except DefinitionError as error:
        raise Problem("bad_parameter", str(error)) from None


def _number(row: JobRow | None) -> int | None:
    return None if row is None else row.revision


def _refuse_used(tx: Tx, namespace: str, row: JobRow) -> None:
    """Refuses to delete a workflow that is a step of others."""
    users = [
        one.name
        for one in workflow_reader.workflows(tx, namespace)
        if one.app == row.app
        and one.id != row.id
        and any(step.workflow == row.name for step in workflow_detail.graph_of(one).steps)
    ]
    if users:
        raise HasDependents(f"these workflows run {row.name} as a step: {', '.join(users[:5])}; change them first")
