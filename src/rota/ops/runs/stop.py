"""Stopping a run: by a cancel, by its timeout, or because a step failed.

A run stops in two transactions. The first one, `stop`, locks the run and records why it stops: from then on no step
starts except those with the rule `always`. The others follow at once, as a chore of any supervisor: `tell_steps`
cancels the steps that have not started and asks the running ones to stop. It cannot be one transaction, because a
finish locks the row of a step before its run, and a stop would lock them the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence

from rota.domain.status import Reason
from rota.domain.workflow import letters as alphabet
from rota.ops.end_record import End
from rota.ops.runs.advance import advance_runs
from rota.ops.runs.run import Run, graph_of
from rota.store.port import Tx


def stop(tx: Tx, ids: Sequence[str], reason: Reason) -> list[End]:
    """Stops open runs and returns those that have ended by that. A run that is stopping already keeps its reason."""
    return advance_runs(tx, [], dict.fromkeys(ids, reason))


def open_steps(tx: Tx, run: Run) -> tuple[list[str], list[int]]:
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
