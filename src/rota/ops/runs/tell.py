"""The chore behind a stop: cancels the open steps of a stopping run."""

from __future__ import annotations

from rota.domain.status import Reason, Status
from rota.ops import end_from_outside
from rota.ops.runs import maps
from rota.ops.runs.run import Run
from rota.ops.runs.stop import open_steps
from rota.store.port import Tx


def tell_steps(tx: Tx) -> bool:
    """Asks the open steps of one stopping run to stop. False if there is no such run.

    The row of the run is not locked: a step that ends meanwhile is left alone, and no further step of a stopping run
    starts. The expander stops the items of maps.
    """
    found = tx.one("next_untold_run")
    if found is None:
        return False
    runs = tx.records("runs_open", Run, ids=[found[0]])
    if not runs:  # It has ended since.
        return True
    run = runs[0]
    executions, mapped = open_steps(tx, run)
    if executions:
        reason = Reason(run.stopping or Reason.CANCELLED)
        end_from_outside.end_all(tx, run.namespace, executions, Status.CANCELLED, reason)
    if mapped:
        widths = {number: counts.width for (_, number), counts in maps.tallies(tx, [run.id]).items()}
        stops = [(run.id, number, widths.get(number, 0), widths.get(number, 0), None, None) for number in mapped]
        tx.run("open_maps", rows=stops)
    tx.run("note_told", id=run.id, told=None)
    return True
