"""The ledger of a schedule: the outcome of every tick, and the sums by outcome."""

from __future__ import annotations

from datetime import datetime

import msgspec

from rota.api import listing, named
from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.problem import Problem
from rota.api.query import Page
from rota.api.route import route
from rota.domain.access import Scope
from rota.domain.instant import instant
from rota.domain.tick_policy import TickOutcome
from rota.store import schedule_reader
from rota.store.port import View
from rota.views import tick as views
from rota.views.shape import Shape
from rota.views.tick import Tick

MOST_LOOKED_AT = 20_000
"""The most rows that one page reads, and the most that the sums count."""

CHUNK = 1000

FOREVER = 2**62


class TickQuery(Page, frozen=True, kw_only=True, rename={"from_": "from"}):
    """`from` and `to` are half-open; they also take a duration, such as `90d` for ninety days ago."""

    from_: datetime | None = None
    to: datetime | None = None
    outcome: tuple[TickOutcome, ...] = ()
    """What became of the tick; repeated: any of these."""
    app: str | None = None


class TickSummary(Shape, frozen=True):
    """How many ticks between `from` and `to` had which outcome, whatever page is shown.

    `isCapped` says that there are more: only the newest rows were counted.
    """

    outcomes: dict[str, int]
    """How many ticks had each outcome."""
    is_capped: bool


class TickList(Shape, frozen=True):
    """Ticks, newest first. A range of ticks with one outcome is one item with its `count`."""

    items: list[Tick]
    """The ticks on this page."""
    next_cursor: str | None
    previous_cursor: str | None
    summary: TickSummary
    """The sums by outcome."""


@route("GET /schedules/{schedule}/ticks", Scope.READ, answer=TickList, codes=("ambiguous_name",))
async def ticks(call: Call, query: TickQuery) -> Answer:
    """The outcome of every tick of a schedule, newest first, and the sums by outcome."""
    at = listing.position(call, query)
    low = 0 if query.from_ is None else instant(query.from_)
    high = FOREVER if query.to is None else instant(query.to) - 1
    wanted = _Wanted(
        thing=call.path["schedule"],
        app=query.app,
        between=(low, high),
        outcomes=frozenset(query.outcome),
        after=_place(at.key),
        is_down=(query.order == "desc") != at.is_back,
        limit=query.limit,
    )
    found = await call.read(_read, call.namespace, wanted)
    page = listing.page(call, query, Tick, found.items, _key, has_more=found.has_more, scanned_to=found.scanned_to)
    return shown({**msgspec.json.decode(page.body or b"{}"), "summary": found.summary})


class _Wanted(msgspec.Struct, frozen=True):
    thing: str
    app: str | None
    between: tuple[int, int]
    outcomes: frozenset[TickOutcome]
    after: tuple[int, int] | None
    is_down: bool
    limit: int


class _Found(msgspec.Struct, frozen=True):
    items: list[Tick]
    has_more: bool
    scanned_to: list[str] | None
    summary: TickSummary


def _read(view: View, namespace: str, wanted: _Wanted) -> _Found:
    app, name = _ledger(view, namespace, wanted.thing, wanted.app)
    schedules = schedule_reader.ever(view, namespace, app, name)
    sums, is_capped = schedule_reader.sums_of_ticks(view, schedules, *wanted.between, MOST_LOOKED_AT)
    items: list[Tick] = []
    after, looked_at, has_rest = wanted.after, 0, True
    chunk = CHUNK if wanted.outcomes else wanted.limit + 1
    while has_rest and len(items) <= wanted.limit and looked_at < MOST_LOOKED_AT:
        rows = schedule_reader.page_of_ticks(view, schedules, wanted.between, after, chunk, wanted.is_down)
        items += [views.of_row(row) for row in rows if not wanted.outcomes or row.outcome in wanted.outcomes]
        looked_at, has_rest = looked_at + len(rows), len(rows) == chunk
        after = (rows[-1].at, rows[-1].schedule) if rows else after
    has_more = len(items) > wanted.limit
    scanned_to = [str(after[0]), str(after[1])] if has_rest and not has_more and after else None
    return _Found(items[: wanted.limit], has_more or scanned_to is not None, scanned_to, TickSummary(sums, is_capped))


def _ledger(view: View, namespace: str, thing: str, app: str | None) -> tuple[str, str]:
    """App and name of the ledger. That of a removed schedule stays, and is found by its id or its name."""
    if named.is_id(thing):
        found = schedule_reader.ledger_of(view, namespace, named.number(thing))
    else:
        found = schedule_reader.ledgers(view, namespace, thing)
    found = [one for one in found if app in (None, one[0])]
    return named.the_one(found, thing, lambda one: (one[1], one[0]))


def _key(tick: Tick) -> list[str]:
    return [str(instant(tick.at)), tick.schedule_id]


def _place(key: list[str] | None) -> tuple[int, int] | None:
    if key is None:
        return None
    if len(key) != 2 or not all(part.isdecimal() and len(part) <= 18 for part in key):
        raise Problem("bad_cursor", "the cursor belongs to another list: start again without a cursor")
    return int(key[0]), int(key[1])
