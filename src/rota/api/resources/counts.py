"""How many executions, runs and events there are, and what a name or the start of an id may mean."""

from __future__ import annotations

from typing import Annotated

import msgspec

from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.execution_filter import ExecutionFilter, wanted
from rota.api.problem import bad_parameter
from rota.api.route import route
from rota.domain.access import Scope
from rota.domain.instant import instant
from rota.views import count, search
from rota.views.count import By, Counted, Counts
from rota.views.search import Hits

_EARLIEST, _LATEST = 0, 2**62


class CountsQuery(ExecutionFilter, frozen=True, kw_only=True):
    """What to count. Events have the filters name, subject, createdFrom and createdTo; the others all but these two."""

    of: Annotated[Counted, msgspec.Meta(description="What is counted.")] = Counted.EXECUTIONS
    by: Annotated[By | None, msgspec.Meta(description="Dead letters are grouped by their error without it.")] = None
    name: Annotated[str | None, msgspec.Meta(description="Of events.")] = None
    subject: Annotated[str | None, msgspec.Meta(description="Of events.")] = None


class SearchQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a name, or the first four characters of an id or more."""

    q: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    """The start of an id, or a part of a name."""


@route("GET /counts", Scope.READ, is_heavy=True, answer=Counts)
async def counts(call: Call, query: CountsQuery) -> Answer:
    """How many executions, runs or events there are, up to 10,000."""
    if query.of is Counted.EVENTS:
        return shown(await _events(call, query))
    _refuse(query, [one for one in ("name", "subject") if getattr(query, one) is not None])
    if query.by is By.FINGERPRINT and not query.dead:
        raise bad_parameter("by", "by=fingerprint is for dead letters: add dead=true")
    counted = count.runs if query.of is Counted.RUNS else count.executions
    return shown(await call.read(counted, call.namespace, wanted(query), query.by))


@route("GET /search", Scope.READ, is_heavy=True, answer=Hits)
async def find(call: Call, query: SearchQuery) -> Answer:
    """Executions by the start of their ids; jobs, workflows, queues, schedules and workers by their names."""
    return shown(await call.read(search.search, call.namespace, query.q))


async def _events(call: Call, query: CountsQuery) -> Counts:
    fields = msgspec.structs.fields(ExecutionFilter)
    given = [one.encode_name for one in fields if getattr(query, one.name) != one.default]
    _refuse(query, [one for one in given if one not in ("createdFrom", "createdTo")])
    if query.by not in (None, By.DAY):
        raise bad_parameter("by", "events are counted by day, or all together")
    low = _EARLIEST if query.created_from is None else instant(query.created_from)
    high = _LATEST if query.created_to is None else instant(query.created_to)
    return await call.read(count.events, call.namespace, query.name, query.subject, low, high, query.by)


def _refuse(query: CountsQuery, names: list[str]) -> None:
    if names:
        raise bad_parameter(names[0], f"{names[0]} is no filter of {query.of}")
