"""Calendars: named sets of dates that schedules leave out."""

from __future__ import annotations

from typing import Annotated

import msgspec

from rota.api import dry_run, listing, named, problem, revision
from rota.api.answer import Answer, created, no_content, shown
from rota.api.call import Call
from rota.api.dry_run import Dry
from rota.api.named import NamedPage
from rota.api.problem import Problem, bad_member
from rota.api.route import NoQuery, route
from rota.domain.access import Scope
from rota.domain.errors import DefinitionError
from rota.ops import calendars as ops
from rota.store import calendar_reader
from rota.store.calendar_reader import CalendarRow
from rota.store.port import Tx
from rota.views import calendar as views
from rota.views.calendar import Calendar, CalendarInfo

MOST_SHOWN = 20


class CalendarBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Dates such as `2026-12-24`, in any order."""

    days: Annotated[list[str], msgspec.Meta(max_length=ops.MOST_DAYS)]


@route("GET /calendars", Scope.READ, answer=listing.of(CalendarInfo))
async def list_calendars(call: Call, query: NamedPage) -> Answer:
    """Calendars in the order of their names."""
    found = await call.read(views.calendars, call.namespace)
    return listing.of_all(call, query, CalendarInfo, found, lambda one: [one.name])


@route("GET /calendars/{calendar}", Scope.READ, answer=Calendar)
async def get(call: Call, query: NoQuery) -> Answer:
    """One calendar with its dates."""
    row = await call.read(calendar_reader.calendar, call.namespace, call.path["calendar"])
    if row is None:
        raise problem.not_found()
    return revision.not_modified(call.headers, row.revision) or _answer(row)


@route(
    "PUT /calendars/{calendar}",
    Scope.DEFINE,
    answer=Calendar,
    codes=("precondition_failed",),
    example={"days": ["2026-12-24", "2026-12-25"]},
)
async def put(call: Call, query: Dry, body: CalendarBody) -> Answer:
    """Makes a calendar, or replaces its dates."""
    name = named.new_name(call.path["calendar"], "a calendar's name")
    conditions = revision.conditions(call.headers)

    def act(tx: Tx) -> bool:
        try:
            return revision.add_or_change(
                conditions,
                lock=lambda: ops.lock(tx, call.namespace, name),
                add=lambda: ops.add(tx, call.namespace, name, body.days, call.actor),
                change=lambda: ops.put(tx, call.namespace, name, body.days, call.actor),
            )
        except DefinitionError as error:
            raise bad_member("/days", str(error)) from None

    def show(tx: Tx, is_new: bool) -> Answer:
        row = calendar_reader.calendar(tx, call.namespace, name)
        assert row is not None, "it was written in this transaction"
        if call.is_dry_run:
            return dry_run.would(views.of_row(row))
        return _created(row) if is_new else _answer(row)

    return await call.act(show, act)


@route("DELETE /calendars/{calendar}", Scope.DEFINE, status=204, codes=("in_use", "precondition_failed"))
async def remove(call: Call, query: Dry) -> Answer:
    """Removes a calendar that no schedule uses."""
    name, conditions = call.path["calendar"], revision.conditions(call.headers)

    def act(tx: Tx) -> None:
        known = ops.lock(tx, call.namespace, name)
        if known is None:
            raise problem.not_found()
        conditions.check(known)
        if users := ops.users(tx, call.namespace, name):
            listed = ", ".join(f"{user.app}.{user.name}" for user in users[:5])
            raise Problem(
                "in_use",
                f"calendar {name} is used by {listed}: change these schedules first",
                existing=[{"scheduleId": str(one.id), "app": one.app, "name": one.name} for one in users[:MOST_SHOWN]],
            )
        ops.remove(tx, call.namespace, name, call.actor)

    def show(tx: Tx, done: None) -> Answer:
        return dry_run.would({"name": name}) if call.is_dry_run else no_content()

    return await call.act(show, act)


def _answer(row: CalendarRow) -> Answer:
    return shown(views.of_row(row), headers=revision.header(row.revision))


def _created(row: CalendarRow) -> Answer:
    return created(views.of_row(row), f"/api/v1/calendars/{row.name}", headers=revision.header(row.revision))
