"""Reads approvals: the executions of steps that wait for an answer, or have waited for one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain.status import Status
from rota.domain.workflow import wait
from rota.ids import LAST_ID, is_id
from rota.store import reader
from rota.store.port import View


class ApprovalRow(msgspec.Struct, frozen=True, array_like=True):
    """`status` and what follows are None as long as the answer is open."""

    id: str
    app: str
    run: str
    step: int
    arguments: str
    created_at: int
    deadline: int | None
    status: Status | None
    result: str | None
    finished_at: int | None


class ApprovalFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which approvals to list. `status` is `open`, `approved`, `rejected` or `ended`."""

    status: str | None = None
    run: str | None = None
    before: str = LAST_ID
    is_ascending: bool = False
    limit: int = 50


def page(view: View, namespace: str, wanted: ApprovalFilter, before: str, most: int) -> list[ApprovalRow]:
    """The next approvals, open or ended."""
    name = "page_of_approvals_asc" if wanted.is_ascending else "page_of_approvals"
    rows = view.rows(name, namespace=namespace, job=wait.APPROVAL_JOB, before=reader.position(before), most=most)
    return _in_order(approvals(view, namespace, [row[0] for row in rows]), wanted)


def open_page(view: View, namespace: str, wanted: ApprovalFilter, most: int) -> list[ApprovalRow]:
    """Those that wait for an answer."""
    name = "page_of_open_approvals_asc" if wanted.is_ascending else "page_of_open_approvals"
    before = reader.position(wanted.before)
    rows = view.rows(name, namespace=namespace, run=wanted.run, before=before, most=most)
    return _in_order(approvals(view, namespace, [row[0] for row in rows]), wanted)


def approval(view: View, namespace: str, id: str) -> ApprovalRow:
    found = approvals(view, namespace, [id]) if is_id(id) else []
    if not found:
        raise reader.unknown(id)
    return found[0]


def approvals(view: View, namespace: str, ids: Sequence[str]) -> list[ApprovalRow]:
    return view.records("approvals", ApprovalRow, namespace=namespace, ids=list(ids), job=wait.APPROVAL_JOB)


def _in_order(rows: list[ApprovalRow], wanted: ApprovalFilter) -> list[ApprovalRow]:
    return sorted(rows, key=lambda row: row.id, reverse=not wanted.is_ascending)
