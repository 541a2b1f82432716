"""What a set of runs must have seen to count as a test: moves, reasons, faults, and the rare things between them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rota.domain.status import Reason, Status
from tests.simulation.faults import Fault
from tests.simulation.history import History
from tests.simulation.ledger import moves
from tests.support.moves import ALLOWED

Move = tuple[Status | None, Status]

UNREACHABLE: dict[Move, str] = {
    (None, Status.WAITING): "only a claim puts executions behind a blocker: dependencies are to come",
    (Status.RETRYING, Status.SKIPPED): "a start deadline ends with the first start, and nothing else skips yet",
}
"""Allowed moves that this engine cannot make today, and why. A run that makes one of them fails, to be looked at."""

SIGHTS = (
    "an effect refused for its fence",
    "an unfenced effect doubled",
    "a stale report",
    "a bulk accepted",
    "key_conflict",
    "queue_full",
    "not_unique",
    "an existing execution returned",
    "a repeated call answered by the first",
    "a dead letter replayed",
    "a dead letter discarded",
    "a cancel that came too late",
    "a success in spite of a cancel",
    "a paused queue",
    "a paused job",
    "a second blocker",
    "a release in several batches",
)

# Only an attempt in a process of its own can have too much memory, and the simulator has no processes.
# Those of runs are seen by tests/simulation/test_runs.py.
OF_RUNS = {
    *(Reason.STEP_FAILED, Reason.RUN_TIMEOUT, Reason.TOO_DEEP, Reason.INPUTS_TOO_LARGE),
    *(Reason.WAIT_TIMEOUT, Reason.REJECTED, Reason.UNDO_FAILED),
}
REASONS = frozenset(Reason) - {Reason.OUT_OF_MEMORY} - OF_RUNS
MOVES_OF_RUNS = {(Status.WAITING, Status.SUCCESS), (Status.WAITING, Status.FAILED)}
"""Those of steps that wait."""


class Coverage:
    """The union of what runs have seen."""

    def __init__(self) -> None:
        self.moves: Counter[Move] = Counter()
        self.reasons: Counter[str] = Counter()
        self.faults: Counter[Fault] = Counter()
        self.sights: Counter[str] = Counter()

    def add(self, history: History) -> None:
        self.moves.update((source, target) for _, _, source, target in moves(history))
        self.reasons.update(row["reason"] for row in history.tables["finished"])
        self.faults.update(history.faults)
        self.sights.update(_sights(history))

    def merge(self, other: Coverage) -> None:
        self.moves.update(other.moves)
        self.reasons.update(other.reasons)
        self.faults.update(other.faults)
        self.sights.update(other.sights)

    def missing(self) -> list[str]:
        """What should have been seen and was not, and what should not be possible and was."""
        possible = {(source, target) for source, targets in ALLOWED.items() for target in targets}
        possible -= MOVES_OF_RUNS | UNREACHABLE.keys()
        absent = [f"no move from {source} to {target}" for source, target in possible if not self.moves[source, target]]
        absent += [f"no end for the reason {reason}" for reason in REASONS if not self.reasons[reason]]
        absent += [f"no fault: {fault}" for fault in Fault if not self.faults[fault]]
        absent += [f"never seen: {sight}" for sight in SIGHTS if not self.sights[sight]]
        surprising = [f"{source} to {target} is listed as unreachable" for source, target in UNREACHABLE]
        absent += [text for move, text in zip(UNREACHABLE, surprising, strict=True) if self.moves[move]]
        return sorted(absent)


def _sights(history: History) -> Counter[str]:
    seen: Counter[str] = Counter()
    effects = Counter(effect.id for effect in history.effects)
    seen["an effect refused for its fence"] = sum(not effect.accepted for effect in history.effects)
    seen["an unfenced effect doubled"] = sum(count > 1 for count in effects.values())
    seen["a stale report"] = sum(len(one.result) for one in history.operations if one.name == "finish")
    seen["a paused queue"] = sum(one.name == "pause_queue" for one in history.operations)
    seen["a paused job"] = sum(one.name == "pause" for one in history.operations)
    seen["a second blocker"] = sum(one.name == "hold" for one in history.operations)
    seen["a release in several batches"] = sum(one.name == "release_lifted" for one in history.operations)
    seen.update(_of_clients(history))
    return seen


def _of_clients(history: History) -> list[str]:
    seen: list[str] = []
    for submission in history.submissions:
        tries = submission.tries
        seen += [one.detail for one in tries if one.told == "refused"]
        if submission.accepted and len(submission.items) > 1:
            seen.append("a bulk accepted")
        if any(one.told == "unsure" for one in tries) and submission.accepted:
            seen.append("a repeated call answered by the first")
        if any(mine != answer for mine, answer in submission.accepted.items()):
            seen.append("an existing execution returned")
    ends: dict[str, Any] = {row["id"]: row["status"] for row in history.tables["finished"] if row["final"]}
    for order in history.orders:
        if order.verb == "replay" and order.answer:
            seen.append("a dead letter replayed")
        elif order.verb == "discard" and order.answer:
            seen.append("a dead letter discarded")
        elif order.verb == "cancel" and order.answer is Status.RUNNING and ends.get(order.ids[0]) == Status.SUCCESS:
            seen.append("a success in spite of a cancel")
        elif order.verb == "cancel" and order.answer in (Status.SUCCESS, Status.FAILED):
            seen.append("a cancel that came too late")
    return seen
