"""Claiming: ready rows become running rows of one worker, each with a new fence."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import msgspec
from msgspec.structs import astuple, replace

from rota.domain.claim import Claim, Taken
from rota.domain.errors import LeaseLost
from rota.domain.outcome import Expired
from rota.ids import FIRST_ID
from rota.ops import finish, notes
from rota.store.port import Tx

SLACK = 100_000
"""Microseconds of rank by which one lane may run ahead of another, so that a claim takes few, long pieces."""
MOST_PIECES = 16
MOST_BYTES = 32 * 1024 * 1024
_place, _arguments = attrgetter("rank", "id"), attrgetter("arguments")
FIRST_RANK, LAST_RANK = -(2**63), 2**63 - 1
Mark = tuple[int, int, str]
"""How far a claimer has come: a lane, and the rank and id of the last row that it took there."""


class Task(msgspec.Struct, frozen=True, array_like=True):
    """The other part of a claim: what there is to run."""

    id: str
    job: str
    arguments: str
    deadline: int | None
    run_at: int
    created_at: int
    tick: int | None = None
    catch_up: int | None = None


class Claimed(msgspec.Struct, frozen=True):
    """What a claim brought, the lanes that it looked at, and how far it has come in those that it took from."""

    claims: list[Claim]
    lanes: frozenset[int]
    marks: list[Mark] = []


def claim(
    tx: Tx,
    worker: int,
    namespace: str,
    app: str,
    queues: Sequence[str] | None,
    slots: int,
    marks: Sequence[Mark] = (),
) -> Claimed:
    """Up to `slots` executions, lowest rank first across the app's lanes; nothing for a worker without a live lease.

    Lanes are read from behind the claimer's `marks`. On PostgreSQL taken rows stay in the index until they are
    vacuumed, and without a mark every claim would wade through those of all claims before it. What came back or was
    committed late is below the mark: a claim without marks finds it.
    """
    heads = _heads(tx, worker, namespace, app, queues, marks)
    waiting = {lane: head for lane, head in heads if head is not None}
    reached = {lane: (rank, id) for lane, rank, id in marks}
    taken: list[Claim] = []
    for _ in range(MOST_PIECES):
        if not waiting or len(taken) >= slots:
            break
        taken += _piece(tx, worker, waiting, reached, slots - len(taken))
    return Claimed(
        _startable(tx, worker, taken),
        frozenset(lane for lane, _ in heads),
        [(lane, *reached[lane]) for lane in {claim.lane for claim in taken}],
    )


def _heads(
    tx: Tx, worker: int, namespace: str, app: str, queues: Sequence[str] | None, marks: Sequence[Mark]
) -> list[tuple[int, int | None]]:
    """Every lane of the worker's queues, with the lowest rank behind its mark; nothing if it may not claim."""
    found = tx.rows(
        "claim_heads",
        worker=worker,
        namespace=namespace,
        app=app,
        all_queues=queues is None,
        queues=list(queues or ()),
        marks=list(marks),
        no_rank=FIRST_RANK,
        no_id=FIRST_ID,
    )
    if not found:
        raise LeaseLost(f"worker {worker} is not in the fleet any more")
    # One that drains, or whose lease ran out because the database's clock jumped, may still finish what it runs.
    return [(lane, head) for may_claim, lane, head in found if may_claim and lane is not None]


def _piece(tx: Tx, worker: int, waiting: dict[int, int], reached: dict[int, tuple[int, str]], most: int) -> list[Claim]:
    """Takes from the lane with the lowest head, as far as the next lane's head allows."""
    lane = min(waiting, key=lambda lane: (waiting[lane], lane))
    del waiting[lane]
    highest = min(waiting.values(), default=LAST_RANK - SLACK) + SLACK
    rank, id = reached.get(lane, (FIRST_RANK, FIRST_ID))
    where = {"lane": lane, "rank": rank, "id": id, "highest": highest}
    found = _complete(tx, tx.records("claim", Taken, worker=worker, most=most, **where))
    kept = _bounded(found)
    if len(kept) < len(found):
        tx.run("unclaim", ids=[claim.id for claim in found[len(kept) :]])
    if kept:
        rank, id = reached[lane] = (kept[-1].rank, kept[-1].id)
        if waiting and len(kept) < most:
            waiting.update((row[0], row[1]) for row in tx.rows("lane_head", lane=lane, rank=rank, id=id))
    return kept


def _complete(tx: Tx, taken: list[Taken]) -> list[Claim]:
    """What was taken, with what there is to run, in the order of the lane."""
    if not taken:
        return []
    ids = [row.id for row in taken]
    tasks = {task.id: task for task in tx.records("claimed", Task, ids=ids, lowest=min(ids), highest=max(ids))}
    taken.sort(key=_place)
    claims = [Claim(*astuple(row), *astuple(tasks[row.id])[1:]) for row in taken]
    again = [claim.id for claim in claims if claim.fence > 1]
    return _restored(claims, notes.checkpoints(tx, again)) if again else claims


def _restored(claims: list[Claim], kept: dict[str, str]) -> list[Claim]:
    """With what earlier attempts have kept for these."""
    return [replace(claim, checkpoint=kept[claim.id]) if claim.id in kept else claim for claim in claims]


def _bounded(claims: list[Claim]) -> list[Claim]:
    """As many from the front as can be handed over in one piece; one at least, however large it is."""
    if sum(map(len, map(_arguments, claims))) <= MOST_BYTES:
        return claims
    total = 0
    for count, claim in enumerate(claims):
        total += len(claim.arguments)
        if count and total > MOST_BYTES:
            return claims[:count]
    return claims


def _startable(tx: Tx, worker: int, taken: list[Claim]) -> list[Claim]:
    """Without those whose start deadline passed while they waited: they end as skipped and never start."""
    late = [claim for claim in taken if claim.deadline is not None and _is_late(claim)]
    if not late:
        return taken
    finish.settle(tx, [(claim.held_by(worker), finish.Finished(claim.id, claim.fence, Expired())) for claim in late])
    gone = {claim.id for claim in late}
    return [claim for claim in taken if claim.id not in gone]


def _is_late(claim: Claim) -> bool:
    """Only a first start can be too late: what has started before is past its deadline by right."""
    never_started = claim.first_start_at == claim.started_at
    return never_started and claim.deadline is not None and claim.deadline < claim.started_at
