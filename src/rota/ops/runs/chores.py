"""The chores of runs, which any supervisor does: one step of work at a time."""

from __future__ import annotations

import logging

from rota.ops.runs.expand import LOOK_S, expand
from rota.ops.runs.sweep import sweep
from rota.ops.runs.tell import tell_steps
from rota.store.port import Tx

log = logging.getLogger("rota.engine")


def work_on_runs(tx: Tx, look_s: float = LOOK_S) -> bool:
    """Asks the open steps of one stopping run to stop, or works on one map. False if neither was needed."""
    if repaired := sweep(tx):
        log.error("repaired runs that had not advanced; please report this: %s", ", ".join(repaired))
    return bool(repaired) or tell_steps(tx) or expand(tx, look_s)
