"""Schedules: lists, one schedule, changes and actions."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from rota.api import listing, named, problem, quotas, revision
from rota.api.answer import Answer, created, no_content, shown
from rota.api.call import Call
from rota.api.dry_run import Dry, would
from rota.api.named import Note, OfApp, OfAppOrDry
from rota.api.patch import patched
from rota.api.problem import Problem, bad_member
from rota.api.quotas import QuotaKeeper
from rota.api.revision import Conditions
from rota.api.route import route
from rota.api.schedule_body import (
    NewSchedule,
    SchedulePatch,
    check_cron,
    current,
    definition,
    problems_of_options,
    spec_of,
)
from rota.domain.access import Scope
from rota.domain.actor import Actor
from rota.domain.callback import is_reserved
from rota.domain.schedule import Spec
from rota.domain.status import Status
from rota.ops import define, enqueue, job_definitions
from rota.ops import schedule as ops
from rota.ops.submission import Header, Item
from rota.store import definition_reader, reader, schedule_reader
from rota.store.definition_reader import JobRow
from rota.store.port import Tx, View
from rota.store.schedule_reader import ScheduleFilter, ScheduleRow
from rota.views import schedule as views
from rota.views import schedule_detail as details
from rota.views.schedule import Schedule
from rota.views.schedule_detail import ScheduleChanged, ScheduleDetail
from rota.views.shape import Shape

MOST_LOOKED_AT = 20_000
"""How many rows a page looks at."""

CHUNK = 1000


class ScheduleQuery(named.NamedPage, frozen=True, kw_only=True, rename="camel"):
    """`name` is the start of a name."""

    name: str | None = None
    """The start of the name."""
    app: str | None = None
    job: str | None = None
    state: Annotated[str, msgspec.Meta(pattern="^(active|paused)$")] | None = None
    """`active` or `paused`."""
    origin: Annotated[str, msgspec.Meta(pattern="^(code|api|run_time)$")] | None = None
    """What defined it: `code`, `api`, or `run_time` for a call of `app.schedule`."""


class Triggered(Shape, frozen=True):
    """The execution that was started."""

    execution_id: str
    status: Status
    job: str
    app: str
    queue: str
    schedule_id: str


class _Found(msgspec.Struct, frozen=True):
    items: list[Schedule]
    has_more: bool
    scanned_to: list[str] | None


_EXAMPLE = {"job": "report", "name": "report-nightly", "cron": "0 3 * * *", "tz": "Europe/Berlin"}
_OPTIONS = ("bad_cron", "bad_definition", "bad_arguments", "unknown_field", "missing_field", "unknown_job")


@route("GET /schedules", Scope.READ, answer=listing.of(Schedule))
async def list_schedules(call: Call, query: ScheduleQuery) -> Answer:
    """Schedules in the order of their names."""
    at = listing.position(call, query)
    is_down = (query.order == "desc") != at.is_back
    found = await call.read(_page, call.namespace, query, at.key, is_down)
    return listing.page(
        call,
        query,
        Schedule,
        found.items,
        lambda one: [one.name, one.app],
        has_more=found.has_more,
        scanned_to=found.scanned_to,
    )


@route(
    "POST /schedules",
    Scope.DEFINE,
    answer=ScheduleDetail,
    status=201,
    codes=("name_taken", "ambiguous_name", *_OPTIONS),
    example=_EXAMPLE,
)
async def create(call: Call, query: Dry, body: NewSchedule) -> Answer:
    """Makes a schedule of a job. `dryRun=true` shows its next ten ticks instead."""

    def show(tx: Tx, made: ScheduleRow) -> Answer:
        if call.is_dry_run:
            return _preview(tx, made)
        value = details.detail(tx, made, definition(made.name, made.app, made.spec))
        return created(value, f"/api/v1/schedules/{made.id}", headers=revision.header(made.revision))

    check_cron(body.cron)
    most = call.services.settings.max_payload_bytes
    return await call.act(show, _create, call.namespace, body, most, call.actor)


@route("GET /schedules/{schedule}", Scope.READ, answer=ScheduleDetail, codes=("ambiguous_name",))
async def get(call: Call, query: OfApp) -> Answer:
    """One schedule, by its id or its name."""

    def read(view: View) -> Answer:
        row = find(view, call.namespace, call.path["schedule"], query.app)
        same = revision.not_modified(call.headers, row.revision)
        return same or _detail(view, row)

    return await call.read(read)


@route(
    "PATCH /schedules/{schedule}",
    Scope.DEFINE,
    body=SchedulePatch,
    answer=ScheduleDetail,
    codes=("ambiguous_name", "defined_in_code", "conflict", "precondition_failed", *_OPTIONS),
    example={"cron": "30 3 * * *"},
)
async def change(call: Call, query: OfAppOrDry, body: Any) -> Answer:
    """Replaces the named members of a schedule; null puts the default back."""

    def show(tx: Tx, done: ScheduleRow) -> Answer:
        return _preview(tx, done) if call.is_dry_run else _detail(tx, done)

    check_cron(body.cron)
    where = (call.namespace, call.path["schedule"], query.app)
    most = call.services.settings.max_payload_bytes
    return await call.act(show, _change, where, revision.conditions(call.headers), body, most, call.actor)


@route(
    "DELETE /schedules/{schedule}",
    Scope.DEFINE,
    status=204,
    codes=("ambiguous_name", "defined_in_code", "conflict", "precondition_failed"),
)
async def remove(call: Call, query: OfAppOrDry) -> Answer:
    """Removes a schedule; its ledger and its executions stay."""

    def show(tx: Tx, gone: ScheduleRow) -> Answer:
        return would({"scheduleId": str(gone.id), "name": gone.name}) if call.is_dry_run else no_content()

    where = (call.namespace, call.path["schedule"], query.app)
    return await call.act(show, _remove, where, revision.conditions(call.headers), call.actor)


@route(
    "POST /schedules/{schedule}/pause",
    Scope.OPERATE,
    answer=ScheduleChanged,
    codes=("ambiguous_name",),
    example={"note": "the source is down"},
)
async def pause(call: Call, query: OfAppOrDry, body: Note | None) -> Answer:
    """Starts no more ticks until the schedule is resumed."""

    def act(tx: Tx) -> tuple[ScheduleRow, bool]:
        row = _locked(tx, (call.namespace, call.path["schedule"], query.app))
        note = (body.note if body else None) or ""
        return row, ops.pause(tx, call.namespace, row.app, row.name, call.actor, note)

    return await call.act(lambda tx, done: _changed(call, tx, *done), act)


@route("POST /schedules/{schedule}/resume", Scope.OPERATE, answer=ScheduleChanged, codes=("ambiguous_name",))
async def resume(call: Call, query: OfAppOrDry) -> Answer:
    """Starts ticks again from now on; those of the pause are not made up for."""

    def act(tx: Tx) -> tuple[ScheduleRow, bool]:
        row = _locked(tx, (call.namespace, call.path["schedule"], query.app))
        return row, ops.resume(tx, call.namespace, row.app, row.name, call.actor)

    return await call.act(lambda tx, done: _changed(call, tx, *done), act)


@route(
    "POST /schedules/{schedule}/trigger",
    Scope.ENQUEUE,
    answer=Triggered,
    status=201,
    codes=("ambiguous_name", "queue_full", "unknown_job", *quotas.CODES),
)
async def trigger(call: Call, query: OfAppOrDry) -> Answer:
    """Starts an execution now, as a tick of the schedule would.

    It has the job, the arguments and the queue of the schedule, whether paused or not.
    """
    id = call.services.ids.new()
    if not call.is_dry_run:
        await call.services.part(QuotaKeeper).admit(call.namespace, 1)

    def act(tx: Tx) -> ScheduleRow:
        row = find(tx, call.namespace, call.path["schedule"], query.app)
        named.check_may_enqueue(call, row.job, row.spec.queue)
        return _trigger(tx, row, id, call.actor)

    def show(tx: Tx, row: ScheduleRow) -> Answer:
        queue = row.spec.queue
        if call.is_dry_run:
            return would(details.reception(tx, row.namespace, row.app, row.job, queue))
        status = reader.status(tx, row.namespace, id)
        started = Triggered(
            execution_id=id, status=status, job=row.job, app=row.app, queue=queue, schedule_id=str(row.id)
        )
        return created(started, f"/api/v1/executions/{id}")

    return await call.act(show, act)


def find(view: View, namespace: str, thing: str, app: str | None) -> ScheduleRow:
    """The schedule that a path means, by its id or its name."""
    if named.is_id(thing):
        rows = list(schedule_reader.by_ids(view, namespace, [named.number(thing)]).values())
    else:
        rows = [row for row in schedule_reader.schedules(view, namespace, app, thing) if row.name == thing]
    return named.the_one([row for row in rows if app in (None, row.app)], thing, lambda row: (str(row.id), row.app))


def _page(view: View, namespace: str, query: ScheduleQuery, key: list[str] | None, is_down: bool) -> _Found:
    """Looks at `MOST_LOOKED_AT` rows at most, and says how far it came."""
    place = (key[0], key[1]) if key is not None and len(key) == 2 else None
    wanted = ScheduleFilter(name=query.name, app=query.app, job=query.job, state=query.state, origin=query.origin)
    chunk = query.limit + 1 if wanted == ScheduleFilter() else max(CHUNK, query.limit + 1)
    ids: list[int] = []
    looked_at, has_rest = 0, True
    while has_rest and len(ids) <= query.limit and looked_at < MOST_LOOKED_AT:
        rows = schedule_reader.listed(view, namespace, place, chunk, is_down=is_down)
        ids += [row.id for row in rows if wanted.fits(row)]
        looked_at, has_rest = looked_at + len(rows), len(rows) == chunk
        place = (rows[-1].name, rows[-1].app) if rows else place
    has_more = len(ids) > query.limit
    known = schedule_reader.by_ids(view, namespace, ids[: query.limit])
    items = [views.of_row(view, known[id]) for id in ids[: query.limit] if id in known]
    scanned_to = list(place) if has_rest and not has_more and place is not None else None
    return _Found(items, has_more or scanned_to is not None, scanned_to)


def _create(tx: Tx, namespace: str, body: NewSchedule, most_bytes: int, actor: Actor) -> ScheduleRow:
    job = _job(tx, namespace, body.job, body.app)
    name = named.new_name(body.name or job.name, "a schedule's name", pointer="/name")
    define.lock(tx, namespace, job.app)  # So of two requests with one name, one finds the schedule of the other.
    known = schedule_reader.schedule_called(tx, namespace, job.app, name)
    if known is not None:
        words = f"app {job.app} has a schedule {name!r}: choose another name, or change that one with PATCH"
        raise Problem("name_taken", words, existing={"scheduleId": str(known.id), "app": job.app})
    spec = spec_of(body, job.app, job.about, most_bytes)
    _put(tx, namespace, job.app, name, spec, actor)
    made = schedule_reader.schedule_called(tx, namespace, job.app, name)
    assert made is not None, "it was made in this transaction"
    return made


Where = tuple[str, str, str | None]
"""The namespace, the part of the path, and the app if one was given."""


def _change(
    tx: Tx, where: Where, conditions: Conditions, patch: msgspec.Struct, most_bytes: int, actor: Actor
) -> ScheduleRow:
    row = _locked(tx, where, conditions)
    _refuse_code(row)
    wanted = patched(current(row.name, row.app, row.spec), patch)
    job = _job(tx, row.namespace, wanted.job, row.app)
    _put(tx, row.namespace, row.app, row.name, spec_of(wanted, row.app, job.about, most_bytes), actor)
    return _again(tx, row)


def _remove(tx: Tx, where: Where, conditions: Conditions, actor: Actor) -> ScheduleRow:
    row = _locked(tx, where, conditions)
    _refuse_code(row)
    ops.remove(tx, row.namespace, row.app, row.name, actor)
    return row


def _trigger(tx: Tx, row: ScheduleRow, id: str, actor: Actor) -> ScheduleRow:
    spec = row.spec
    header = Header(
        namespace=row.namespace,
        app=row.app,
        job=spec.job,
        queue=spec.queue,
        priority=spec.priority,
        start_within_s=spec.start_within_s,
        actor=actor,
    )
    enqueue.enqueue(tx, header, [Item(id, spec.arguments)])
    return row


def _put(tx: Tx, namespace: str, app: str, name: str, spec: Spec, actor: Actor) -> None:
    with problems_of_options():
        ops.put(tx, namespace, app, name, spec, actor)


def _locked(tx: Tx, where: Where, conditions: Conditions | None = None) -> ScheduleRow:
    """The schedule as it is once no other transaction changes it."""
    row = find(tx, *where)
    tx.one("lock_schedule", id=row.id)
    row = _again(tx, row)
    if conditions is not None:
        conditions.check(row.revision)
    return row


def _again(tx: Tx, row: ScheduleRow) -> ScheduleRow:
    found = schedule_reader.by_ids(tx, row.namespace, [row.id])
    if row.id not in found:
        raise problem.not_found()
    return found[row.id]


def _refuse_code(row: ScheduleRow) -> None:
    if row.origin == job_definitions.API:
        words = f"schedule {row.name} is part of the definition of job {row.job}: change the schedule of the job"
        raise Problem("conflict", words)
    if row.origin == ops.CODE:
        words = f"schedule {row.name} is declared in the code of app {row.app}: change it there, or pause it"
        raise Problem("defined_in_code", words)


def _job(tx: Tx, namespace: str, thing: str, app: str | None) -> JobRow:
    found = [one for one in definition_reader.called(tx, namespace, thing, app) if not is_reserved(one.app)]
    if not found:
        words = f"there is no job {thing[:128]!r}" + (f" in app {app[:128]!r}" if app else "")
        raise bad_member("/job", words, "unknown_job")
    return named.the_one(found, thing, lambda one: (one.id, one.app))


def _detail(view: View, row: ScheduleRow) -> Answer:
    value = details.detail(view, row, definition(row.name, row.app, row.spec))
    return shown(value, headers=revision.header(row.revision))


def _preview(tx: Tx, row: ScheduleRow) -> Answer:
    holidays = ops.holidays(tx, row.namespace, row.spec)
    return would(details.preview(tx, row, definition(row.name, row.app, row.spec), holidays))


def _changed(call: Call, tx: Tx, row: ScheduleRow, is_changed: bool) -> Answer:
    now = _again(tx, row)
    value = details.changed(tx, now, definition(now.name, now.app, now.spec), is_changed=is_changed)
    return would(value) if call.is_dry_run else shown(value, headers=revision.header(now.revision))
