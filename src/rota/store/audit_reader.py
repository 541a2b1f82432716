"""Reads the audit trail."""

from __future__ import annotations

import msgspec

from rota.store.port import View

LAST = 2**62


class AuditRow(msgspec.Struct, frozen=True, array_like=True):
    """One change; `before` and `after` are JSON."""

    id: int
    at: int
    actor: str
    action: str
    subject: str
    before: str | None
    after: str | None
    address: str | None
    request: str | None


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which changes to list: after the id `position` in the order of the list. The action
    `queue` finds `queue.pause` and the like."""

    actor: str | None = None
    action: str | None = None
    subject: str | None = None
    since: int = 0
    until: int = LAST
    position: int | None = None
    is_ascending: bool = False
    limit: int = 50


def entries(view: View, namespace: str, wanted: AuditFilter) -> list[AuditRow]:
    about = {name: getattr(wanted, name) for name in ("actor", "action", "subject", "since", "until")}
    name = "audit_listed_asc" if wanted.is_ascending else "audit_listed"
    start = (0 if wanted.is_ascending else LAST) if wanted.position is None else wanted.position
    return view.records(name, AuditRow, namespace=namespace, position=start, most=wanted.limit, **about)
