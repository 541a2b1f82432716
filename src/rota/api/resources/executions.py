"""Executions: the list, one of them, its attempts and its children."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from rota.api import listing
from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.execution_filter import ExecutionFilter, wanted
from rota.api.listing import Position
from rota.api.problem import bad_parameter
from rota.api.query import Limit, Page, Paged
from rota.api.route import OF_OWN, Access, route
from rota.api.waiting import Waits, wait_s
from rota.domain.access import Scope
from rota.domain.status import Status
from rota.ids import is_id
from rota.store import execution_reader, reader
from rota.store.execution_reader import Criteria, RankKey, Where
from rota.store.port import View
from rota.store.scan import Budget, Found, K
from rota.views import attempt, execution, execution_list
from rota.views.attempt import Attempt
from rota.views.execution import ExecutionDetail
from rota.views.execution_list import ENCODED, SUMMARY, ExecutionItem
from rota.views.shape import Page as Items

RANK = "rank"

MOST_BYTES = 8 * 1024 * 1024
"""Of arguments, results and errors on one page."""

LAST_ATTEMPTS = 10

DIGITS = 18
"""A number with so many digits fits into the databases' integers."""

Order = Annotated[
    str,
    msgspec.Meta(
        pattern="^(asc|desc|rank)$",
        description="`desc`: newest first. `rank`: in the order of starts, with status=queued and one queue.",
    ),
]


class ExecutionsQuery(ExecutionFilter, frozen=True, kw_only=True):
    """The list of executions."""

    limit: Limit = 50
    cursor: str | None = None
    order: Order = "desc"
    fields: str | None = None


class ChildrenQuery(Page, frozen=True, kw_only=True):
    """The children of one execution."""

    status: tuple[Status, ...] = ()


