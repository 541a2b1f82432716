"""Leases by the database's clock; a worker that lost its lease has stopped its executions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from rota.domain.instant import MICROSECONDS
from tests.simulation.history import Body, History, Incarnation
from tests.simulation.ledger import changes, replay

SLACK_S = 0.001


def leases_are_by_the_databases_clock(history: History) -> Iterator[str]:
    """A lease runs from the heartbeat; it is needed to claim, and is not cut short by a rescue."""
    lease = round(history.lease_s * MICROSECONDS)
    beaten: dict[int, int] = {}
    for operation, before, after in replay(history):
        for change in operation.changes:
            if change.table != "worker" or operation.name not in ("join", "beat"):
                continue
            beaten[change.row["id"]] = operation.now
            if change.row["lease_until"] != operation.now + lease:
                yield f"{operation.name}: the lease of worker {change.row['id']} is not {history.lease_s} s from now"
        if operation.name == "claim" and any(change.table == "running" for change in operation.changes):
            worker = operation.args[0]
            if before["worker"][worker]["stopped_at"] is not None or beaten[worker] + lease <= operation.now:
                yield f"worker {worker} claimed without a live lease"
        if operation.name == "rescue":
            for change in operation.changes:
                if change.table == "worker" and after["worker"][change.row["id"]]["stopped_at"] is not None:
                    seen = beaten[change.row["id"]]
                    if seen + lease > operation.now and seen <= operation.now + lease:
                        yield f"worker {change.row['id']} was declared dead within its lease"


def only_the_dead_and_the_stopped_are_declared_dead(history: History) -> Iterator[str]:
    """Whatever the clocks do: who lives, moves and reaches the store keeps what it holds."""
    lives = {life.worker: life for life in history.incarnations}
    beaten: dict[int, float] = {}
    for operation in history.operations:
        for change in operation.changes:
            if change.table != "worker":
                continue
            worker = change.row["id"]
            if operation.name in ("join", "beat"):
                beaten[worker] = operation.at
            elif change.row["state"] == "lost" and _lived(
                history.lease_s, lives.get(worker), beaten[worker], operation.at
            ):
                yield f"worker {worker} was declared dead at {operation.at:.3f} s by {operation.caller}, but lived"


def _lived(lease_s: float, life: Incarnation | None, since: float, at: float) -> bool:
    if life is None or at - since >= lease_s:
        return False  # It joined and never heard of it, or could not reach the store.
    stood_still = any(start <= at and end >= since for start, end in life.stops)
    had_ended = life.ended_at is not None and life.ended_at <= at and life.ending != "lost its lease"
    return not stood_still and not had_ended


def an_orderly_leave_counts_no_attempt(history: History) -> Iterator[str]:
    orderly = {life.worker for life in history.incarnations if life.ending in ("drained", "recycled")}
    ended = {life.worker: life.ended_at for life in history.incarnations}
    for operation, change in changes(history, "finished", "+"):
        row = change.row
        if row["worker"] in orderly and row["status"] == "lost" and operation.name != "rescue":
            yield f"{row['id']} counts as lost by worker {row['worker']}, which left in order at {ended[row['worker']]}"


def bodies_belong_to_claims(history: History) -> Iterator[str]:
    claims = {
        (change.row["id"], change.row["fence"], change.row["worker"]): operation.at
        for operation, change in changes(history, "running", "+")
    }
    seen: set[tuple[str, int]] = set()
    for body in history.bodies:
        claimed_at = claims.get((body.id, body.fence, body.worker))
        if claimed_at is None or claimed_at > body.started_at:
            yield f"{body.id} fence {body.fence} ran on worker {body.worker}, which had not claimed it"
        if (body.id, body.fence) in seen:
            yield f"{body.id} fence {body.fence} ran twice"
        seen.add((body.id, body.fence))


def bodies_do_not_overlap(history: History) -> Iterator[str]:
    """No body runs while a later start of the same execution does, except where it could not be stopped."""
    lives = {life.worker: life for life in history.incarnations}
    by_id: dict[str, list[Body]] = {}
    for body in history.bodies:
        by_id.setdefault(body.id, []).append(body)
    for bodies in by_id.values():
        bodies.sort(key=lambda body: body.fence)
        for old, new in itertools.pairwise(bodies):
            ended_at = _ended_at(old, lives[old.worker])
            if ended_at is not None and ended_at <= new.started_at + SLACK_S:
                continue
            if not _is_excused(history.lease_s, old, new, lives[old.worker]):
                yield (
                    f"{old.id} ({old.job}) fence {old.fence} ran on worker {old.worker} from {old.started_at:.3f} s to "
                    f"{ended_at} s, and fence {new.fence} on worker {new.worker} from {new.started_at:.3f} s"
                )


def _ended_at(body: Body, life: Incarnation) -> float | None:
    ends = [at for at in (body.ended_at, life.ended_at) if at is not None]
    return min(ends, default=None)


def _is_excused(lease_s: float, old: Body, new: Body, life: Incarnation) -> bool:
    """It would not listen, or it stood still."""
    since = old.started_at - lease_s
    return old.is_deaf or any(start <= new.started_at and end >= since for start, end in life.stops)
