"""Actions on a workflow, and its versions: trigger, pause, resume, and roll back to an earlier version."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

import msgspec

from rota.api import body as bodies
from rota.api import enqueueing, listing, named, quotas, revision, workflow_body
from rota.api.answer import Answer, created, shown
from rota.api.call import Call
from rota.api.dry_run import would
from rota.api.named import Note, OfAppOrDry
from rota.api.problem import Problem, bad_member
from rota.api.query import Page
from rota.api.quotas import QuotaKeeper
from rota.api.resources.job_versions import VersionQuery, called, numbered
from rota.api.resources.workflows import find, refused_if_code, written
from rota.api.route import route
from rota.domain import payload
from rota.domain.access import Scope
from rota.domain.errors import ArgumentsError, DefinitionError
from rota.domain.status import Status
from rota.ops import enqueue, job_definitions, job_pauses
from rota.ops.job_definitions import Deleted, JobToStore, Written
from rota.ops.submission import Accepted, Header, Item
from rota.sdk.options import Options, applied
from rota.store import definition_reader, reader
from rota.store.definition_reader import LAST_VERSION, JobRow, VersionRow
from rota.store.port import Tx, View
from rota.views import schedule_detail, workflow_detail
from rota.views.job_version import Difference
from rota.views.shape import Shape
from rota.views.workflow_detail import WorkflowChange, WorkflowInFull, WorkflowVersionInfo


class StartOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of a run, and how its start differs from the usual."""

    arguments: msgspec.Raw | None = None
    delay: float | str | None = None
    at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """The time of its start."""
    priority: int | str | None = None
    key: str | None = None
    tags: list[str] | None = None
    headers: dict[str, str] | None = None