class OneQuery(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """With `wait`, a duration of at most a minute, the answer comes at the end of the execution or after that time."""

    fields: str | None = None
    wait: str | None = None
    """A duration of at most 60s: the answer comes at the end of the execution, or after this time."""


@route("GET /executions", Scope.READ, is_heavy=True, answer=listing.of(ExecutionItem))
async def executions(call: Call, query: ExecutionsQuery) -> Answer:
    """Executions, newest first."""
    members = _members(query.fields)
    if query.order == RANK:
        return await _by_rank(call, query, members)
    return await _listed(call, query, wanted(query), members)


@route("GET /executions/{execution}", Access.READ_OR_OWN, answer=ExecutionDetail)
async def execution_(call: Call, query: OneQuery) -> Answer:
    """An execution with its last ten attempts, and why it is not running."""
    listing.names(ExecutionDetail, query.fields)
    id, seconds = call.path["execution"], wait_s(query.wait)
    if seconds:
        with call.services.part(Waits).on(call.namespace, reader.known(id), call) as wait:
            if owner(call) is not None:
                await call.read(check_owner, call.namespace, id, owner(call))
            await wait.look()
            await wait.ended(seconds)
    found = await call.read(_one, call.namespace, id, owner(call))
    return shown(listing.only(found, ExecutionDetail, query.fields))


@route("GET /executions/{execution}/attempts", Access.READ_OR_OWN, answer=listing.of(Attempt))
async def attempts(call: Call, query: Page) -> Answer:
    """The attempts of an execution that have ended, newest first."""
    at = listing.position(call, query, _is_fence)
    after = None if at.key is None else int(at.key[0])
    is_ascending = (query.order == "asc") != at.is_back
    found = await call.read(
        _attempts, call.namespace, call.path["execution"], owner(call), after, query.limit, is_ascending
    )
    return listing.page(call, query, Attempt, found.items, lambda one: [str(one.fence)], has_more=found.has_more)


@route("GET /executions/{execution}/children", Scope.READ, answer=listing.of(ExecutionItem))
async def children(call: Call, query: ChildrenQuery) -> Answer:
    """The executions that an execution has enqueued, newest first."""
    id = call.path["execution"]
    below = Criteria(parent=(id,), status=query.status)
    return await _listed(call, query, below, _members(query.fields), of=id)


def owner(call: Call) -> str | None:
    """The caller, if it may see only the executions that it has made; None if it may see all."""
    scope = OF_OWN[call.route.needs]
    return None if call.grant.has(scope) else call.grant.actor


def check_owner(view: View, namespace: str, id: str, owner: str | None) -> None:
    """An execution that others have made is not there for a caller that may see only its own."""
    if owner is not None and reader.execution(view, namespace, id).actor != owner:
        raise reader.unknown(id)


def _one(view: View, namespace: str, id: str, owner: str | None) -> ExecutionDetail:
    check_owner(view, namespace, id, owner)
    return execution.execution(view, namespace, id, LAST_ATTEMPTS)


def _attempts(
    view: View, namespace: str, id: str, owner: str | None, after: int | None, limit: int, is_ascending: bool
) -> Items[Attempt]:
    check_owner(view, namespace, id, owner)
    return attempt.attempts_page(view, namespace, id, after, limit, is_ascending=is_ascending)


async def _listed(call: Call, query: Paged, filters: Criteria, members: Sequence[str], of: str | None = None) -> Answer:
    at = listing.position(call, query, _is_id)
    where = Where(after=at.key[0] if at.key else None, is_ascending=(query.order == "asc") != at.is_back)
    found, items = await call.read(_page, call.namespace, filters, where, query.limit, members, of)
    reached = None if found.reached is None else [found.reached]
    keys = [[id] for id in found.keys]
    return listing.page_of(call, query, items, keys, has_more=found.has_more, scanned_to=reached)


def _page(
    view: View, namespace: str, filters: Criteria, where: Where, limit: int, members: Sequence[str], of: str | None
) -> tuple[Found[str], list[ExecutionItem]]:
    if of is not None:
        reader.status(view, namespace, of)  # Raises if there is no such execution.
    found = execution_reader.page(view, namespace, filters, where, limit, Budget())
    return _with_items(view, namespace, found, found.keys, members)


async def _by_rank(call: Call, query: ExecutionsQuery, members: Sequence[str]) -> Answer:
    if query.status != (Status.QUEUED,) or len(query.queue) != 1:
        words = "order=rank needs status=queued and one queue"
        raise bad_parameter("order", words)
    at = listing.position(call, query, _is_rank)
    found, items = await call.read(_page_by_rank, call.namespace, wanted(query), at, query.limit, members)
    reached = None if found.reached is None else [str(found.reached[0]), found.reached[1]]
    keys = [[str(rank), id] for rank, id in found.keys]
    return listing.page_of(call, query, items, keys, has_more=found.has_more, scanned_to=reached)


def _page_by_rank(
    view: View, namespace: str, filters: Criteria, at: Position, limit: int, members: Sequence[str]
) -> tuple[Found[RankKey], list[ExecutionItem]]:
    after = None if at.key is None else (int(at.key[0]), at.key[1])
    found = execution_reader.page_by_rank(
        view, namespace, filters.queue[0], filters, after, limit, Budget(), back=at.is_back
    )
    return _with_items(view, namespace, found, [id for _, id in found.keys], members)


def _with_items(
    view: View, namespace: str, found: Found[K], ids: Sequence[str], members: Sequence[str]
) -> tuple[Found[K], list[ExecutionItem]]:
    """The items of a page. A page with large arguments or results ends early, and the next one continues there."""
    items, count = execution_list.items_within(view, namespace, ids, members, MOST_BYTES)
    if count < len(ids):
        found = msgspec.structs.replace(found, keys=found.keys[:count], reached=None, has_more=True)
    return found, items


def _members(fields: str | None) -> Sequence[str]:
    return SUMMARY if fields is None else [ENCODED[name] for name in listing.names(ExecutionItem, fields)]


def _is_id(key: list[str]) -> bool:
    return len(key) == 1 and is_id(key[0])


def _is_fence(key: list[str]) -> bool:
    return len(key) == 1 and _is_number(key[0]) and 0 <= int(key[0]) <= reader.LAST_FENCE


def _is_rank(key: list[str]) -> bool:
    return len(key) == 2 and _is_number(key[0]) and is_id(key[1])


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit() and len(text) <= DIGITS
