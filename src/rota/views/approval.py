"""An approval: a question that a step of a run asks, and the answer to it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from rota.domain.workflow.wait import Approve, Decision
from rota.store import approval_reader, run_reader
from rota.store.approval_reader import ApprovalFilter, ApprovalRow
from rota.store.port import View
from rota.views.run import run_graph
from rota.views.shape import Page, Shape, page, shaped
from rota.views.wait import question

OPEN, APPROVED, REJECTED, ENDED = "open", "approved", "rejected", "ended"
STATUSES = (OPEN, APPROVED, REJECTED, ENDED)
MOST_LOOKED_AT = 20_000
"""How many rows a page reads."""
CHUNK = 1000
_approve = msgspec.json.Decoder(Approve).decode
_decision = msgspec.json.Decoder(Decision).decode


class Approval(Shape, frozen=True):
    """`approval_id` is the id of the execution of the step. An approval that is `ended` has no answer: it was cancelled
    or failed because no answer came. `timed_out`: the answer is that of `on_timeout`. An empty `who` means everyone.
    """

    approval_id: str
    """The id of the execution of the step."""
    status: str
    """`open`, `approved`, `rejected`, or `ended` without an answer."""
    run_id: str
    workflow: str | None
    app: str
    step: str | None
    text: str
    """The question."""
    who: list[str]
    """The names, groups or roles of those who may answer; empty for everyone."""
    required: bool
    """Whether a rejection fails the run."""
    created_at: datetime
    timeout_at: datetime | None
    """When it ends without an answer; null for never."""
    on_timeout: str
    """What happens without an answer in time: `reject`, `approve` or `fail`."""
    decided_at: datetime | None
    """When it was answered or ended; null before that."""
    decided_by: str | None
    """The caller that answered; null without an answer."""
    note: str | None
    """What the caller said with the answer; null without an answer."""
    timed_out: bool
    """Whether the answer is that of `onTimeout`."""


def approvals(view: View, namespace: str, wanted: ApprovalFilter) -> Page[Approval]:
    """Newest first, unless the filter says otherwise. A page reads at most `MOST_LOOKED_AT` rows."""
    if wanted.status == OPEN:
        rows = approval_reader.open_page(view, namespace, wanted, wanted.limit + 1)
        return page(_shown(view, namespace, rows), wanted.limit)
    found: list[ApprovalRow] = []
    before, looked_at = wanted.before, 0
    while len(found) <= wanted.limit:
        if looked_at >= MOST_LOOKED_AT:
            return page(_shown(view, namespace, found), wanted.limit, before)
        rows = approval_reader.page(view, namespace, wanted, before, CHUNK)
        found += [row for row in rows if _fits(row, wanted)]
        looked_at += len(rows)
        if len(rows) < CHUNK:
            break
        before = rows[-1].id
    return page(_shown(view, namespace, found[: wanted.limit + 1]), wanted.limit)


def approval(view: View, namespace: str, id: str) -> Approval:
    return _shown(view, namespace, [approval_reader.approval(view, namespace, id)])[0]


def _fits(row: ApprovalRow, wanted: ApprovalFilter) -> bool:
    return wanted.run in (None, row.run) and wanted.status in (None, _status(row))


def _status(row: ApprovalRow) -> str:
    if row.status is None:
        return OPEN
    if row.result is None:
        return ENDED
    return APPROVED if _decision(row.result).approved else REJECTED


def _shown(view: View, namespace: str, rows: Sequence[ApprovalRow]) -> list[Approval]:
    runs = {run.id: run for run in run_reader.runs(view, namespace, sorted({row.run for row in rows}))} if rows else {}
    found = []
    for row in rows:
        wait = _approve(row.arguments)
        decision = None if row.result is None else _decision(row.result)
        run = runs.get(row.run)
        graph = None if run is None else run_graph(view, run)
        found.append(
            shaped(
                Approval,
                row,
                approval_id=row.id,
                status=_status(row),
                run_id=row.run,
                workflow=None if run is None else run.job,
                step=None if graph is None else graph.steps[row.step].id,
                text=question(row.arguments),
                who=list(wait.who),
                required=wait.required,
                timeout_at=row.deadline,
                on_timeout=wait.on_timeout,
                decided_at=row.finished_at,
                decided_by=decision.by if decision else None,
                note=decision.note if decision else None,
                timed_out=decision is not None and decision.timed_out,
            )
        )
    return found
