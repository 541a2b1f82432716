"""The audit trail of a namespace."""

from __future__ import annotations

from datetime import datetime

from rota.api import listing
from rota.api.answer import Answer
from rota.api.call import Call
from rota.api.query import Page
from rota.api.route import route
from rota.domain.access import Scope
from rota.domain.instant import instant
from rota.store.audit_reader import LAST, AuditFilter
from rota.views import audit as views
from rota.views.audit import AuditEntry


class AuditQuery(Page, frozen=True, kw_only=True, rename={"from_": "from"}):
    """`action` is a whole action or its noun: `queue` finds `queue.pause`. `from` and `to` are half-open."""

    actor: str | None = None
    action: str | None = None
    """The start of the name of the action, such as `job`."""
    subject: str | None = None
    from_: datetime | None = None
    to: datetime | None = None


@route("GET /audit", Scope.ADMIN, answer=listing.of(AuditEntry))
async def list_entries(call: Call, query: AuditQuery) -> Answer:
    """Who changed what, newest first."""
    at = listing.position(call, query)
    wanted = AuditFilter(
        actor=query.actor,
        action=query.action,
        subject=query.subject,
        since=0 if query.from_ is None else instant(query.from_),
        until=LAST if query.to is None else instant(query.to),
        position=listing.number(at),
        is_ascending=(query.order == "asc") != at.is_back,
        limit=query.limit,
    )
    found = await call.read(views.entries, call.namespace, wanted)
    return listing.page(call, query, AuditEntry, found.items, lambda one: [one.audit_id], has_more=found.has_more)
