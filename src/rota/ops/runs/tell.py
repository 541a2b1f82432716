"""Stopping a run: by a cancel, by its timeout, or because a step failed.

A run stops in two transactions. The first one, of `advance_runs`, locks the run and records why it stops: from then on
no step starts except those with the rule `always`. The others follow at once, as a chore of any supervisor:
`tell_steps` cancels the steps that have not started and asks the running ones to stop. It cannot be one transaction,
because a finish locks the row of a step before its run, and a stop would lock them the other way round.
"""

from __future__ import annotations

from rota.domain.status import Reason, Status
from rota.domain.workflow import letters as alphabet
from rota.ops import end_from_outside
from rota.ops.runs import maps
from rota.ops.runs.run import Run, graph_of
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
    executions, mapped = _open_steps(tx, run)
    if executions:
        reason = Reason(run.stopping or Reason.CANCELLED)
        end_from_outside.end_all(tx, run.namespace, executions, Status.CANCELLED, reason)
    if mapped:
        widths = {number: counts.width for (_, number), counts in maps.tallies(tx, [run.id]).items()}
        stops = [(run.id, number, widths.get(number, 0), widths.get(number, 0), None, None) for number in mapped]
        tx.run("open_maps", rows=stops)
    tx.run("note_told", id=run.id, told=None)
    return True


def _open_steps(tx: Tx, run: Run) -> tuple[list[str], list[int]]:
    """The executions of the open steps that must stop, and the numbers of the maps among them."""
    graph = graph_of(tx, run)
    numbers = [
        number
        for number, step in enumerate(graph.steps)
        if run.letters[number] == alphabet.OPEN and step.rule != "always"
    ]
    maps = [number for number in numbers if graph.steps[number].is_map]
    single = sorted(set(numbers) - set(maps))
    executions = [row[2] for row in tx.rows("steps_of", run=run.id, numbers=single)] if single else []
    return executions, maps