class Rollback(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The version to return to."""

    version: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    """The number of the version to return to."""


class Started(Shape, frozen=True):
    """The run of a trigger. `created` is false if its key has given an existing one."""

    run_id: str
    status: Status
    workflow: str
    app: str
    created: bool


class VersionsQuery(Page, frozen=True, kw_only=True, rename="camel"):
    """`app` decides between workflows of one name."""

    app: str | None = None


@route(
    "POST /workflows/{workflow}/trigger",
    Scope.ENQUEUE,
    answer=Started,
    status=201,
    codes=("deleted", "ambiguous_name", "bad_arguments", "key_conflict", "queue_full", *quotas.CODES),
    example={"arguments": {"day": "2030-01-31"}},
)
async def trigger(call: Call, query: OfAppOrDry, body: StartOptions | None) -> Answer:
    """Starts a run now. It waits while the workflow is paused."""
    options = body or StartOptions()
    id = call.services.ids.new()
    keeper = call.services.part(QuotaKeeper)
    most = await keeper.most_payload_bytes(call.namespace)
    if not call.is_dry_run:
        await keeper.admit(call.namespace, 1)

    def act(tx: Tx) -> tuple[JobRow, Accepted]:
        row = _living(find(tx, call, query.app))
        named.check_may_enqueue(call, row.name, row.about.queue)
        header = _header(call, row, options)
        text = _arguments(row, options, most)
        return row, enqueue.enqueue(tx, header, [Item(id, text, payload.digest(text))])[0]

    def show(tx: Tx, done: tuple[JobRow, Accepted]) -> Answer:
        row, accepted = done
        if call.is_dry_run:
            return would(schedule_detail.reception(tx, call.namespace, row.app, row.name, row.about.queue))
        status = reader.status(tx, call.namespace, accepted.id)
        started = Started(run_id=accepted.id, status=status, workflow=row.name, app=row.app, created=accepted.created)
        return created(started, f"/api/v1/runs/{accepted.id}") if accepted.created else shown(started)

    return await call.act(show, act)


@route(
    "POST /workflows/{workflow}/pause",
    Scope.OPERATE,
    answer=WorkflowChange,
    codes=("deleted", "ambiguous_name"),
    example={"note": "the source is down"},
)
async def pause(call: Call, query: OfAppOrDry, body: Note | None) -> Answer:
    """Starts no more runs of a workflow until it is resumed; open runs continue."""
    note = payload.clean((body.note if body else None) or "", payload.MOST_NOTE)
    return await _act(
        call, query, lambda tx, row: job_pauses.pause(tx, call.namespace, row.app, row.name, call.actor, note)
    )


@route("POST /workflows/{workflow}/resume", Scope.OPERATE, answer=WorkflowChange, codes=("deleted", "ambiguous_name"))
async def resume(call: Call, query: OfAppOrDry) -> Answer:
    """Starts runs of a paused workflow again."""
    return await _act(call, query, lambda tx, row: job_pauses.resume(tx, call.namespace, row.app, row.name, call.actor))


@route(
    "POST /workflows/{workflow}/rollback",
    Scope.DEFINE,
    answer=WorkflowInFull,
    codes=("deleted", "ambiguous_name", "defined_in_code", "bad_workflow"),
    example={"version": 1},
)
async def rollback(call: Call, query: OfAppOrDry, body: Rollback) -> Answer:
    """Puts the definition of an earlier version in force again. Open runs keep the version they began with."""

    def act(tx: Tx) -> Written:
        row = find(tx, call, query.app)

        def build(known: JobRow) -> JobToStore:
            found = numbered(tx, call, known, body.version)
            if found is None or found.source is None:
                words = f"workflow {known.name} has no version {body.version} that the API has defined"
                raise bad_member("/version", words)
            data = msgspec.json.decode(found.source)
            return workflow_body.wanted(tx, call.namespace, known.app, data, known.name)

        return job_definitions.change(tx, call.namespace, refused_if_code(row), build, call.actor)

    return await call.act(lambda tx, done: written(call, tx, done), act)


@route(
    "GET /workflows/{workflow}/versions", Scope.READ, answer=listing.of(WorkflowVersionInfo), codes=("ambiguous_name",)
)
async def list_versions(call: Call, query: VersionsQuery) -> Answer:
    """The versions of a workflow, newest first."""
    at = listing.position(call, query)
    after, is_up = listing.number(at), (query.order == "asc") != at.is_back

    def read(view: View) -> tuple[JobRow, list[VersionRow]]:
        row = find(view, call, query.app)
        edge = None if after is None else row.base + after
        low, high = (edge or 0, LAST_VERSION) if is_up else (0, LAST_VERSION if edge is None else edge)
        return row, definition_reader.versions(view, call.namespace, row, low, high, query.limit + 1, is_up=is_up)

    row, rows = await call.read(read)
    items = [workflow_detail.version(row, one) for one in rows[: query.limit]]
    has_more = len(rows) > query.limit
    return listing.page(call, query, WorkflowVersionInfo, items, lambda one: [str(one.version)], has_more=has_more)


@route(
    "GET /workflows/{workflow}/versions/{version}",
    Scope.READ,
    answer=WorkflowVersionInfo | list[Difference],
    codes=("ambiguous_name",),
)
async def get_version(call: Call, query: VersionQuery) -> Answer:
    """A version of a workflow; with diff, how it differs from another one."""

    def read(view: View) -> Any:
        row = find(view, call, query.app)
        this = called(view, call, row, call.path["version"])
        if query.diff is None:
            return workflow_detail.version(row, this)
        return list(workflow_detail.changes(called(view, call, row, str(query.diff)), this))

    return shown(await call.read(read))


async def _act(call: Call, query: OfAppOrDry, act: Callable[[Tx, JobRow], bool]) -> Answer:
    def run(tx: Tx) -> tuple[JobRow, bool]:
        row = _living(find(tx, call, query.app))
        return row, act(tx, row)

    def show(tx: Tx, done: tuple[JobRow, bool]) -> Answer:
        row = definition_reader.with_id(tx, call.namespace, done[0].id)
        assert row is not None, "it was read in this transaction"
        value = workflow_detail.change(tx, call.namespace, row, is_changed=done[1])
        return would(value) if call.is_dry_run else shown(value, headers=revision.header(row.revision))

    return await call.act(show, run)


def _living(row: JobRow) -> JobRow:
    if row.deleted_at is not None:
        raise Deleted(f"the workflow {row.name} ({row.id}) was deleted")
    return row


def _header(call: Call, row: JobRow, options: StartOptions) -> Header:
    about = row.about
    plain = Header(
        namespace=call.namespace,
        app=row.app,
        job=row.name,
        queue=about.queue,
        priority=about.priority,
        start_within_s=about.start_within_s,
        actor=call.actor,
    )
    given = Options(
        delay=options.delay,
        at=options.at,
        priority=options.priority,
        key=options.key,
        tags=options.tags,
        headers=options.headers,
    )
    try:
        return applied(given, plain)
    except DefinitionError as error:
        raise Problem("bad_field", str(error)) from None


def _arguments(row: JobRow, options: StartOptions, most_bytes: int) -> str:
    text = "{}" if options.arguments is None else bytes(options.arguments).decode()
    try:
        given = payload.decode(text, "arguments")
        if not isinstance(given, dict):
            raise ArgumentsError("arguments must be an object of values by name")
        bodies.refuse(enqueueing.misfits(row.name, given, row.about.parameters, row.about.target.get("graph")))
        payload.encode(given, f"{row.name}(): the arguments", most_bytes)
    except ArgumentsError as error:
        raise bad_member("/arguments", str(error), "bad_arguments") from None
    return text
