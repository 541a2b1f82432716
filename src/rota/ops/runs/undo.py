"""The undo of a run: a run of its own, which belongs to the run that it undoes.

A run that must be undone does not end when its last step ends. The same transaction places an execution of the same
workflow and writes its id into the row of the run, which is undoing from then on. A claim opens the execution like
every run, but with the graph that `domain/workflow/undo.py` derives. When the undo ends, the run does.

The undo of a sub-workflow is a step of the undo above, and its execution opens as the undo of the sub-run.
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
    """A run that is to be undone, open or not."""

    id: str
    version: int
    graph: str
    pinned: str
    letters: str


def begin_undo(tx: Tx, started: Started, run: Run, graph: Graph, letters: str, end: Status) -> str | None:
    """Places the undo of a run whose steps have all ended, and returns its id; None if nothing is to be undone."""
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
    """Whether the undo of a run above has something to undo in this one, which ends now."""
    is_part = run.parent is not None and run.undo_of is None and end is Status.SUCCESS
    return is_part and _has_steps_to_undo(tx, run.id, graph, letters)


def opened_undo(tx: Tx, bare: Run, undone_id: str, earlier: str | None) -> Run | Failed:
    """The undo of a run as it opens. `earlier` is the undo whose failures it repeats, if it is a retry."""
    found = tx.records("run_to_undo", _Undone, id=undone_id)
    if not found:
        return Failed(Error("UndoneRun", f"run {undone_id} is deleted by now"), Reason.BAD_ARGUMENTS, permanent=True)
    undone = found[0]
    run = msgspec.structs.replace(bare, version=undone.version, graph=undone.graph, undo_of=undone.id)
    before = tx.one("letters_of_ended", id=earlier) if earlier is not None else None
    letters = undo.again(before[0]) if before else _letters(tx, undone.id, pinned_graph(tx, run), undone.letters)
    partial = {}
    if before and earlier is not None:
        steps = pinned_graph(tx, run).steps
        partial = {number: (earlier, number) for number in undo.failures(before[0]) if steps[number].is_map}
    about = msgspec.structs.replace(
        pinned(undone.pinned), partial=partial, resumed={}, arguments={}, earlier_undo=earlier if before else None
    )
    return msgspec.structs.replace(
        run, pinned=encode_pinned(about), letters=letters, retry_of=earlier if before else None
    )


def undo_letters(view: View, undo: str | None) -> str:
    """The letters of an undo that has ended; empty if there is none."""
    found = None if undo is None else view.one("letters_of_ended", id=undo)
    return "" if found is None else str(found[0])


def _has_steps_to_undo(tx: Tx, run: str, graph: Graph, letters: str) -> bool:
    return bool(undo.undone(_letters(tx, run, graph, letters)))


def _letters(tx: Tx, run: str, graph: Graph, letters: str) -> str:
    def has_items(number: int) -> bool:
        return bool(items_to_undo(tx, run, number, graph.steps[number], most=1))

    return undo.begin(graph, letters, has_items)
