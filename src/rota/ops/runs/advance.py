"""Advances runs when their steps end: places the next steps, and ends runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from rota.domain.status import Reason, Status
from rota.domain.workflow import advance as decisions
from rota.domain.workflow import letters as alphabet
from rota.domain.workflow import next_look, template
from rota.domain.workflow.graph import Graph
from rota.ops.end_record import End
from rota.ops.runs import maps
from rota.ops.runs.maps import Item
from rota.ops.runs.result import RunEnd, run_result, undone_result
from rota.ops.runs.run import Run, graph_of, pinned_graph
from rota.ops.runs.start import Started, start
from rota.ops.runs.undo import begin_undo, is_undoable
from rota.ops.runs.values import Values
from rota.store.hints import Due
from rota.store.port import Tx

Changes = dict[str, dict[int, str]]
"""For each run the steps that have ended, with their letters. A run without any is only looked at."""


class _Place(msgspec.Struct, frozen=True, array_like=True):
    id: str
    run: str
    number: int | None
    item: int | None
    depth: int
    namespace: str
    app: str
    job: str
    version: int
    graph: str


class Level(msgspec.Struct):
    """The steps that have ended in the runs at one depth of nesting."""

    steps: Changes = {}
    items: list[tuple[Item, Status]] = []
    stops: dict[str, Reason] = {}
    """Runs to stop, and why. A run that is stopping already keeps its reason, and an undo does not stop."""
    undone: dict[str, Status] = {}
    """By undone run: the status with which its undo has ended."""


def advance_runs(tx: Tx, ends: Sequence[End], stops: Mapping[str, Reason] | None = None) -> list[End]:
    """Advances the runs of these steps, and stops some runs.

    Returns the runs that have ended by that, which may be steps themselves. All of it is one walk from the deepest run
    up, because a second walk would lock a deeper run after a higher one.
    """
    levels: dict[int, Level] = {}
    if ends:
        ids = [end.id for end in ends]
        rows = tx.records("step_places", _Place, ids=ids, lowest=min(ids), highest=max(ids))
        places = {place.id: place for place in rows}
        for end in ends:
            if (place := places.get(end.id)) is not None:
                at_once = None if place.item is None else pinned_graph(tx, place).steps[place.number or 0].at_once
                _add(levels, place.depth, place.run, place.number, place.item, end.status, at_once)
    if stops:
        for id, depth in tx.rows("depths_of", ids=sorted(stops)):
            levels.setdefault(depth, Level()).stops[id] = stops[id]
    return advance_levels(tx, levels)


def look_at(tx: Tx, runs: Iterable[Run]) -> list[End]:
    """Advances these runs although no step of them has ended; returns the runs that have ended by that."""
    levels: dict[int, Level] = {}
    for run in runs:
        levels.setdefault(run.depth, Level()).steps[run.id] = {}
    return advance_levels(tx, levels)


def advance_levels(tx: Tx, levels: dict[int, Level]) -> list[End]:
    """From the deepest level up: the end of a run is the end of a step one level above."""
    ends: list[End] = []
    while levels:
        depth = max(levels)
        level = levels.pop(depth)
        for run_id in (*maps.count(tx, level.items), *level.stops, *level.undone):
            level.steps.setdefault(run_id, {})
        for run, status, reason in _advance_level(tx, level):
            ends.append(End(run.id, status, reason, run=run.parent))
            if run.parent is not None:
                at_once = None if run.parent_item is None else _at_once(tx, run.parent, run.parent_step or 0)
                _add(levels, depth - 1, run.parent, run.parent_step, run.parent_item, status, at_once)
    return ends


def _at_once(tx: Tx, run: str, number: int) -> int | None:
    """How many items of this map may run at once. The run is open: one of its steps is."""
    (above,) = tx.records("runs_open", Run, ids=[run])
    return graph_of(tx, above).steps[number].at_once


def _add(
    levels: dict[int, Level],
    depth: int,
    run: str,
    number: int | None,
    item: int | None,
    status: Status,
    at_once: int | None,
) -> None:
    level = levels.setdefault(depth, Level())
    if number is None:
        level.undone[run] = status
    elif item is None:
        level.steps.setdefault(run, {})[number] = alphabet.letter_of(status)
    else:
        level.items.append((Item(run, number, item, at_once), status))


Ended = tuple[Run, Status, Reason]


def _advance_level(tx: Tx, level: Level) -> list[Ended]:
    changes = level.steps
    if not changes:
        return []
    runs = tx.records("lock_runs", Run, ids=sorted(changes))
    tallies = maps.tallies(tx, [run.id for run in runs if maps.has_open(graph_of(tx, run), run.letters)])
    started = Started()
    advanced: list[_Advanced] = []
    for run in runs:
        graph, values = graph_of(tx, run), Values(tx, run.id, graph_of(tx, run))
        if run.undo is not None:
            if run.id in level.undone:
                advanced.append(_Advanced(run, graph, run.letters, run.stopping, values))
            continue
        letters, stopping = run.letters, run.stopping or (level.stops.get(run.id) if run.undo_of is None else None)
        ended_steps = changes[run.id] | maps.decided(started, run, graph, tallies, is_stopping=stopping is not None)
        looked_at = None if run.letters.strip(alphabet.UNDECIDED) == "" or not ended_steps else ended_steps.keys()
        while True:
            letters = alphabet.with_ends(letters, ended_steps)
            if stopping is None and decisions.must_stop(graph, letters):
                stopping = Reason.STEP_FAILED
            decided = decisions.advance(graph, letters, values, is_stopping=stopping is not None, changed=looked_at)
            letters = decided.letters
            if stopping is None and decisions.must_stop(graph, letters):
                stopping = Reason.STEP_FAILED
            ended_steps = start(tx, started, run, graph, letters, decided.start, values)
            if not ended_steps:
                break
            looked_at = ended_steps.keys()
        advanced.append(_Advanced(run, graph, letters, stopping, values))
    # Written before the results are made: the error of a run may be that of a wait that fails as soon as it begins.
    started.write(tx)
    undoing = Started()
    ended, undos = _results(tx, undoing, advanced, level.undone)
    rows = [one.row(tx.now, undos.get(one.run.id), started) for one in advanced if one.run.undo is None]
    tx.run("update_runs", rows=rows)
    if any(one.begins_to_stop for one in advanced):
        tx.tell(Due(tx.now))
    undoing.write(tx)
    return _end(tx, ended)


class _Advanced(msgspec.Struct, frozen=True):
    """A run with the letters and the reason to stop that it has now. `run` has those from before."""

    run: Run
    graph: Graph
    letters: str
    stopping: str | None
    values: Values

    @property
    def begins_to_stop(self) -> bool:
        return self.stopping is not None and self.run.stopping is None

    def row(
        self, now: int, undo: str | None, started: Started
    ) -> tuple[str, str, str | None, int | None, str | None, int]:
        look_at = next_look.after_change(now, self.letters, started.looks.get(self.run.id, ()))
        return self.run.id, self.letters, self.stopping, 0 if self.begins_to_stop else None, undo, look_at


def _results(
    tx: Tx, started: Started, advanced: Sequence[_Advanced], undone: Mapping[str, Status]
) -> tuple[list[tuple[Run, RunEnd, bool]], dict[str, str]]:
    """The ends of the runs whose steps have all ended; and by run, the id of the undo that it must wait for first.

    Each end comes with whether the run is a sub-run with steps that an undo of the run above would undo.
    """
    over = [one for one in advanced if alphabet.is_over(one.letters)]
    Values.read(tx, [(one.values, template.roots(one.graph.result)) for one in over])
    ended: list[tuple[Run, RunEnd, bool]] = []
    undos: dict[str, str] = {}
    for one in over:
        run, graph, letters = one.run, one.graph, one.letters
        if run.undo is not None:
            ended.append((run, undone_result(tx, run, graph, one.values, undone[run.id]), False))
            continue
        end = run_result(tx, run, graph, letters, one.stopping, one.values)
        undo = begin_undo(tx, started, run, graph, letters, end[0])
        if undo is None:
            ended.append((run, end, is_undoable(tx, run, graph, letters, end[0])))
        else:
            undos[run.id] = undo
    return ended, undos


def _end(tx: Tx, ended: Sequence[tuple[Run, RunEnd, bool]]) -> list[Ended]:
    """Writes the ends of runs, as `_results` returns them."""
    if ended:
        tx.run("end_runs", ended=[_row(*one) for one in ended], ids=[run.id for run, *_ in ended])
        if dead := [
            (run.id, reason.value, None)
            for run, (status, reason, _, _), _ in ended
            if status is Status.FAILED and run.parent is None
        ]:
            tx.run("bury", rows=dead)
    return [(run, status, reason) for run, (status, reason, _, _), _ in ended]


def _row(run: Run, end: RunEnd, undoable: bool) -> tuple[str, str, str, str | None, str | None, int]:
    status, reason, result, error = end
    text = None if error is None else msgspec.json.encode(error).decode()
    return run.id, status.value, reason.value, result, text, int(undoable)
