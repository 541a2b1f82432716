"""Changes the priority, the time or the queue of an execution that has not started."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.domain.errors import Conflict, NotPending, UsageError
from rota.domain.rank import HEAD_START, Policy, rank
from rota.domain.status import Status
from rota.ops import enqueue, upkeep
from rota.ops.audit import audit
from rota.ops.end_from_outside import Pending, by_place
from rota.ops.submission import Header
from rota.store import reader
from rota.store.hints import Due, Ready
from rota.store.port import Tx


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """The changes; None keeps a value as it is. A time that has passed means now."""

    priority: int | None = None
    run_at: int | None = None
    queue: str | None = None


class _Facts(msgspec.Struct, frozen=True, array_like=True):
    app: str
    job: str
    queue: str
    lane: int
    priority: int
    run_at: int
    deadline: int | None
    requirements: str
    policy: Policy
    rank: int | None
    runs: str | None


def move_in_line(tx: Tx, namespace: str, id: str, wanted: Move, actor: str) -> bool:
    """False if there is nothing to change. Raises `NotPending` if the execution runs or has ended."""
    status = reader.status(tx, namespace, id)
    pending = tx.records("pending", Pending, ids=[id])
    if not pending:
        now = reader.status(tx, namespace, id)
        raise NotPending(f"{id} is {now}: only an execution that has not started can be changed")
    row, facts = pending[0], tx.records("pending_facts", _Facts, namespace=namespace, id=id)[0]
    before = {"priority": facts.priority, "queue": facts.queue, "runAt": row.due_at or facts.run_at}
    after = _after(tx, row, facts, wanted, before)
    if after == before:
        return False
    _write(tx, namespace, row, facts, after)
    _start_or_postpone(tx, row, after["runAt"])
    audit(tx, namespace, actor, "execution.update", id, before={**before, "status": status}, after=after)
    return True


def _after(tx: Tx, row: Pending, facts: _Facts, wanted: Move, before: dict[str, Any]) -> dict[str, Any]:
    after = dict(before)
    if wanted.priority is not None:
        after["priority"] = wanted.priority
    if wanted.queue is not None:
        after["queue"] = wanted.queue
    # A queued execution is due already.
    if wanted.run_at is None or (row.place is Status.QUEUED and wanted.run_at <= tx.now):
        return after
    if row.place is Status.WAITING:
        raise Conflict("it waits, and not for a time: its checks in `why` say what for")
    if facts.deadline is not None and row.first_start_at is None and wanted.run_at > facts.deadline:
        raise UsageError("runAt is after the time by which it must have started, so it would be skipped")
    return {**after, "runAt": max(wanted.run_at, tx.now)}


def _write(tx: Tx, namespace: str, row: Pending, facts: _Facts, after: dict[str, Any]) -> None:
    lane, policy = facts.lane, facts.policy
    if after["queue"] != facts.queue:
        lane, policy = _lane(tx, namespace, row, facts, after["queue"])
    place = None
    if facts.rank is not None:
        due_at = facts.rank if facts.policy is Policy.FIFO else facts.rank + facts.priority * HEAD_START
        place = rank(policy, due_at, after["priority"])
    tx.run(
        "move_in_line",
        id=row.id,
        lane=lane,
        rank=place,
        due_at=after["runAt"],
        run_at=after["runAt"],
        priority=after["priority"],
        queue=after["queue"],
    )
    if row.place is Status.QUEUED and place is not None:
        tx.tell(Ready({lane: place}))


def _lane(tx: Tx, namespace: str, row: Pending, facts: _Facts, queue: str) -> tuple[int, Policy]:
    """The lane in the other queue. The requirements stay those that the job had when the execution was accepted."""
    about = {"namespace": namespace, "app": facts.app}
    tx.run("add_queues", namespace=namespace, queues=[(queue,)])
    tx.run("add_lanes", **about, lanes=[(facts.job, queue, facts.requirements, facts.runs)])
    found = tx.one("lane_in_queue", **about, job=facts.job, queue=queue, requirements=facts.requirements)
    assert found is not None, "the lane was just added"
    lane, policy, max_depth = found
    if row.place is Status.QUEUED:
        header = Header(namespace=namespace, app=facts.app, job=facts.job, queue=queue)
        enqueue.check_depth(tx, header, 1, max_depth)
    return lane, Policy(policy)


def _start_or_postpone(tx: Tx, row: Pending, run_at: int) -> None:
    if row.place is Status.SCHEDULED:
        if run_at <= tx.now:
            upkeep.promote_early(tx, row.id)
        else:
            tx.tell(Due(run_at))
    elif run_at > tx.now:
        tx.run("postpone", run_at=run_at, **by_place([row]))
        tx.tell(Due(run_at))
