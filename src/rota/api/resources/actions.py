"""Actions on many things at once, by their ids or by a filter."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import datetime
from typing import Annotated, Any

import msgspec

from rota.api import listing, named, problem, quotas
from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.dry_run import Dry, would
from rota.api.problem import Flaw, Problem, bad_member
from rota.api.query import Page, moment
from rota.api.quotas import QuotaKeeper
from rota.api.resources.runs import STATUSES as RUN_STATUSES
from rota.api.route import BASE, NoQuery, route
from rota.api.waiting import wait_s
from rota.domain import action as rules
from rota.domain import rank
from rota.domain.access import Scope
from rota.domain.action import ENDED, MOST_IDS
from rota.domain.decoding import prepare
from rota.domain.errors import DefinitionError, RotaError
from rota.domain.instant import instant
from rota.domain.status import Status
from rota.ops import actions as ops
from rota.ops.action_items import Done
from rota.ops.actions import Request
from rota.store import action_reader
from rota.store.action_reader import ActionRow
from rota.store.port import Tx
from rota.views import action as views
from rota.views.action import Action

STARTING = ("replay", "retry", "backfill")
"""Actions that start executions."""

Moment = Annotated[datetime, msgspec.Meta(tz=True)]

prepare(Moment)


class ActionIn(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """`ids` are acted on at once. With a `filter`, `atMost` says how many may be touched, `rate` how many a second."""

    action: str
    """What is done: cancel, replay, discard, update, retry, backfill, pause or resume."""
    on: str
    """What is acted on: executions, runs, events, schedules or jobs."""
    ids: Annotated[list[str], msgspec.Meta(max_length=MOST_IDS)] | None = None
    filter: dict[str, Any] | None = None
    at_most: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    options: dict[str, Any] | None = None
    as_of: Moment | None = None
    rate: Annotated[float, msgspec.Meta(gt=0)] | None = None
    note: Annotated[str, msgspec.Meta(max_length=500)] | None = None


class WaitQuery(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`wait` is a duration: answer when the action has ended, or after that time."""

    wait: str | None = None


class Results(msgspec.Struct, frozen=True, rename="camel"):
    """What became of each id."""

    action_id: str
    status: str
    """The status of the action."""
    items: list[Done]
    """One for each id."""


class Changed(msgspec.Struct, frozen=True):
    """Whether the request changed anything."""

    changed: bool


_EXAMPLE = {"action": "replay", "on": "executions", "filter": {"dead": True, "job": "charge"}, "atMost": 5000}


@route(
    "POST /actions",
    Scope.OPERATE,
    answer=Action,
    status=202,
    also={200: Results},
    codes=("empty_filter", "too_many", *quotas.CODES),
    example=_EXAMPLE,
)
async def create(call: Call, asked: Dry, body: ActionIn) -> Answer:
    """Acts on many things: on ids at once, on what a filter finds in the background."""
    request = _request(call, body)
    if body.action in STARTING:
        named.check_is_unlimited(call)
    id = call.services.ids.new()
    if body.ids is not None:
        items = _items(body)
        if body.action in STARTING and not call.is_dry_run:
            await call.services.part(QuotaKeeper).admit(call.namespace, len(items))

        def show_all(tx: Tx, done: list[Done]) -> Answer:
            if call.is_dry_run:
                return would({"items": done})
            return shown(Results(id, "done", done))

        return await call.act(show_all, ops.act_on, call.namespace, id, request, items, call.actor)
    if asked.dry_run:
        return would(msgspec.to_builtins(await call.read(ops.preview, call.namespace, request)))

    def show(tx: Tx, row: ActionRow) -> Answer:
        return shown(views.action(row), 202, headers={"Location": f"{BASE}/actions/{row.id}"})

    answer = await call.act(show, ops.begin, call.namespace, id, request, call.actor)
    call.services.in_background(_work(call))
    return answer


