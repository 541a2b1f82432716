"""The chore behind wide maps: placing their items chunk by chunk, and telling items to stop.

The transaction that starts a map places its first items. The others follow in chunks. A chunk is placed when the first
item of the previous chunk has been claimed, so other executions wait behind two chunks at most. One supervisor at a
time works on a map: it locks the row in `map_open`. No finish waits for that row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from rota.domain.instant import MICROSECONDS
from rota.domain.status import Reason, Status
from rota.domain.workflow import maps as map_rules
from rota.domain.workflow.graph import Graph, Step
from rota.domain.workflow.letters import FAILED
from rota.ops import end_from_outside
from rota.ops.after_end import follow
from rota.ops.runs import maps
from rota.ops.runs.advance import Level, advance_levels
from rota.ops.runs.items import map_items, omitted_items
from rota.ops.runs.run import Run, graph_of
from rota.ops.runs.start import Started, inputs_of, start_items
from rota.ops.runs.values import Values
from rota.store.port import Tx

CHUNK = 1_000
MOST = 20
TOLD = 500
"""How many items the expander asks to stop in one transaction."""
LOOK_S = 0.02
"""How often a map whose last chunk is still waiting is checked."""
NEVER = 2**62


class _Open(msgspec.Struct, frozen=True, array_like=True):
    """A row of `map_open`."""

    run: str
    number: int
    width: int
    next_item: int
    told_item: int
    first_id: str | None
    """The first execution of the last chunk."""


def expand(tx: Tx, look_s: float) -> bool:
    """One step of work on one map. False if there was none to do.

    Maps whose last chunk is still waiting are passed over, and looked at again after `look_s`.
    """
    return any(_work_on(tx, one, look_s) for one in tx.records("next_maps", _Open, most=MOST))


def _work_on(tx: Tx, one: _Open, look_s: float) -> bool:
    runs = tx.records("runs_open", Run, ids=[one.run])
    if not runs:
        return _close(tx, one)
    run = runs[0]
    graph = graph_of(tx, run)
    step = graph.steps[one.number]
    if _must_stop(tx, run, step, one):
        return _stop(tx, run, one)
    if one.next_item >= one.width:
        return _close_unless_stopped(tx, run, step, one)
    if one.first_id is not None and tx.one("unclaimed", id=one.first_id):
        _note(tx, one, after_s=look_s)
        return False
    return _chunk(tx, run, graph, step, one)


def _must_stop(tx: Tx, run: Run, step: Step, one: _Open) -> bool:
    counts = maps.tallies(tx, [run.id]).get((run.id, one.number))
    too_many = counts is not None and map_rules.outcome(counts, step.tolerate, runs_all=step.is_undo) == FAILED
    return too_many or (run.stopping is not None and step.rule != "always")


def _chunk(tx: Tx, run: Run, graph: Graph, step: Step, one: _Open) -> bool:
    outcomes = {other.id: letter for other, letter in zip(graph.steps, run.letters, strict=True)}
    items = _items(tx, run, graph, one.number, outcomes)
    inputs = inputs_of(run, step, outcomes)
    next_item = min(one.next_item + CHUNK, one.width)
    omitted = omitted_items(tx, run, one.number, one.next_item, next_item)
    chunk = [(index, items[index]) for index in range(one.next_item, next_item) if index not in omitted]
    started = Started()
    free = None
    if step.at_once is not None:
        maps.lock_all(tx, run.id, one.number)
        free = maps.free_places(tx, run.id, one.number, step.at_once)
    ids = start_items(tx, started, run, one.number, step, inputs, chunk, free)
    started.write(tx)
    _note(tx, msgspec.structs.replace(one, next_item=next_item, first_id=min(ids, default=one.first_id)))
    return True


_last: WeakKeyDictionary[Tx, tuple[tuple[str, int], Sequence[Any]]] = WeakKeyDictionary()
"""By session: the map that was expanded last, and its list. The list does not change, and takes long to decode."""


def _items(tx: Tx, run: Run, graph: Graph, number: int, letters: Mapping[str, str]) -> Sequence[Any]:
    known = _last.get(tx)
    if known is None or known[0] != (run.id, number):
        items = map_items(tx, run, graph, number, letters, Values(tx, run.id, graph))
        known = _last[tx] = (run.id, number), items
    return known[1]


def _stop(tx: Tx, run: Run, one: _Open) -> bool:
    """First counts items that were never placed as cancelled; then asks placed items to stop, chunk by chunk."""
    if one.next_item < one.width:
        widths = map_rules.shard_widths(one.width, one.next_item)
        shards = {(run.id, one.number, shard): {Status.CANCELLED: count} for shard, count in enumerate(widths) if count}
        _note(tx, msgspec.structs.replace(one, next_item=one.width))
        maps.count_shards(tx, shards)
        follow(tx, advance_levels(tx, {run.depth: Level(steps={run.id: {}})}))
        return True
    found = tx.rows("items_from", run=run.id, number=one.number, item=one.told_item, most=TOLD)
    if not found:
        # The row stays until the run ends, as a mark that all items have been told to stop. The end of a run deletes
        # parked rows only, so the row is parked under the lock of the run. The run may have ended before that.
        if not tx.records("lock_runs", Run, ids=[run.id]):
            return _close(tx, one)
        tx.run("park_map", run=one.run, number=one.number, look_at=NEVER)
        return True
    end_from_outside.end_all(tx, run.namespace, [id for _, id in found], Status.CANCELLED, Reason.CANCELLED)
    _note(tx, msgspec.structs.replace(one, told_item=found[-1][0] + 1))
    return True


def _note(tx: Tx, one: _Open, after_s: float = 0.0) -> None:
    tx.run("note_map", look_at=tx.now + round(after_s * MICROSECONDS), **msgspec.structs.asdict(one))


def _close_unless_stopped(tx: Tx, run: Run, step: Step, one: _Open) -> bool:
    """Closes a map whose items have all been placed.

    A transaction that stops the map leaves an existing row as it is, and this one would delete that row. So it locks
    the run, which such a transaction holds, and looks again.
    """
    locked = tx.records("lock_runs", Run, ids=[run.id])
    return _stop(tx, locked[0], one) if locked and _must_stop(tx, locked[0], step, one) else _close(tx, one)


def _close(tx: Tx, one: _Open) -> bool:
    _last.pop(tx, None)
    tx.run("close_map", run=one.run, number=one.number)
    return True
