"""Ticks of all schedules in a range of time, and the days of one schedule."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.problem import bad_parameter
from rota.api.resources.schedules import find
from rota.api.route import route
from rota.domain.access import Scope
from rota.domain.instant import MICROSECONDS, instant
from rota.store.port import View
from rota.views import schedule as schedules
from rota.views import tick_range as views
from rota.views.schedule import LintResult
from rota.views.tick_range import ScheduleDays, TicksOfAll

DAY = 86_400 * MICROSECONDS

MOST_DAYS = 8

USUAL_DAYS = 120


class TicksQuery(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """`from` and `to` are half-open and at most eight days apart. Default: the day in UTC."""

    from_: datetime | None = None
    """The start of the range; by default of this day in UTC."""
    to: datetime | None = None
    """The end of the range, not included; at most eight days later."""
    schedule: Annotated[tuple[str, ...], msgspec.Meta(description="A name or an id; repeated: any of these.")] = ()
    limit: Annotated[int, msgspec.Meta(ge=1, le=20_000)] = 5000
    """How many ticks the answer has at most."""
    merge: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Of schedules with more ticks than this, neighbours with one outcome are one item with their count."""


class LintQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Of one app, or of all."""

    app: str | None = None


class DaysQuery(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """`from` is a time, or a duration such as `90d`. Default: 120 days ago."""

    from_: datetime | None = None
    """A time, or a duration such as `90d`; by default 120 days ago."""
    app: str | None = None


@route("GET /ticks", Scope.READ, is_heavy=True, answer=TicksOfAll)
async def ticks(call: Call, query: TicksQuery) -> Answer:
    """The ticks of all schedules in a range of time, past and to come, and how many in each quarter hour."""

    def read(view: View) -> TicksOfAll:
        low = view.now - view.now % DAY if query.from_ is None else instant(query.from_)
        high = low + DAY if query.to is None else instant(query.to)
        if not 0 < high - low <= MOST_DAYS * DAY:
            words = f"to must be later than from, by {MOST_DAYS} days at most"
            raise bad_parameter("to", words)
        return views.ticks(view, call.namespace, low, high, query.schedule, query.limit, query.merge)

    return shown(await call.read(read))


@route("GET /lint", Scope.READ, is_heavy=True, answer=LintResult)
async def lint(call: Call, query: LintQuery) -> Answer:
    """What the owners of schedules may not expect: herds, times that do not exist, runs that take too long."""
    return shown(await call.read(schedules.lint, call.namespace, query.app))


@route("GET /schedules/{schedule}/days", Scope.READ, is_heavy=True, answer=ScheduleDays, codes=("ambiguous_name",))
async def days(call: Call, query: DaysQuery) -> Answer:
    """The worst outcome of each day of a schedule, in its zone."""

    def read(view: View) -> ScheduleDays:
        row = find(view, call.namespace, call.path["schedule"], query.app)
        low = view.now - USUAL_DAYS * DAY if query.from_ is None else instant(query.from_)
        return views.days(view, call.namespace, row, low)

    return shown(await call.read(read))
