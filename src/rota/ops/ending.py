"""Ending an execution from outside an attempt: cancelled, replaced, skipped."""

from __future__ import annotations

import msgspec

from rota.domain.errors import UnknownExecution
from rota.domain.status import TERMINAL, Reason, Status
from rota.ops import following
from rota.store import reader
from rota.store.hints import CancelAsked
from rota.store.port import Tx


class Pending(msgspec.Struct, frozen=True, array_like=True):
    """An execution that is not running now, and what it carries."""

    id: str
    lane: int
    fence: int
    attempts: int
    crashes: int
    first_start_at: int | None


MOST_LOOKS = 20


def end(tx: Tx, namespace: str, id: str, status: Status, reason: Reason) -> Status:
    """Ends a pending execution with `status`, or asks a running one to stop for `reason`.

    It may move between the look and the lock: then look again. It cannot move for ever, since each move is a step
    towards its end or waits for time to pass.
    """
    current = Status.RUNNING
    for _ in range(MOST_LOOKS):
        found = tx.one("status_of", id=reader.known(id), namespace=namespace)
        if found is None:
            raise UnknownExecution(f"there is no execution {id}")
        current, worker, cancel_at = Status(found[0]), found[1], found[2]
        if current in TERMINAL or cancel_at is not None:
            break
        if current is not Status.RUNNING:
            if end_pending(tx, [id], status, reason):
                return status
        elif tx.run("ask_cancel", id=id, reason=reason.value):
            tx.tell(CancelAsked(worker))
            break
    return current


def end_pending(tx: Tx, ids: list[str], status: Status, reason: Reason) -> list[Pending]:
    """Ends those of `ids` that are pending. The end takes a fence of its own, above every start there was."""
    rows = tx.records("pending", Pending, ids=ids)
    if rows:
        ends = [(row.id, row.fence + 1, row.attempts, row.crashes) for row in rows]
        tx.run("end_pending", rows=ends, ids=[row.id for row in rows], status=status.value, reason=reason.value)
        following.ended(tx, [row.id for row in rows])
    return rows
