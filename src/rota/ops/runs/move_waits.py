"""Moves steps that wait to `finished`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from rota.domain.workflow.wait import Ending
from rota.ops.end_record import End
from rota.store.port import Tx


class _Waiting(msgspec.Struct, frozen=True, array_like=True):
    id: str
    run: str | None


def move_waits(tx: Tx, endings: Mapping[str, Ending]) -> list[End]:
    """Ends those of these executions that still wait. The caller passes the returned ends to `after_end`.

    The row in `waiting` is the lock: of two transactions that end the same wait, the second finds no row.
    """
    rows = tx.records("lock_waits", _Waiting, ids=sorted(endings))
    if rows:
        tx.run("end_waits", ends=[_columns(row.id, endings[row.id]) for row in rows], ids=[row.id for row in rows])
    return [End(row.id, endings[row.id].status, endings[row.id].reason, run=row.run) for row in rows]


def _columns(id: str, ending: Ending) -> tuple[str, str, str, str | None, str | None]:
    error = None if ending.error is None else msgspec.json.encode(ending.error).decode()
    return id, ending.status.value, ending.reason.value, ending.result, error
