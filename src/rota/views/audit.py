"""The audit trail: who changed what, when, and from where."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from rota.store import audit_reader
from rota.store.audit_reader import AuditFilter
from rota.store.port import View
from rota.views.shape import Page, Shape, page, shaped
from rota.views.stored_json import decoded


class AuditEntry(Shape, frozen=True):
    """One change. `before` and `after` are as far as they are known, without secrets."""

    audit_id: str
    """The id of the entry."""
    at: datetime
    """When it was done."""
    actor: str
    action: str
    """What was done, such as `job.create`."""
    subject: str
    before: Any
    after: Any
    address: str | None
    """The address that the request came from; null if it is not known."""
    request_id: str | None


def entries(view: View, namespace: str, wanted: AuditFilter) -> Page[AuditEntry]:
    """The newest first, unless the filter says otherwise."""
    one_more = msgspec.structs.replace(wanted, limit=wanted.limit + 1)
    rows = audit_reader.entries(view, namespace, one_more)
    return page(
        [
            shaped(
                AuditEntry,
                row,
                audit_id=str(row.id),
                before=decoded(row.before),
                after=decoded(row.after),
                request_id=row.request,
            )
            for row in rows
        ],
        wanted.limit,
    )
