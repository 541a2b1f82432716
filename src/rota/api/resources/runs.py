"""Runs of workflows: lists, one run, its steps, and what an operator does with a run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from rota.api import listing, named, quotas
from rota.api.answer import Answer, created, shown
from rota.api.body import absent
from rota.api.call import Call
from rota.api.problem import bad_member, bad_parameter
from rota.api.query import Page
from rota.api.quotas import QuotaKeeper
from rota.api.route import NoQuery, route
from rota.domain.access import Scope
from rota.domain.instant import instant
from rota.domain.status import Status
from rota.ids import FIRST_ID, LAST_ID, is_id
from rota.ops import control
from rota.ops.runs import pause as pausing
from rota.ops.runs import retry as retrying
from rota.ops.runs.retry import Request
from rota.store import run_reader
from rota.store.port import Tx
from rota.store.run_reader import RunFilter
from rota.views import run as views
from rota.views.run import RunAbout, RunDetail, RunSummary
from rota.views.step import StepInfo

MOST_LOOKED_AT = 20_000
"""How many rows a page looks at."""

LATEST = "latest"

STATUSES = [*(status.value for status in Status if status is not Status.RETRYING), *run_reader.OPEN[1:]]


class RunQuery(Page, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Runs that are steps of other runs are listed with `workflow`, `parent` or `status=unanswered` only."""

    workflow: str | None = None
    app: str | None = None
    status: Annotated[str, msgspec.Meta(pattern=f"^({'|'.join(STATUSES)})$")] | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    parent: str | None = None
    """The id of the run that has started it."""


