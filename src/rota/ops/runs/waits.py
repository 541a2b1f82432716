"""Ending steps that wait, from outside: an answer, an event, or a time that is over."""

from __future__ import annotations

from collections.abc import Mapping

from rota.domain.workflow.wait import Ending
from rota.ops.after_end import after_end
from rota.ops.end import End
from rota.ops.runs.wait_end import move_waits
from rota.store.port import Tx


def end_waits(tx: Tx, endings: Mapping[str, Ending]) -> list[End]:
    """Ends these executions, and advances their runs. Returns the ends; one that had ended already is left out.

    To be called once in a transaction, like `after_end`. The caller holds no row of `run`: the rows of the waits are
    locked first.
    """
    ends = move_waits(tx, endings)
    after_end(tx, ends)
    return ends
