"""Emitting the events of a request with an Idempotency-Key: item n of the request has the key K/n.

The keys of the items are written in the transaction of the events. A request that is sent again, as a whole or in other
chunks, emits what is missing, and nothing twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain.errors import KeyReused
from rota.ops.events.emit import Emission, EmitHeader, emit
from rota.ops.request_keys import RequestKey
from rota.ops.submission import Accepted
from rota.store.port import Tx

STATUS = 201


class Numbered(msgspec.Struct, frozen=True, gc=False):
    """One event of a request: its number in the request, and the hash of its text (`digest`)."""

    number: int
    digest: str
    emission: Emission


class _Known(msgspec.Struct, frozen=True, array_like=True):
    """A key that is taken. Its status is 0 until the transaction that took it has emitted the event."""

    key: str
    digest: str
    status: int
    answer: str


def emit_once(tx: Tx, header: EmitHeader, request: RequestKey, items: Sequence[Numbered]) -> list[Accepted]:
    """Emits the events whose keys are new, all or none. The others are answered as they were before."""
    named = {name: getattr(request, name) for name in ("namespace", "actor", "route")}
    keys = {f"{request.key}/{item.number}": item for item in items}
    # In the order of the keys, to avoid a deadlock with the same request on another server.
    tx.run("take_request_keys", **named, rows=sorted((key, item.digest) for key, item in keys.items()))
    taken = {row.key: row for row in tx.records("request_keys", _Known, **named, keys=sorted(keys))}
    before = {key: row for key, row in taken.items() if row.status}
    for key, row in before.items():
        if row.digest != keys[key].digest:
            raise KeyReused(
                f"the Idempotency-Key {request.key!r} was used for a request whose item {keys[key].number} was another "
                "one: choose a new key"
            )
    new = {key: item for key, item in keys.items() if key not in before}
    made = dict(zip(new, emit(tx, header, [item.emission for item in new.values()]), strict=True)) if new else {}
    answers = [(key, f"{one.id} {int(one.created)}") for key, one in made.items()]
    if answers:
        tx.run("answer_request_keys", **named, status=STATUS, rows=answers)
    return [made[key] if key in made else _answered(before[key]) for key in keys]


def _answered(row: _Known) -> Accepted:
    id, _, created = row.answer.partition(" ")
    return Accepted(id, created == "1")