class OneRunQuery(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """With `steps` the answer also has all steps, and the undos of steps."""

    steps: bool = False
    """Whether the answer has all steps, and the undos of steps."""


class StepQuery(Page, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Steps are in the order of the graph."""

    order: Annotated[str, msgspec.Meta(pattern="^(asc|desc)$")] = "asc"
    status: str | None = None


class RunChanged(RunSummary, frozen=True):
    """A run after an action. `changed` is false if it was so before."""

    changed: bool


class RunRetried(RunSummary, frozen=True):
    """The new run. `retried_before` is the last earlier retry of the same run."""

    retried_before: str | None
    """The last earlier retry of the same run; null if there is none."""


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An action without options."""


class Note(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Why."""

    note: Annotated[str, msgspec.Meta(max_length=1000)] = ""


class Retry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """By default every step without success runs again, and all after it.

    `fromStep` is a step, or `start` for all of them. `arguments` are new ones of the run, which need
    `"fromStep": "start"`; `stepArguments` are new ones of steps, by name. `version` is that of the run, which is the
    default, or the one in force, by its number or as `latest`.
    """

    from_step: str | None = None
    """The first step to run again, or `start` for all; without it, every step without success."""
    arguments: msgspec.Raw = msgspec.field(default_factory=absent)
    """New arguments of the run, with `fromStep` `start`."""
    step_arguments: dict[str, dict[str, Any]] = {}
    """Other arguments for steps that run again, by the name of the step."""
    version: int | Literal["latest"] | None = None
    """The number of a version, or `latest`; without it that of the run."""


@route("GET /runs", Scope.READ, answer=listing.of(RunSummary))
async def runs(call: Call, query: RunQuery) -> Answer:
    """Runs of workflows, newest first."""
    at = listing.position(call, query)
    is_ascending = (query.order == "asc") != at.is_back
    if query.parent is not None and not is_id(query.parent):
        raise bad_parameter("parent", "parent: it must be the id of a run")
    wanted = RunFilter(
        workflow=query.workflow,
        app=query.app,
        status=query.status,
        since=None if query.created_from is None else instant(query.created_from),
        until=run_reader.FOREVER if query.created_to is None else instant(query.created_to),
        parent=query.parent,
        before=at.key[0] if at.key else FIRST_ID if is_ascending else LAST_ID,
        is_ascending=is_ascending,
        limit=query.limit,
        budget=MOST_LOOKED_AT,
    )
    found = await call.read(views.runs, call.namespace, wanted)
    scanned_to = None if found.scanned_to is None else [found.scanned_to]
    return listing.page(
        call, query, RunSummary, found.items, lambda one: [one.run_id], has_more=found.has_more, scanned_to=scanned_to
    )


@route("GET /runs/{run}", Scope.READ, answer=(RunAbout, RunDetail))
async def run(call: Call, query: OneRunQuery) -> Answer:
    """One run: its version, its result or error, its critical path, and what a retry would run again."""
    read = views.run if query.steps else views.about
    return shown(await call.read(read, call.namespace, call.path["run"]))


@route("GET /runs/{run}/steps", Scope.READ, answer=listing.of(StepInfo))
async def run_steps(call: Call, query: StepQuery) -> Answer:
    """The steps of a run, in the order of the graph. A map is one step."""
    found = await call.read(views.run_steps, call.namespace, call.path["run"])
    places = {info.step: f"{number:06}" for number, info in enumerate(found)}
    wanted = [info for info in found if query.status in (None, info.status)]
    return listing.of_all(call, query, StepInfo, wanted, lambda one: [places[one.step]])


@route("POST /runs/{run}/cancel", Scope.OPERATE, answer=RunChanged, example={}, codes=("conflict",))
async def cancel(call: Call, query: NoQuery, body: Nothing | None) -> Answer:
    """Stops a run: no further step starts, and running steps are asked to stop."""
    return await _change(call, control.cancel_run)


@route(
    "POST /runs/{run}/pause",
    Scope.OPERATE,
    answer=RunChanged,
    example={"note": "the warehouse is down"},
    codes=("conflict",),
)
async def pause(call: Call, query: NoQuery, body: Note | None) -> Answer:
    """Starts no further step of a run, nor of runs below it. Running steps continue."""
    return await _change(call, pausing.pause, body.note if body else "")


@route("POST /runs/{run}/resume", Scope.OPERATE, answer=RunChanged, example={}, codes=("conflict",))
async def resume(call: Call, query: NoQuery, body: Nothing | None) -> Answer:
    """Resumes a paused run. Its timeout is later by the length of the pause."""
    return await _change(call, pausing.resume)


@route(
    "POST /runs/{run}/retry",
    Scope.OPERATE,
    answer=RunRetried,
    status=201,
    example={"fromStep": "load", "stepArguments": {"load": {"day": "2030-01-31"}}},
    codes=("conflict", "bad_arguments", *quotas.CODES),
)
async def retry(call: Call, query: NoQuery, body: Retry | None) -> Answer:
    """Repeats the steps of an ended run that did not succeed, as a new run that keeps the others."""
    named.check_is_unlimited(call)
    await call.services.part(QuotaKeeper).admit(call.namespace, 1)
    wanted = body or Retry()
    arguments = bytes(wanted.arguments).strip()
    if arguments and not arguments.startswith(b"{"):
        raise bad_member("/arguments", "arguments must be an object")
    request = Request(
        from_=wanted.from_step,
        arguments=arguments.decode() if arguments else None,
        step_arguments=wanted.step_arguments,
        latest=wanted.version == LATEST,
        version=wanted.version if isinstance(wanted.version, int) else None,
    )
    before = await call.read(views.about, call.namespace, call.path["run"])

    def show(tx: Tx, new_id: str) -> Answer:
        summary = views.summary(tx, call.namespace, new_id)
        members = {name: getattr(summary, name) for name in RunSummary.__struct_fields__}
        return created(RunRetried(**members, retried_before=before.retried_as), f"/api/v1/runs/{new_id}")

    new_id = call.services.ids.new()
    return await call.act(show, retrying.retry, call.namespace, call.path["run"], new_id, call.actor, request)


async def _change(call: Call, op: Callable[..., bool], *more: Any) -> Answer:
    id = call.path["run"]
    await call.read(views.run_row, call.namespace, id)

    def show(tx: Tx, changed: bool) -> Answer:
        summary = views.summary(tx, call.namespace, id)
        members = {name: getattr(summary, name) for name in RunSummary.__struct_fields__}
        return shown(RunChanged(**members, changed=changed))

    return await call.act(show, op, call.namespace, id, call.actor, *more)
