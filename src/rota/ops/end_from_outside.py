"""Ending an execution from outside an attempt: cancelled, replaced, skipped."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rota.domain.errors import UnknownExecution
from rota.domain.lifecycle import Held
from rota.domain.status import PENDING, Reason, Status
from rota.ops.after_end import after_end
from rota.ops.end_record import End
from rota.store import reader
from rota.store.hints import CancelAsked
from rota.store.port import Tx


class Pending(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An execution that is not running: its row in `scheduled`, `waiting` or `ready`."""

    id: str
    lane: int
    fence: int
    attempts: int
    crashes: int
    first_start_at: int | None
    run: str | None
    place: Status
    """Which table it is in: scheduled, waiting or queued."""
    due_at: int | None


class CurrentStatus(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The current status of an execution, and the worker and cancel request if it runs."""

    id: str
    status: Status
    worker: int | None
    cancel_at: int | None
    deadline: int | None


MOST_LOOKS = 20


def end(tx: Tx, namespace: str, id: str, status: Status, reason: Reason) -> Status:
    """Ends a pending execution with `status`, or asks a running one to stop for `reason`."""
    found = end_all(tx, namespace, [reader.known(id)], status, reason)
    if not found:
        raise UnknownExecution(f"there is no execution {id}")
    return next(iter(found.values()))


def end_all(
    tx: Tx, namespace: str, ids: Iterable[str], status: Status, reason: Reason, known: list[CurrentStatus] | None = None
) -> dict[str, Status]:
    """`end` for many. Returns the resulting status of each execution that exists.

    `known` are the current statuses of all of `ids`, if this transaction has read them already.

    An execution may move to another table between the read and the lock: then it is read again.
    """
    led_to: dict[str, Status] = {}
    left = set(ids)
    ends: list[End] = []
    stops: dict[str, Reason] = {}
    for _ in range(MOST_LOOKS):
        found = current_statuses(tx, namespace, left) if known is None else known
        known = None
        led_to.update((row.id, row.status) for row in found)
        pending = [row.id for row in found if row.status in PENDING]
        running = [row.id for row in found if row.status is Status.RUNNING and row.cancel_at is None and row.worker]
        runs = [row.id for row in found if row.status is Status.RUNNING and row.worker is None]
        now = move_pending(tx, pending, status, reason)
        ends += now
        ended = {end.id for end in now}
        stops.update(dict.fromkeys(runs, Reason.REPLACED if reason is Reason.REPLACED else Reason.CANCELLED))
        left = {*pending, *running} - ended - (_ask_cancel(tx, running, reason) if running else set())
        if not left:
            break
    # Last, when all state rows are locked: every transaction that ends a step locks the step's row before its run.
    led_to.update((end.id, end.status) for end in [*ends, *after_end(tx, ends, stops)] if end.id in led_to)
    return led_to


def end_pending(tx: Tx, ids: list[str], status: Status, reason: Reason) -> list[End]:
    """Ends those of `ids` that are pending, and returns their ends."""
    ends = move_pending(tx, ids, status, reason)
    after_end(tx, ends)
    return ends


def move_pending(tx: Tx, ids: list[str], status: Status, reason: Reason) -> list[End]:
    """`end_pending` without `after_end`. The end has a fence of its own, higher than that of every start."""
    rows = tx.records("pending", Pending, ids=ids) if ids else []
    if rows:
        ends = [(row.id, row.fence + 1, row.attempts, row.crashes) for row in rows]
        tx.run("end_pending", rows=ends, status=status.value, reason=reason.value, **by_place(rows))
    return [End(row.id, status, reason, run=row.run) for row in rows]


def by_place(rows: Iterable[Pending]) -> dict[str, list[str]]:
    """The ids of pending executions by the table that they are in, as parameters of a statement."""
    places: dict[str, list[str]] = {Status.SCHEDULED: [], Status.WAITING: [], Status.QUEUED: []}
    for row in rows:
        places[row.place].append(row.id)
    return places


def current_statuses(tx: Tx, namespace: str, ids: Iterable[str]) -> list[CurrentStatus]:
    return tx.records("current_statuses", CurrentStatus, namespace=namespace, ids=sorted(ids))


def _ask_cancel(tx: Tx, ids: list[str], reason: Reason) -> set[str]:
    """Returns those that are running, and so have been asked to stop."""
    held = tx.records("held", Held, ids=ids)
    if held:
        tx.run("ask_cancel", ids=[row.id for row in held], reason=reason.value)
    for worker in sorted({row.worker for row in held if row.cancel_at is None}):
        tx.tell(CancelAsked(worker))
    return {row.id for row in held}
