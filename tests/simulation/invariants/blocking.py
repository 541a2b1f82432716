"""Executions that wait behind blockers."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.history import History
from tests.simulation.ledger import replay


def only_waiting_executions_have_blockers(history: History) -> Iterator[str]:
    """And each of them has at least one."""
    for operation, _, after in replay(history):
        blocked = {execution for execution, _, _ in after["blocker"]}
        for id in sorted(blocked ^ set(after["waiting"])):
            yield f"{id} is in {after.places(id)} {'with' if id in blocked else 'without'} a blocker: {operation.name}"


def a_wait_does_not_change_the_rank(history: History) -> Iterator[str]:
    for operation, before, after in replay(history):
        for source, target in (("ready", "waiting"), ("waiting", "ready")):
            for id in before[source].keys() & after[target].keys():
                if before[source][id]["rank"] != after[target][id]["rank"]:
                    yield f"{id} has lost its place in line: {operation.name} moved it from {source} to {target}"
