"""Outbox tables: rows that a program has inserted in its own transaction become events.

The rows are read in the order of their ids, and deleted in the transaction that emits them. One supervisor at a time
reads a table.
"""

from __future__ import annotations

import msgspec

from rota.domain import event, payload, unique
from rota.domain.errors import KeyConflict, UsageError
from rota.ids import IdSource
from rota.ops.events.emit import Emission, EmitHeader, emit
from rota.store.port import Tx

ACTOR = "outbox"
LOWEST_ID = -(2**63)


class OutboxRow(msgspec.Struct, frozen=True, array_like=True):
    """A row as the user wrote it. Each text is given as the hexadecimal digits of its bytes; the payload is JSON."""

    id: int
    name: str
    subject: str | None
    key: str | None
    payload: str | None


class Skipped(msgspec.Struct, frozen=True):
    """Rows that are not read, because they were refused before: those of `ids`, and all up to the id `until`."""

    until: int = LOWEST_ID
    ids: tuple[int, ...] = ()


NONE_SKIPPED = Skipped()


class EmittedRows(msgspec.Struct, frozen=True):
    """How many rows were emitted, and by id why rows were refused."""

    emitted: int = 0
    refused: dict[int, str] = {}


def emit_rows(
    tx: Tx, namespace: str, table: str, ids: IdSource, most: int, most_bytes: int, skipped: Skipped = NONE_SKIPPED
) -> EmittedRows:
    """Emits up to `most` rows and deletes them. Rows that cannot become an event are refused and stay in the table."""
    wanted = {"table": table, "most": most, "after": skipped.until, "skipped": list(skipped.ids)}
    rows = tx.records(tx.on_table("outbox_rows", table), OutboxRow, **wanted)
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
    return EmittedRows(len(done), refused)


def _emit(tx: Tx, namespace: str, emissions: dict[int, Emission]) -> dict[int, str]:
    """Emits these rows. Returns by id why a row was refused: its key belongs to an event with another payload."""
    try:
        if emissions:
            emit(tx, EmitHeader(namespace, ACTOR), list(emissions.values()))
        return {}
    except KeyConflict:  # Nothing was written: an emit resolves all keys before its first write.
        return {id: why for id, one in emissions.items() if (why := _emit_one(tx, namespace, one)) is not None}


def _emit_one(tx: Tx, namespace: str, emission: Emission) -> str | None:
    """Emits one row, or returns why it is refused. Upkeep delivers it, because a transaction delivers only once."""
    try:
        emit(tx, EmitHeader(namespace, ACTOR, delivers_later=True), [emission])
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
