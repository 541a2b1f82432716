"""The order of claims."""

from __future__ import annotations

from collections.abc import Iterator

from rota.domain.claim_order import SLACK
from rota.domain.instant import MICROSECONDS
from rota.ops import job_pauses
from tests.simulation.history import History, Operation
from tests.simulation.ledger import Ledger, replay


def claims_follow_the_rank(history: History) -> Iterator[str]:
    """Within a lane no claim leaves a lower rank behind; between lanes it may, by the slack of a claim.

    What is below the claimer's mark it does not look at; how long that may last is another invariant.
    """
    for operation, before, after in replay(history):
        claimed = _claimed(operation)
        if not claimed:
            continue
        marks = {lane: (rank, id) for lane, rank, id in operation.args[3] or ()}
        left: dict[int, tuple[int, str]] = {}
        for row in after["ready"].values():
            if row["lane"] in marks and (row["rank"], row["id"]) <= marks[row["lane"]]:
                continue
            if row["id"] not in before["execution"] and after["execution"][row["id"]]["run"] is not None:
                continue  # A step of a run that this claim opened: it came after the rows were taken.
            left[row["lane"]] = min(left.get(row["lane"], (row["rank"], row["id"])), (row["rank"], row["id"]))
        for id in claimed:
            row = before["ready"][id]
            if row["lane"] in left and left[row["lane"]] < (row["rank"], id):
                yield f"{id} was claimed before {left[row['lane']]}, which ranks lower in its lane"
            for lane, (rank, other) in left.items():
                if rank + SLACK < row["rank"] and _is_open(lane, operation, after):
                    yield f"{id} was claimed before {other} of lane {lane}, which ranks lower"


def paused_queues_are_not_claimed_from(history: History) -> Iterator[str]:
    for operation, before, _ in replay(history):
        for id in _claimed(operation):
            queue = before["execution"][id]["queue"]
            if before["queue"][queue]["paused_at"] is not None:
                yield f"{id} was claimed from {queue}, which is paused"


def paused_jobs_are_not_claimed(history: History) -> Iterator[str]:
    """A claimer may know the paused jobs of a moment ago."""
    for operation, before, _ in replay(history):
        for id in _claimed(operation):
            job = before["execution"][id]["job"]
            paused_at = before["job"][job]["paused_at"]
            if paused_at is not None and paused_at + job_pauses.KNOWN_S * MICROSECONDS < operation.now:
                yield f"{id} was claimed although job {job} is paused"


def workers_claim_only_jobs_that_they_have(history: History) -> Iterator[str]:
    lives = {life.worker: life for life in history.incarnations}
    for operation, before, _ in replay(history):
        for id in _claimed(operation):
            worker, job = operation.args[0], before["execution"][id]["job"]
            if worker in lives and job in lives[worker].missing:
                yield f"{id} was claimed by worker {worker}, which does not have job {job}"


def _claimed(operation: Operation) -> list[str]:
    if operation.name != "claim":
        return []
    return [change.row["id"] for change in operation.changes if change.table == "running" and change.kind == "+"]


def _is_open(lane: int, operation: Operation, after: Ledger) -> bool:
    """Whether this claim was to look at the lane at all."""
    execution = next(after["execution"][id] for id, row in after["ready"].items() if row["lane"] == lane)
    served, marks = operation.args[1], operation.args[3]
    if marks is not None:
        is_wanted = lane in [mark[0] for mark in marks]
    else:
        is_wanted = (served.queues is None or execution["queue"] in served.queues) and execution["job"] in served.jobs
    return is_wanted and after["queue"][execution["queue"]]["paused_at"] is None
