"""Callbacks: at the end of an execution that has one, an execution of Rota's own job calls its URL.

The call is placed in the transaction that ends the execution, so it is as durable as the end. It is retried, and it
becomes a dead letter if it fails for good. The ended execution is the parent of the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from rota import ids
from rota.domain import callback, retry
from rota.domain.instant import MICROSECONDS, moment
from rota.domain.job import Definition
from rota.domain.served import REQUESTS
from rota.domain.status import Reason, Status
from rota.ops import define
from rota.ops.end_record import End
from rota.ops.place import Batch, Origin, Route, find_route, place
from rota.store.port import Tx

ACTOR = "callback"
QUEUE = "_callbacks"
KNOWN_S = 1.0
"""The absence of open callbacks is cached this long. `call_forgotten` finds those that were opened since."""
FORGOTTEN_S = 600.0
"""`call_forgotten` ignores older executions: a callback is missed only if it was opened within `KNOWN_S` of the end."""
MOST = 500
RETRY = retry.Exponential(attempts=10, base=5.0, factor=3.0, cap=3600.0)
TIMEOUT_S = 30.0


class Told(msgspec.Struct, frozen=True, rename="camel"):
    """The body of a callback. It has no result, which may be large: the receiver reads the result by the id."""

    execution_id: str
    status: Status
    reason: str
    job: str
    app: str
    namespace: str
    completed_at: datetime


class _Asked(msgspec.Struct, frozen=True, array_like=True):
    """An ended execution with a callback that was not called yet."""

    id: str
    namespace: str
    app: str
    job: str
    callback: str


def definition(namespace: str) -> Definition:
    """The job that calls back. It signs with the key of the namespace, so each namespace has its own."""
    return Definition(
        name=callback.JOB,
        queue=QUEUE,
        retry=RETRY.describe(),
        timeout_s=TIMEOUT_S,
        parameters={
            "url": {"type": "str", "required": True},
            "told": {"type": "any", "required": True},
        },
        description="calls the URL that an execution names for its end",
        target={"kind": "http", "callback_of": namespace},
    )


def prepare(tx: Tx, namespace: str) -> None:
    """Adds the job to a namespace, before its first execution with a callback is accepted.

    Every worker that runs HTTP jobs from their definitions runs it.
    """
    about = definition(namespace)
    new = define.add(tx, namespace, callback.APP, [about], [], REQUESTS)
    define.point(tx, namespace, callback.APP, new)
    tx.run("set_runs", namespace=namespace, app=callback.APP, job=about.name, runs=REQUESTS)


def call_back(tx: Tx, ends: Sequence[End]) -> None:
    """A consequence of ends."""
    if tx.recent("open_callbacks", KNOWN_S)[0]:
        found = {end.id: (end.status, end.reason) for end in ends if not end.is_repeated}
        if found:
            _call(tx, found)


def call_forgotten(tx: Tx) -> int:
    """Calls for executions that ended while their callback was not known yet. Returns how many there were."""
    after = ids.first_at(tx.now - round(FORGOTTEN_S * MICROSECONDS))
    rows = tx.rows("forgotten_callbacks", after=after, most=MOST)
    if rows:
        _call(tx, {id: (Status(status), Reason(reason)) for id, status, reason in rows})
    return len(rows)


def _call(tx: Tx, ended: dict[str, tuple[Status, Reason]]) -> None:
    asked = tx.records("asked_callbacks", _Asked, ids=list(ended), lowest=min(ended), highest=max(ended))
    if not asked:
        return
    tx.run("close_callbacks", ids=[one.id for one in asked])
    batches = []
    for one in asked:
        wanted = callback.decode(one.callback)
        status, reason = ended[one.id]
        if status in wanted.on and (route := _route(tx, one.namespace)) is not None:
            told = Told(one.id, status, reason.value, one.job, one.app, one.namespace, moment(tx.now))
            arguments = msgspec.json.encode({"url": wanted.url, "told": told}).decode()
            # An execution ends once, so this id is made once.
            items = {ids.named(tx.now, f"callback {one.id}"): arguments}
            batches.append(Batch(items, route, Origin(actor=ACTOR, parent=one.id), 0, tx.now))
    place(tx, batches)


def _route(tx: Tx, namespace: str) -> Route | None:
    found = find_route(tx, namespace, callback.APP, callback.JOB, QUEUE)
    if found is None:
        prepare(tx, namespace)
        found = find_route(tx, namespace, callback.APP, callback.JOB, QUEUE)
    return found
