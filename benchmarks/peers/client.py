"""`python -m benchmarks.peers.client PEER …`: does for one peer what its users' processes do, in its environment.

    describe        how its workers are started, as JSON
    setup           prepares an empty database
    single COUNT    enqueues one by one
    bulk COUNT      enqueues many at a time
    paced COUNT     enqueues one every 20 ms, each with the time
    commands COUNT  enqueues tasks that run a command, one by one
    turns COUNT         enqueues the next when the last has run, and prints the median of the milliseconds
    command_turns COUNT the same for what runs a command
    chain COUNT     runs COUNT steps one after the other
    fan COUNT       runs COUNT steps side by side, and one that takes their results
    many COUNT      runs COUNT workflows of three steps at once

All but the first two and the turns print the seconds that it took. PEER is a module of this folder with these names:

    COMMAND         what starts a worker, in the folder of the environment's programs
    PROCESSES       how many times it is started, if one start is not two worker processes already
    SHARE           the part of Rota's jobs that it is given; a slow peer would take too long with all
    enqueue         takes pairs of a number and a time
    enqueue_bulk    the same for all at once, if there is such a way
    enqueue_commands  enqueues as many tasks that run a command as it gets items; optional
    setup           prepares an empty database, if that is needed
    ENDED           the statement that counts ended jobs, if the database keeps them

One that runs workflows has the functions `chain`, `fan` and `many` instead.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import statistics
import sys
import time
from collections.abc import Iterator
from types import ModuleType

from benchmarks import probe

PACE_S = 0.02
LOOK_S = 0.0002
WORKFLOWS = ("chain", "fan", "many")
WARM = 3


def main(name: str, way: str, count: int = 0) -> str:
    peer = importlib.import_module(f"benchmarks.peers.{name}")
    if way == "describe":
        return json.dumps(_description(peer, name))
    if way == "setup":
        getattr(peer, "setup", lambda: None)()
        return "{}"
    if way.endswith("turns"):
        passed: list[float] = []
        (peer.enqueue if way == "turns" else peer.enqueue_commands)(_in_turns(count, passed))
        return json.dumps(statistics.median(passed) * 1e3)
    if way in WORKFLOWS:
        getattr(peer, way)(WARM)
    began = time.perf_counter()
    if way in WORKFLOWS:
        getattr(peer, way)(count)
    elif way == "paced":
        peer.enqueue(_paced(count))
    elif way == "commands":
        peer.enqueue_commands(range(count))
    elif way == "bulk":
        peer.enqueue_bulk([(0, 0.0)] * count)
    else:
        peer.enqueue([(0, 0.0)] * count)
    return json.dumps(time.perf_counter() - began)


def _description(peer: ModuleType, name: str) -> dict[str, object]:
    return {
        "version": importlib.metadata.version(name),
        "command": peer.COMMAND,
        "processes": getattr(peer, "PROCESSES", 1),
        "share": peer.SHARE,
        "has_bulk": hasattr(peer, "enqueue_bulk"),
        "ended": getattr(peer, "ENDED", ""),
    }


def _paced(count: int) -> Iterator[tuple[int, float]]:
    for number in range(count):
        time.sleep(PACE_S)
        yield number, time.time()


def _in_turns(count: int, passed: list[float]) -> Iterator[tuple[int, float]]:
    """Continues when the last job has run; keeps how long each took."""
    seen = probe.current()
    for done in range(seen.count(), seen.count() + count):
        began = time.perf_counter()
        yield 0, 0.0
        while seen.count() <= done:
            time.sleep(LOOK_S)
        passed.append(time.perf_counter() - began)


if __name__ == "__main__":
    print(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])))
