"""Dead letters grouped by error, and those with the error of one execution."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from rota.api import problem
from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.query import Limit
from rota.api.route import NoQuery, route
from rota.domain.access import Scope
from rota.domain.instant import instant
from rota.views import error_group as views
from rota.views.error_group import ErrorGroupDetail, ErrorGroups, Similar, Wanted


class ErrorsQuery(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Which dead letters to group; a repeated parameter means any of its values."""

    job: tuple[str, ...] = ()
    app: tuple[str, ...] = ()
    reason: tuple[str, ...] = ()
    q: Annotated[str | None, msgspec.Meta(description="A part of the class or the text of the error.")] = None
    since: Annotated[
        datetime | None, msgspec.Meta(description="Errors of which a letter came since then, such as 1h ago.")
    ] = None
    limit: Limit = 50


@route("GET /errors", Scope.READ, is_heavy=True, answer=ErrorGroups)
async def errors(call: Call, query: ErrorsQuery) -> Answer:
    """Dead letters grouped by error, the largest groups first."""
    since = 0 if query.since is None else instant(query.since)
    wanted = Wanted(job=query.job, app=query.app, reason=query.reason, text=query.q, since=since)
    return shown(await call.read(views.groups, call.namespace, wanted, query.limit))


@route("GET /errors/{fingerprint}", Scope.READ, is_heavy=True, answer=ErrorGroupDetail)
async def error(call: Call, query: NoQuery) -> Answer:
    """The dead letters with one error: since when, since which version, and the last success before."""
    found = await call.read(views.group, call.namespace, call.path["fingerprint"])
    if found is None:
        raise problem.not_found()
    return shown(found)


@route("GET /executions/{execution}/similar", Scope.READ, answer=Similar)
async def similar(call: Call, query: NoQuery) -> Answer:
    """Other dead letters with the error of an execution."""
    return shown(await call.read(views.similar, call.namespace, call.path["execution"]))
