"""Ending steps that wait, because of an answer or an event."""

from __future__ import annotations

from collections.abc import Mapping

from rota.domain.workflow.wait import Ending
from rota.ops.after_end import after_end
from rota.ops.end_record import End
from rota.ops.runs.move_waits import move_waits
from rota.store.port import Tx


def end_waits(tx: Tx, endings: Mapping[str, Ending]) -> list[End]:
    """Ends these executions and advances their runs. Returns the ends, without executions that had ended before.

    To be called once in a transaction, like `after_end`. The caller must hold no lock on a row of `run`: the rows in
    `waiting` are locked first.
    """
    ends = move_waits(tx, endings)
    after_end(tx, ends)
    return ends
