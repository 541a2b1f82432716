"""The undo of a run: a second run, whose steps undo the steps of the first.

A run that must be undone does not end when its last step ends. The transaction that ends its last step places an
execution of the same workflow, the undo, and writes its id into the row of the run. From then on the run is undoing. A
claim opens the undo like every run, but with the graph that `domain/workflow/undo.py` derives. When the undo ends, the
undone run ends in the same transaction.

The undo of a sub-run is a step of the undo of the run above. Its execution opens as the undo of the sub-run.
"""

from __future__ import annotations

import msgspec

from rota import ids
from rota.domain.outcome import Error, Failed
from rota.domain.status import Reason, Status
from rota.domain.workflow import undo
from rota.domain.workflow.graph import Graph
from rota.ops.place import Batch, Origin, StepOf
from rota.ops.runs.items import items_to_undo
from rota.ops.runs.run import Run, encode_pinned, pinned, pinned_graph
from rota.ops.runs.start import Started
from rota.store.port import Tx, View


class _Undone(msgspec.Struct, frozen=True, array_like=True):
    """A run that is to be undone: an open run, or a sub-run that has ended."""

    id: str
    version: int
    graph: str
    pinned: str
    letters: str


def begin_undo(tx: Tx, started: Started, run: Run, graph: Graph, letters: str, end: Status) -> str | None:
    """Places the undo of a run whose steps have all ended, and returns its id; None if the run is not undone.

    `end` is the status with which the run would end now.
    """
    if run.undo_of is not None or not undo.is_wanted(graph, end) or not _has_steps_to_undo(tx, run.id, graph, letters):
        return None
    id = ids.named(tx.now, f"{run.id}/undo")
    ((queue, priority),) = tx.rows("queue_of", id=run.id)
    about = pinned(run.pinned)
    origin = Origin(actor=about.actor, parent=run.id, trace=about.trace, headers=about.headers)
    route = started.route(tx, run, run.job, queue, run.version)
    started.batches.append(Batch({id: "{}"}, route, origin, priority, tx.now, step=StepOf(run.id, None)))
    return id


def is_undoable(tx: Tx, run: Run, graph: Graph, letters: str, end: Status) -> bool:
    """Whether a run that ends now is a sub-run with steps that an undo of the run above would undo."""
    may_be = run.parent is not None and run.undo_of is None and end is Status.SUCCESS
    return may_be and _has_steps_to_undo(tx, run.id, graph, letters)


def opened_undo(tx: Tx, bare: Run, undone_id: str, earlier: str | None) -> Run | Failed:
    """The undo of a run as it opens. In a retry of failed undos, `earlier` is the ended undo that it repeats."""
    found = tx.records("run_to_undo", _Undone, id=undone_id)
    if not found:
        error = Error("UndoneRun", f"retention has deleted run {undone_id}, which this run would undo")
        return Failed(error, Reason.BAD_ARGUMENTS, permanent=True)
    undone = found[0]
    run = msgspec.structs.replace(bare, version=undone.version, graph=undone.graph, undo_of=undone.id)
    graph, ended = pinned_graph(tx, run), undo_letters(tx, earlier)
    if not ended:
        earlier = None
    letters = undo.retry_letters(ended) if ended else _first_letters(tx, undone.id, graph, undone.letters)
    partial = {}
    if earlier is not None:
        partial = {number: (earlier, number) for number in undo.failures(ended) if graph.steps[number].is_map}
    about = msgspec.structs.replace(
        pinned(undone.pinned), partial=partial, sub_retries={}, arguments={}, earlier_undo=earlier
    )
    return msgspec.structs.replace(run, pinned=encode_pinned(about), letters=letters, retry_of=earlier)


def undo_letters(view: View, undo_id: str | None) -> str:
    """The letters of an ended undo; empty if there is none."""
    found = None if undo_id is None else view.one("letters_of_ended", id=undo_id)
    return "" if found is None else str(found[0])


def _has_steps_to_undo(tx: Tx, run: str, graph: Graph, letters: str) -> bool:
    return bool(undo.undone(_first_letters(tx, run, graph, letters)))


def _first_letters(tx: Tx, run: str, graph: Graph, letters: str) -> str:
    """The letters with which the undo of this run begins. `graph` and `letters` are those of the run."""

    def has_executions(number: int) -> bool:
        return bool(items_to_undo(tx, run, number, graph.steps[number], most=1))

    return undo.first_letters(graph, letters, has_executions)
