"""Approvals: the questions that steps of runs ask, and the answers to them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from rota.api import listing
from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.problem import Problem, bad_parameter
from rota.api.query import Page
from rota.api.route import NoQuery, route
from rota.domain import access
from rota.domain.access import Grant, Scope
from rota.domain.instant import rfc3339
from rota.ids import FIRST_ID, LAST_ID, is_id
from rota.ops.runs import approvals as answering
from rota.ops.runs.approvals import AlreadyDecided
from rota.store.approval_reader import ApprovalFilter
from rota.store.port import Tx
from rota.views import approval as views
from rota.views.approval import Approval


class ApprovalQuery(Page, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """`run` is the id of a run."""

    status: Annotated[str, msgspec.Meta(pattern=f"^({'|'.join(views.STATUSES)})$")] | None = None
    run: str | None = None


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What to say with the answer."""

    note: Annotated[str, msgspec.Meta(max_length=1000)] = ""


_ANSWER_CODES = ("already_decided", "not_asked", "conflict")


@route("GET /approvals", Scope.READ, answer=listing.of(Approval))
async def approvals(call: Call, query: ApprovalQuery) -> Answer:
    """Approvals, open and decided ones, newest first."""
    if query.run is not None and not is_id(query.run):
        words = "run: it must be the id of a run"
        raise bad_parameter("run", words)
    at = listing.position(call, query)
    is_ascending = (query.order == "asc") != at.is_back
    wanted = ApprovalFilter(
        status=query.status,
        run=query.run,
        before=at.key[0] if at.key else FIRST_ID if is_ascending else LAST_ID,
        is_ascending=is_ascending,
        limit=query.limit,
    )
    found = await call.read(views.approvals, call.namespace, wanted)
    scanned_to = None if found.scanned_to is None else [found.scanned_to]
    return listing.page(
        call,
        query,
        Approval,
        found.items,
        lambda one: [one.approval_id],
        has_more=found.has_more,
        scanned_to=scanned_to,
    )


@route(
    "POST /approvals/{approval}/approve",
    Scope.OPERATE,
    answer=Approval,
    example={"note": "checked on staging"},
    codes=_ANSWER_CODES,
)
async def approve(call: Call, query: NoQuery, body: Given | None) -> Answer:
    """Approves. The first answer wins."""
    return await _answer(call, body, approved=True)


@route(
    "POST /approvals/{approval}/reject",
    Scope.OPERATE,
    answer=Approval,
    example={"note": "not before Monday"},
    codes=_ANSWER_CODES,
)
async def reject(call: Call, query: NoQuery, body: Given | None) -> Answer:
    """Rejects. The first answer wins."""
    return await _answer(call, body, approved=False)


async def _answer(call: Call, body: Given | None, *, approved: bool) -> Answer:
    id = call.path["approval"]
    given = answering.Answer(approved, call.actor, body.note if body else "")

    def show(tx: Tx, _: None) -> Answer:
        return shown(views.approval(tx, call.namespace, id))

    try:
        return await call.act(show, answering.answer_one, call.namespace, id, given, names_of(call.grant))
    except AlreadyDecided as decided:
        decision = decided.decision
        existing = {
            "status": views.APPROVED if decision.approved else views.REJECTED,
            "decidedBy": decision.by,
            "decidedAt": rfc3339(decided.at),
            "note": decision.note,
            "timedOut": decision.timed_out,
        }
        raise Problem("already_decided", str(decided), existing=existing) from None


def names_of(grant: Grant) -> frozenset[str] | None:
    """The names by which an approval may ask for this caller; None for the caller of a server without tokens."""
    if grant == access.LOCAL:
        return None
    role = () if grant.role is None else (grant.role.value,)
    return frozenset({grant.actor, grant.actor.partition(":")[2], *role, *grant.groups})
