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
    at_once: bool
    """Whether the map bounds how many of its items run at once."""


def blocker_key(run: str, number: int) -> str:
    """The key of the blocker behind which the items of a map wait for earlier ones."""
    return f"{run}/{number}"


def count(tx: Tx, ended: Iterable[tuple[Item, Status]]) -> set[str]:
    """Counts ended items, and returns the runs that must be looked at."""
    shards: dict[Shard, dict[Status, int]] = defaultdict(lambda: defaultdict(int))
    places: dict[tuple[str, int], int] = defaultdict(int)
    for item, status in ended:
        shards[item.run, item.number, maps.shard(item.position)][status] += 1
        if item.at_once:
            places[item.run, item.number] += 1
    touched = count_shards(tx, shards)
    for (run, number), free in sorted(places.items()):
        # After the lock on the tally: an expander either has seen this end, or its items are seen here.
        blockers.release(tx, Kind.MAP, blocker_key(run, number), free)
    return touched


def count_shards(tx: Tx, shards: dict[Shard, dict[Status, int]]) -> set[str]:
    if not shards:
        return set()
    tx.rows("lock_tallies", keys=sorted(shards))
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


def decided(started: Started, run: Run, graph: Graph, counts: dict[tuple[str, int], Tally]) -> dict[int, str]:
    """The letters of the maps whose items have all ended. A map with too many bad items is told to stop meanwhile."""
    letters: dict[int, str] = {}
    for number, step in enumerate(graph.steps):
        found = counts.get((run.id, number)) if run.letters[number] == OPEN else None
        if found is None:
            continue
        letter = maps.outcome(found, step.tolerate, is_stopping=run.stopping is not None)
        if not found.open:
            letters[number] = letter
        elif letter == FAILED:
            started.maps.append((run.id, number, found.width, found.width, None, None))
    return letters
