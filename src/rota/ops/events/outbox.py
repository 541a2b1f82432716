"""Outbox tables: rows that a program has inserted in its own transaction become events.

The rows are read in the order of their ids, and deleted in the transaction that emits them. One node at a time works on
a table.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain import event, payload, unique
from rota.domain.errors import KeyConflict, UsageError
from rota.ids import IdSource
from rota.ops.events.emit import Emission, Source, emit
from rota.store.port import Tx

ACTOR = "outbox"


class OutboxRow(msgspec.Struct, frozen=True, array_like=True):
    """A row as the user wrote it. Texts are hexadecimal digits of their bytes; the payload is JSON."""

    id: int
    name: str
    subject: str | None
    key: str | None
    payload: str | None


class Drained(msgspec.Struct, frozen=True):
    """How many events were emitted, and by id why rows could not be."""

    emitted: int = 0
    refused: dict[int, str] = {}


def drain(
    tx: Tx, namespace: str, table: str, ids: IdSource, most: int, most_bytes: int, left: Sequence[int] = ()
) -> Drained:
    """Emits up to `most` rows. Rows that cannot be an event stay in the table, and so do those that are `left`."""
    rows = tx.records(tx.on_table("outbox_rows", table), OutboxRow, table=table, most=most, left=list(left))
    emissions: dict[int, Emission] = {}
    refused: dict[int, str] = {}
    for row in rows:
        try:
            emissions[row.id] = _emission(row, ids.new(), most_bytes)
        except UsageError as error:
            refused[row.id] = str(error)
    refused |= _emit(tx, namespace, emissions)
    if done := [id for id in emissions if id not in refused]:
        tx.run(tx.on_table("drop_outbox_rows", table), ids=done)
    return Drained(len(done), refused)


def _emit(tx: Tx, namespace: str, emissions: dict[int, Emission]) -> dict[int, str]:
    """Emits these, and returns why some could not be: their key names an event with another payload."""
    try:
        if emissions:
            emit(tx, Source(namespace, ACTOR), list(emissions.values()))
        return {}
    except KeyConflict:  # Nothing was written: keys are looked at first.
        return {id: why for id, one in emissions.items() if (why := _emit_one(tx, namespace, one)) is not None}


def _emit_one(tx: Tx, namespace: str, emission: Emission) -> str | None:
    """Leaves the delivery to upkeep, because a transaction delivers once."""
    try:
        emit(tx, Source(namespace, ACTOR, is_later=True), [emission])
    except KeyConflict as error:
        return str(error)
    return None


def _emission(row: OutboxRow, id: str, most_bytes: int) -> Emission:
    value = None if row.payload is None else payload.decode(bytes.fromhex(row.payload), "the payload")
    text = payload.encode(value, "the payload", most_bytes)
    key = None if row.key is None else unique.check_key(_text(row.key, "the key"), "key")
    digest = "" if key is None else payload.digest(text)
    subject = _text(row.subject, "the subject") if row.subject else None
    return Emission(id, event.check_name(_text(row.name, "the name")), text, event.check_subject(subject), key, digest)


def _text(digits: str, what: str) -> str:
    try:
        return bytes.fromhex(digits).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} is not UTF-8: {error}") from None
