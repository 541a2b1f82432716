"""Hints: nothing depends on them, but without them everything waits for a poll."""

from __future__ import annotations

from collections.abc import Iterator

from rota.store.hints import CancelAsked, Due, Ended, Ready
from tests.simulation.history import Change, History, Operation
from tests.simulation.ledger import Ledger, replay


def every_change_is_hinted_at(history: History) -> Iterator[str]:
    """A commit sends a hint for every row that a process may wait for."""
    for operation, _, after in replay(history):
        for change in operation.changes:
            # A row that the operation itself moved on, as a claim does with a late start, needs no hint.
            is_still_so = change.table == "finished" or change.row.get("id") in after[change.table]
            if is_still_so and not _is_hinted(operation, change) and not _is_held(operation, change, after):
                yield f"{operation.name} sent no hint of {change.kind} {change.table} {change.row['id']}"


def _is_held(operation: Operation, change: Change, after: Ledger) -> bool:
    """The claim after a finish finds nothing in a paused queue, so it sends no hint; the resume does."""
    if operation.name != "finish_and_claim" or change.table != "ready":
        return False
    return after["queue"][after["execution"][change.row["id"]]["queue"]]["paused_at"] is not None


def _is_hinted(operation: Operation, change: Change) -> bool:
    row, hints = change.row, operation.hints
    match change.table, change.kind:
        case "ready", "+":
            return any(isinstance(hint, Ready) and row["lane"] in hint.lanes for hint in hints)
        case "scheduled", "+" | "~":
            return any(isinstance(hint, Due) and hint.at <= row["run_at"] for hint in hints)
        case "running", "~" if row["cancel_at"] is not None:
            return any(isinstance(hint, CancelAsked) and hint.worker == row["worker"] for hint in hints)
        case "finished", "+" if row["final"]:
            return any(isinstance(hint, Ended) and row["id"] in hint.ids for hint in hints)
        case _:
            return True