async def _work(call: Call) -> None:
    """Works on actions until none is due. If this server dies meanwhile, the upkeep of any worker continues."""
    try:
        has_more = 1
        while has_more and not call.services.is_draining:
            has_more = await call.services.transact(ops.work_on_actions)
    except RotaError:
        return  # The upkeep of workers repeats it.


@route("GET /actions", Scope.READ, answer=listing.of(Action))
async def list_actions(call: Call, page: Page) -> Answer:
    """Actions on many things, newest first."""
    at = listing.position(call, page)
    is_ascending = (page.order == "asc") != at.is_back
    after = at.key[0] if at.key else None
    rows = await call.read(action_reader.actions, call.namespace, after, page.limit + 1, is_ascending=is_ascending)
    found = [views.action(row) for row in rows[: page.limit]]
    return listing.page(call, page, Action, found, lambda one: [one.action_id], has_more=len(rows) > page.limit)


@route("GET /actions/{action}", Scope.READ, answer=Action)
async def get(call: Call, asked: WaitQuery) -> Answer:
    """How far an action is. With `wait`, its end."""
    until = call.services.clock.monotonic() + (wait_s(asked.wait) or 0.0)
    while True:
        row = await call.read(action_reader.action, call.namespace, call.path["action"])
        if row is None:
            raise problem.not_found()
        left = until - call.services.clock.monotonic()
        if row.status in ENDED or left <= 0 or call.services.is_draining:
            return shown(views.action(row))
        await asyncio.sleep(min(0.2, left))
        await call.check_token()


@route("POST /actions/{action}/cancel", Scope.OPERATE, answer=Changed)
async def cancel(call: Call, asked: NoQuery) -> Answer:
    """Stops an action before its next chunk."""
    answer = await call.act(
        lambda tx, changed: shown(Changed(changed)), ops.cancel, call.namespace, call.path["action"], call.actor
    )
    call.services.in_background(_work(call))
    return answer


def _request(call: Call, body: ActionIn) -> Request:
    if body.on not in rules.VERBS:
        raise bad_member("/on", f"on must be one of {', '.join(rules.VERBS)}")
    if body.action not in rules.VERBS[body.on]:
        raise bad_member("/action", f"{body.on} can be acted on by {', '.join(rules.VERBS[body.on])}")
    if (body.ids is None) == (body.filter is None):
        raise bad_member("/filter", "give ids or a filter, and not both")
    options = _options(call, body)
    as_of = 0 if body.as_of is None else instant(body.as_of)
    about: dict[str, Any] = {"verb": body.action, "target": body.on, "options": options, "note": body.note or ""}
    if body.filter is None:
        return Request(**about)
    if not body.filter:
        raise Problem("empty_filter", "an empty filter would mean everything: name at least one member")
    if body.at_most is None:
        flaw = Flaw("missing_field", "atMost is missing", pointer="/atMost")
        raise Problem("missing_field", "atMost is missing: say how many may be touched", flaws=[flaw])
    found = _filter(call, body.on, body.filter)
    return Request(**about, filter=found, at_most=body.at_most, as_of=as_of, rate=body.rate)


_MEMBERS: dict[str, dict[str, str]] = {
    "executions": {
        "status": "status", "job": "job", "app": "app", "queue": "queue", "tag": "tag", "reason": "reason",
        "errorType": "error_type", "error": "error", "createdFrom": "created_from", "createdTo": "created_to",
        "worker": "worker", "schedule": "schedule", "run": "run", "parent": "parent", "replayOf": "replay_of",
        "key": "key", "actor": "actor", "dead": "dead", "id": "id", "fingerprint": "fingerprint",
    },
    "runs": {
        "workflow": "workflow", "app": "app", "status": "status", "createdFrom": "since", "createdTo": "until",
        "parent": "parent",
    },
    "events": {"name": "name", "subject": "subject", "from": "since", "to": "until"},
    "schedules": {"name": "name", "app": "app", "job": "job", "state": "state", "origin": "origin"},
    "jobs": {"name": "name", "app": "app", "state": "state", "origin": "origin", "queue": "queue", "tag": "tag"},
}  # fmt: skip
"""The members of a filter: the parameters of the list, and their names in Python."""

