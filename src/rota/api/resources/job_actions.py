"""Actions on a job: trigger, pause, resume, and roll back to an earlier version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from rota.api import body as bodies
from rota.api import definitions, problem, revision
from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.dry_run import would
from rota.api.enqueueing import EnqueueOptions
from rota.api.ingest import Ingest, request_of
from rota.api.job_body import JobBody
from rota.api.job_requests import found, wanted, written
from rota.api.named import OfAppOrDry
from rota.api.problem import bad_member
from rota.api.resources.enqueue import answer_one
from rota.api.resources.job_versions import numbered
from rota.api.route import route
from rota.api.target import target
from rota.api.waiting import wait_s
from rota.domain import payload
from rota.domain.access import Scope
from rota.domain.callback import is_reserved
from rota.ops import enqueue, job_definitions, job_pauses
from rota.ops.job_definitions import Deleted, JobToStore, Written
from rota.ops.submission import Accepted
from rota.store import definition_reader as reader
from rota.store.definition_reader import JobRow
from rota.store.port import Tx
from rota.views import execution as executions
from rota.views import job_detail, job_forecast
from rota.views.enqueued import Enqueued
from rota.views.execution import ExecutionDetail
from rota.views.job_detail import JobInFull
from rota.views.shape import Shape


class TriggerQuery(OfAppOrDry, frozen=True, kw_only=True, rename="camel"):
    """With `wait`, the answer comes at the end of the execution, or after this time."""

    wait: str | None = None


class Rollback(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The version to return to."""

    version: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    """The number of the version to return to."""


class Note(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Why the job is paused."""

    note: str | None = None


class JobChange(JobInFull, frozen=True, kw_only=True):
    """The job after an action. `changed` is false if there was nothing to change."""

    changed: bool


class WouldTrigger(Shape, frozen=True):
    """What a trigger would do."""

    execution: ExecutionDetail
    workers: list[str]
    reason: str | None


@route(
    "POST /jobs/{job}/trigger",
    Scope.ENQUEUE,
    answer=(Enqueued, ExecutionDetail),
    status=201,
    also={200: (Enqueued, ExecutionDetail, dict[str, Any])},
    codes=(
        "deleted",
        "ambiguous_name",
        "bad_arguments",
        "forbidden_address",
        "key_conflict",
        "not_unique",
        "clock_skew",
        "queue_full",
        "namespace_full",
        "quota_exceeded",
    ),
    example={"arguments": {}, "priority": "high"},
)
async def trigger(call: Call, query: TriggerQuery, body: EnqueueOptions | None) -> Answer:
    """Creates an execution of a job now. It waits while the job is paused."""
    row = await call.read(found, call, query.app)
    if is_reserved(row.app):
        raise problem.not_found()
    if row.deleted_at is not None:
        raise Deleted(f"the job {row.name} ({row.id}) was deleted, so it cannot be triggered")
    ingest = call.services.part(Ingest)
    job = target(call.namespace, row)
    request = request_of(call, call.raw_body)
    order = await ingest.order(call, body or EnqueueOptions(), job, request=request)
    if not call.is_dry_run:
        return await answer_one(call, ingest, order, wait_s(query.wait))

    def show(tx: Tx, accepted: list[Accepted]) -> Answer:
        made = executions.execution(tx, call.namespace, accepted[0].id)
        forecast = job_forecast.forecast(tx, call.namespace, row)
        return would(WouldTrigger(made, forecast.workers, forecast.reason))

    return await call.act(show, enqueue.enqueue, order.header, [order.item])


@route(
    "POST /jobs/{job}/pause",
    Scope.OPERATE,
    answer=JobChange,
    codes=("deleted", "ambiguous_name"),
    example={"note": "the mail server is down"},
)
async def pause(call: Call, query: OfAppOrDry, body: Note | None) -> Answer:
    """Starts no more executions of a job until it is resumed."""
    note = ((body or Note()).note or "")[: payload.MOST_NOTE]
    return await _acted(
        call, query, lambda tx, row: job_pauses.pause(tx, call.namespace, row.app, row.name, call.actor, note)
    )


@route("POST /jobs/{job}/resume", Scope.OPERATE, answer=JobChange, codes=("deleted", "ambiguous_name"))
async def resume(call: Call, query: OfAppOrDry) -> Answer:
    """Starts executions of a paused job again."""
    return await _acted(
        call, query, lambda tx, row: job_pauses.resume(tx, call.namespace, row.app, row.name, call.actor)
    )


async def _acted(call: Call, query: OfAppOrDry, act: Callable[[Tx, JobRow], bool]) -> Answer:
    def run(tx: Tx) -> tuple[str, bool]:
        row = found(tx, call, query.app)
        if row.deleted_at is not None:
            raise Deleted(f"the job {row.name} ({row.id}) was deleted")
        return row.id, act(tx, row)

    def show(tx: Tx, result: tuple[str, bool]) -> Answer:
        row = reader.with_id(tx, call.namespace, result[0])
        assert row is not None, "it was read in this transaction"
        found = job_detail.job(tx, call.namespace, row)
        shape = JobChange(**{name: getattr(found, name) for name in found.__struct_fields__}, changed=result[1])
        return would(shape) if call.is_dry_run else shown(shape, headers=revision.header(row.revision))

    return await call.act(show, run)


@route(
    "POST /jobs/{job}/rollback",
    Scope.DEFINE,
    answer=JobInFull,
    codes=("deleted", "ambiguous_name", "defined_in_code", "unknown_job", "cycle"),
    example={"version": 1},
)
async def rollback(call: Call, query: OfAppOrDry, body: Rollback) -> Answer:
    """Puts the definition of an earlier version in force again."""

    def return_to(tx: Tx) -> Written:
        row = found(tx, call, query.app)

        def build(known: JobRow) -> JobToStore:
            version = numbered(tx, call, known, body.version)
            if version is None or version.source is None:
                words = f"the job {known.name} has no version {body.version} that the API has defined"
                raise bad_member("/version", words)
            members = msgspec.json.decode(version.source, type=dict[str, Any])
            whole = bodies.decoded(msgspec.json.encode(definitions.merged(members, {})), JobBody)
            return wanted(call, tx, whole, version.template)

        return job_definitions.change(tx, call.namespace, row, build, call.actor)

    return await written(call, return_to)
