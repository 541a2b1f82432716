"""Steps that wait for an event."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.store.port import Tx


class EventWait(msgspec.Struct, frozen=True, kw_only=True):
    """A step that begins to wait, with the values of earlier steps in it.

    It takes the earliest event since `since` with one of the `names` that fits `subject` and `where` and is not among
    `taken`, which are the events that waits upstream of it took.
    """

    execution: str
    run: str
    namespace: str
    names: tuple[str, ...]
    subject: str | None
    where: dict[str, Any] | None
    since: int
    taken: tuple[str, ...]


def begin_wait(tx: Tx, wait: EventWait) -> dict[str, Any] | None:
    """Subscribes the step. Returns an event that is there already, by which the step ends in this transaction.

    Later events end it by `end_waits` with `wait.happened(event)`. The row of the execution is written after this call,
    in the same transaction.
    """
    return None