_TIMES = {"created_from", "created_to", "since", "until"}

_ONE = {"executions": {"error", "dead"}, "jobs": {"name"}}
"""Members that are one value; the others of these targets may be a list."""

_CHOICES: dict[tuple[str, str], Collection[str]] = {
    ("executions", "status"): list(Status),
    ("runs", "status"): RUN_STATUSES,
    ("schedules", "state"): ("active", "paused"),
    ("schedules", "origin"): ("code", "api", "run_time"),
    ("jobs", "state"): ("active", "paused"),
    ("jobs", "origin"): ("code", "api", "file"),
}


def _filter(call: Call, target: str, given: dict[str, Any]) -> dict[str, Any]:
    """The members of a filter by their names in Python, checked."""
    known, found = _MEMBERS[target], dict[str, Any]()
    for name, value in given.items():
        if name not in known:
            words = f"there is no filter {name[:64]!r} for {target}; there are {', '.join(known)}"
            raise bad_member(f"/filter/{name[:64]}", words, "unknown_field")
        member = known[name]
        if member in _TIMES:
            found[member] = _time(call, f"/filter/{name}", value)
        elif target in _ONE and member not in _ONE[target]:
            found[member] = value if isinstance(value, list) else [value]
            if not found[member] or not all(isinstance(one, str) for one in found[member]):
                raise bad_member(f"/filter/{name}", f"{name} is a text, or a list of texts")
        elif not isinstance(value, bool if member == "dead" else str):
            raise bad_member(f"/filter/{name}", f"{name} must be {'true or false' if member == 'dead' else 'a text'}")
        else:
            found[member] = value
        choices = _CHOICES.get((target, member))
        values = found[member] if isinstance(found[member], list) else [found[member]]
        if choices is not None and (bad := [one for one in values if one not in choices]):
            raise bad_member(f"/filter/{name}", f"there is no {name} {bad[0][:64]!r}; there are {', '.join(choices)}")
    return found


def _time(call: Call, pointer: str, value: object) -> int:
    try:
        return instant(moment(value if isinstance(value, str) else "", call.services.clock.now()))
    except ValueError as error:
        raise bad_member(pointer, str(error)) from None


def _options(call: Call, body: ActionIn) -> dict[str, Any]:
    given = body.options or {}
    if body.action == "update":
        changes = given.get("set")
        if set(given) != {"set"} or not isinstance(changes, dict) or set(changes) != {"priority"}:
            raise bad_member("/options", 'update takes {"set": {"priority": 10}}')
        return {"set": {"priority": _level(changes["priority"])}}
    if body.action == "backfill":
        return _backfill(call, given)
    if (body.on, body.action) == ("executions", "replay") and given:
        if set(given) != {"onlyDead"} or not isinstance(given["onlyDead"], bool):
            raise bad_member("/options", 'replay takes {"onlyDead": true}')
        return given
    if given:
        raise bad_member("/options", f"{body.action} takes no options")
    return {}


def _level(priority: Any) -> int:
    try:
        return rank.level(priority)
    except DefinitionError as error:
        raise bad_member("/options/set/priority", str(error)) from None


def _backfill(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    if not {"from", "to"} <= set(given) <= {"from", "to", "most"}:
        raise bad_member("/options", 'backfill takes {"from": "2026-01-01T00:00:00Z", "to": "…", "most": 1000}')
    most = given.get("most", 1000)
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= 10_000:
        raise bad_member("/options/most", "most is a number from 1 to 10,000")
    ends = {name: _time(call, f"/options/{name}", given[name]) for name in ("from", "to")}
    return {**ends, "most": most}


def _items(body: ActionIn) -> list[str]:
    items = list(dict.fromkeys(body.ids or ()))
    if not items:
        raise bad_member("/ids", "ids is empty: name at least one")
    return items
