"""Maps: counting their items as they end, and what the counts decide.

The items of a map are counted in shards, so that finishes of different items rarely change the same row. Only a finish
that takes a shard to zero, or reports a bad item, looks at the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rota.domain.blocker import Kind
from rota.domain.status import Status
from rota.domain.workflow import maps
from rota.domain.workflow.graph import Graph
from rota.domain.workflow.letters import FAILED, OPEN
from rota.domain.workflow.maps import Tally
from rota.ops import blockers
from rota.ops.runs.items import omitted_items
from rota.ops.runs.run import Run
from rota.ops.runs.start import Started
from rota.store.port import Tx

_COLUMNS = (Status.SUCCESS, Status.FAILED, Status.CANCELLED, Status.SKIPPED)
_BAD = {Status.FAILED, Status.CANCELLED}
Shard = tuple[str, int, int]
"""A run, the number of a step, and a shard of its items."""


class Item(NamedTuple):
    """One item of a map that has ended."""

    run: str
    number: int
    position: int
    at_once: int | None
    """How many of the items may run at once; None if nothing bounds them."""


def blocker_key(run: str, number: int) -> str:
    """The key of the blocker behind which the items of a map wait for earlier ones."""
    return f"{run}/{number}"


def count(tx: Tx, ended: Iterable[tuple[Item, Status]]) -> set[str]:
    """Counts ended items, and returns the runs that must be advanced."""
    shards: dict[Shard, dict[Status, int]] = defaultdict(lambda: defaultdict(int))
    bounded: dict[tuple[str, int], int] = {}
    for item, status in ended:
        shards[item.run, item.number, maps.shard(item.position)][status] += 1
        if item.at_once is not None:
            bounded[item.run, item.number] = item.at_once
    touched = count_shards(tx, shards, bounded)
    for (run, number), at_once in sorted(bounded.items()):
        if (free := free_places(tx, run, number, at_once)) > 0:
            blockers.release(tx, Kind.MAP, blocker_key(run, number), free)
    return touched


def free_places(tx: Tx, run: str, number: int, at_once: int) -> int:
    """How many more items may start. An item takes a place if it is placed, has not ended and does not wait for others.

    The caller has locked all tallies of the map, so that no item ends, and no chunk is placed, during this count. An
    item that was cancelled while it waited for others had no place, so it is not enough to count the ends.
    """
    counts = tallies(tx, [run])[run, number]
    next_item, behind = tx.rows("places_of_map", run=run, number=number, kind=Kind.MAP, key=blocker_key(run, number))[0]
    placed = counts.width if next_item is None else next_item
    omitted = _omitted_count(tx, run, number, placed, counts.width) if next_item else 0
    ended = counts.width - counts.open - omitted
    return int(at_once - (placed - ended - behind))


def _omitted_count(tx: Tx, run: str, number: int, low: int, high: int) -> int:
    (row,) = tx.records("runs_open", Run, ids=[run])
    return len(omitted_items(tx, row, number, low, high))


def lock_all(tx: Tx, run: str, number: int) -> None:
    tx.rows("lock_tallies", keys=_all_shards(run, number))


def _all_shards(run: str, number: int) -> list[Shard]:
    return [(run, number, shard) for shard in range(maps.SHARDS)]


def count_shards(tx: Tx, shards: dict[Shard, dict[Status, int]], bounded: Iterable[tuple[str, int]] = ()) -> set[str]:
    """`bounded` are the maps whose tallies are all locked."""
    if not shards:
        return set()
    tx.rows("lock_tallies", keys=sorted({*shards, *(key for one in bounded for key in _all_shards(*one))}))
    rows = [
        (*key, sum(counts.values()), *(counts.get(status, 0) for status in _COLUMNS)) for key, counts in shards.items()
    ]
    left = tx.rows("count_items", rows=sorted(rows))
    bad = {key[:2] for key, counts in shards.items() if counts.keys() & _BAD}
    return {run for run, number, still_open, _ in left if not still_open or (run, number) in bad}


def tallies(tx: Tx, runs: Sequence[str]) -> dict[tuple[str, int], Tally]:
    """The counts of all maps of these runs that have started."""
    if not runs:
        return {}
    names = Tally.__struct_fields__
    return {row[:2]: Tally(**dict(zip(names, row[2:], strict=True))) for row in tx.rows("tallies", runs=list(runs))}


def has_open(graph: Graph, letters: str) -> bool:
    """Whether a map of the run is open."""
    return any(letter == OPEN and step.is_map for step, letter in zip(graph.steps, letters, strict=True))


def decided(
    started: Started, run: Run, graph: Graph, counts: dict[tuple[str, int], Tally], *, is_stopping: bool
) -> dict[int, str]:
    """The letters of the maps whose items have all ended. A map with too many bad items begins to stop."""
    letters: dict[int, str] = {}
    for number, step in enumerate(graph.steps):
        found = counts.get((run.id, number)) if run.letters[number] == OPEN else None
        if found is None:
            continue
        letter = maps.outcome(found, step.tolerate, is_stopping=is_stopping, runs_all=step.is_undo)
        if not found.open:
            letters[number] = letter
        elif letter == FAILED:
            started.maps.append((run.id, number, found.width, found.width, None))
    return letters
