"""Jobs: define, read, change, pause, trigger and delete them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from rota.api import body as bodies
from rota.api import definitions, listing, revision
from rota.api.answer import Answer, no_content, shown
from rota.api.call import Call
from rota.api.dry_run import would
from rota.api.job_body import JobBody, JobPatch
from rota.api.job_requests import condition, found, wanted, written
from rota.api.named import OfApp, OfAppOrDry
from rota.api.problem import Problem, bad_member, bad_parameter
from rota.api.query import Page
from rota.api.route import route
from rota.domain.access import Scope
from rota.ids import is_id
from rota.ops import job_definitions
from rota.ops.job_definitions import JobToStore, Written
from rota.store import definition_reader as reader
from rota.store.definition_reader import JobFilter, JobRow
from rota.store.port import Tx, View
from rota.views import job_detail
from rota.views.job_detail import Job, JobInFull

MOST_SCANNED = 20_000

LAST_OUTCOMES = "lastOutcomes"


class JobsQuery(Page, frozen=True, kw_only=True, rename="camel"):
    """`name` is the beginning of a name. A job with several tags must have all of them."""

    order: Literal["asc", "desc"] = "asc"
    name: str | None = None
    """The start of the name."""
    app: list[str] | None = None
    state: list[Literal["active", "paused", "deleted"]] | None = None
    """`active`, `paused` or `deleted`; `deleted` only alone."""
    origin: list[Literal["code", "api", "file"]] | None = None
    queue: list[str] | None = None
    tag: list[str] | None = None


class JobQuery(OfApp, frozen=True, kw_only=True, rename="camel"):
    """`fields` names the members that are shown."""

    fields: str | None = None


class DeleteQuery(OfApp, frozen=True, kw_only=True, rename="camel"):
    """`pending=cancel` cancels the executions that have not started; else they still run."""

    pending: Literal["keep", "cancel"] = "keep"
    dry_run: bool = False


_EXAMPLE = {
    "name": "daily-report",
    "schedule": "0 0 * * *",
    "command": "python generate_report.py",
    "retries": 3,
    "timeout": 3600,
}
_DEFINES = ("bad_definition", "unknown_job", "cycle", "bad_cron", "needs_shell", "bad_arguments", "unknown_field")
_CHANGES = (*_DEFINES, "missing_field", "defined_in_code", "deleted", "ambiguous_name", "precondition_failed")


@route("GET /jobs", Scope.READ, answer=listing.of(Job))
async def list_jobs(call: Call, query: JobsQuery) -> Answer:
    """Jobs by name. Deleted ones are a list of their own: state=deleted."""
    at = listing.position(call, query)
    is_deleted = query.state == ["deleted"]
    if query.state and "deleted" in query.state and not is_deleted:
        words = "state=deleted goes with no other state: deleted jobs are a list of their own"
        raise bad_parameter("state", words)
    listing.names(Job, query.fields)
    is_down = (query.order == "desc") != at.is_back

    def read(view: View) -> tuple[list[Job], list[str] | None, bool]:
        rows, reached, has_more = _page(
            view, call.namespace, query, _position(at.key), is_down=is_down, is_deleted=is_deleted
        )
        items = job_detail.jobs(view, call.namespace, rows)
        if query.fields is not None and LAST_OUTCOMES in query.fields.split(","):
            outcomes = job_detail.last_outcomes(view, call.namespace, rows)
            items = [replace(one, last_outcomes=last) for one, last in zip(items, outcomes, strict=True)]
        return items, reached, has_more

    items, reached, has_more = await call.read(read)
    return listing.page(call, query, Job, items, _key, has_more=has_more, scanned_to=reached)


def _position(after: list[str] | None) -> list[str] | None:
    if after is not None and (len(after) != 3 or not is_id(after[2])):
        raise Problem("bad_cursor", "the cursor belongs to another list: start again without a cursor")
    return after


def _page(
    view: View, namespace: str, query: JobsQuery, after: list[str] | None, *, is_down: bool, is_deleted: bool
) -> tuple[list[JobRow], list[str] | None, bool]:
    """The rows of a page; how far it looked, if that is further than its last row; and whether there may be more."""
    filters = JobFilter(app=query.app, state=query.state, origin=query.origin, queue=query.queue, tag=query.tag)
    found: list[JobRow] = []
    scanned, position = 0, after
    while scanned < MOST_SCANNED:
        most = max(100, query.limit + 1)
        rows = reader.jobs(
            view, namespace, position, most, prefix=query.name or "", is_down=is_down, is_deleted=is_deleted
        )
        for row in rows:
            if filters.fits(row):
                if len(found) == query.limit:
                    return found, None, True
                found.append(row)
        if len(rows) < most:
            return found, None, False
        scanned, position = scanned + len(rows), _row_key(rows[-1])
    return found, position, True


@route("POST /jobs", Scope.DEFINE, answer=JobInFull, status=201, codes=(*_DEFINES, "name_taken"), example=_EXAMPLE)
async def create(call: Call, query: OfAppOrDry, body: JobBody) -> Answer:
    """Creates a job with its schedules and dependencies."""

    def make(tx: Tx) -> Written:
        return job_definitions.create(tx, call.namespace, wanted(call, tx, body), call.services.ids.new(), call.actor)

    return await written(call, make)


@route("GET /jobs/{job}", Scope.READ, answer=JobInFull, codes=("ambiguous_name",))
async def get(call: Call, query: JobQuery) -> Answer:
    """A job by its id or name: its status, and its definition."""
    listing.names(JobInFull, query.fields)

    def read(view: View) -> tuple[JobRow, JobInFull]:
        row = found(view, call, query.app)
        return row, job_detail.job(view, call.namespace, row)

    row, job = await call.read(read)
    shape = listing.only(job, JobInFull, query.fields)
    same = revision.not_modified(call.headers, row.revision)
    return same or shown(shape, headers=revision.header(row.revision))


@route("PUT /jobs/{job}", Scope.DEFINE, answer=JobInFull, codes=_CHANGES, example=_EXAMPLE)
async def put(call: Call, query: OfAppOrDry, body: JobPatch) -> Answer:
    """Creates or replaces the job of that name. The same content changes nothing.

    By its id a job is only replaced.
    """
    reference, holds = call.path["job"], condition(call)
    given = body if body.name is not None else msgspec.structs.replace(body, name=reference)
    if body.app is None and query.app is not None:
        given = msgspec.structs.replace(given, app=query.app)

    def replace(tx: Tx) -> Written:
        if not is_id(reference):
            if given.name != reference:
                raise bad_member("/name", f"the name is that of the path, {reference}, or left out")
            made = wanted(call, tx, given)
            return job_definitions.put(tx, call.namespace, made, call.services.ids.new(), call.actor, holds)
        row = found(tx, call, query.app)
        named = given if body.name is not None else msgspec.structs.replace(given, name=row.name)
        return job_definitions.change(tx, call.namespace, row, lambda _: wanted(call, tx, named), call.actor, holds)

    return await written(call, replace)


@route("PATCH /jobs/{job}", Scope.DEFINE, answer=JobInFull, codes=_CHANGES, example={"timeout": 600})
async def patch(call: Call, query: OfAppOrDry, body: JobPatch) -> Answer:
    """Replaces the named members of a job; null puts the default back."""
    given = msgspec.json.decode(call.raw_body, type=dict[str, Any])
    holds = condition(call)

    def change(tx: Tx) -> Written:
        row = found(tx, call, query.app)

        def build(known: JobRow) -> JobToStore:
            if known.source is None:
                raise _in_code(known)
            members = definitions.merged(msgspec.json.decode(known.source, type=dict[str, Any]), given)
            whole = bodies.decoded(msgspec.json.encode(members), JobBody)
            kept = known.template if "template" not in given else None
            return wanted(call, tx, whole, kept)

        return job_definitions.change(tx, call.namespace, row, build, call.actor, holds)

    return await written(call, change)


@route(
    "DELETE /jobs/{job}",
    Scope.DEFINE,
    status=204,
    codes=("defined_in_code", "deleted", "has_dependents", "ambiguous_name", "precondition_failed"),
)
async def delete(call: Call, query: DeleteQuery) -> Answer:
    """Ends the schedules of a job and frees its name. Accepted executions still run."""
    holds = condition(call)

    def remove(tx: Tx) -> int:
        row = found(tx, call, query.app)
        cancels = query.pending == "cancel"
        return job_definitions.delete(tx, call.namespace, row, call.actor, holds, cancels=cancels)

    def show(tx: Tx, cancelled: int) -> Answer:
        return would({"cancel": cancelled}) if call.is_dry_run else no_content()

    return await call.act(show, remove)


def _in_code(row: JobRow) -> Problem:
    return Problem("defined_in_code", f"the job {row.name} of app {row.app} is defined in code: change it there")


def _key(item: Job) -> list[str]:
    return [item.name, item.app, item.job_id]


def _row_key(row: JobRow) -> list[str]:
    return [row.name, row.app, row.id]
