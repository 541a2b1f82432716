"""Cancelling, starting early, replaying and discarding executions, by people and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rota.domain.errors import Conflict, UnknownExecution, UsageError
from rota.domain.status import Reason, Status
from rota.domain.workflow.letters import BAD
from rota.ids import is_id
from rota.ops import end_from_outside, enqueue, upkeep
from rota.ops.audit import audit
from rota.ops.runs.retry import Request, retry
from rota.ops.runs.run import Run, pinned_graph
from rota.ops.submission import Header, Item
from rota.store import reader
from rota.store.port import Tx


class Original(msgspec.Struct, frozen=True, array_like=True):
    """The columns of an execution that its replay has, too."""

    id: str
    app: str
    job: str
    queue: str
    priority: int
    arguments: str
    tags: str | None
    headers: str | None
    overrides: str | None


def cancel(tx: Tx, namespace: str, id: str, actor: str) -> Status:
    """Cancels a pending execution at once; asks a running one to stop. Returns the status that this led to.

    A run that is undoing cannot be cancelled, nor can its undo. One undo of a step can: it counts as failed.
    """
    known = reader.known(id)
    tx.records("lock_runs", Run, ids=[known])
    if found := tx.one("is_undo", id=known):
        raise Conflict(
            f"run {found[0]} is undoing, which cannot be cancelled: `rota run pause {found[0]}` holds its undos"
        )
    status = end_from_outside.end(tx, namespace, id, Status.CANCELLED, Reason.CANCELLED)
    audit(tx, namespace, actor, "execution.cancel", id, after={"status": status})
    return status


def run_now(tx: Tx, namespace: str, id: str, actor: str) -> Status:
    """Queues a scheduled or retrying execution before its time; returns the status afterwards."""
    before = reader.status(tx, namespace, id)
    if not upkeep.promote_early(tx, id):
        return reader.status(tx, namespace, id)
    audit(tx, namespace, actor, "execution.run_now", id, before={"status": before}, after={"status": Status.QUEUED})
    return Status.QUEUED


def replay(tx: Tx, namespace: str, ids: dict[str, str], actor: str) -> list[str]:
    """Runs dead letters again as new executions; `ids` maps each dead letter to the id of its successor.

    A run of a workflow is retried: the steps that succeeded are kept. It stays a dead letter if one of their results
    has been deleted. Returns the successors.
    """
    originals = tx.records("dead_to_replay", Original, namespace=namespace, ids=[id for id in ids if is_id(id)])
    runs = _to_retry(tx, [original.id for original in originals])
    replayed: list[str] = []
    for original in originals:
        if original.id in runs:
            try:
                retry(tx, namespace, original.id, ids[original.id], actor, Request())
            except Conflict:  # Nothing is written before the check that raises it.
                continue
        else:
            _repeat(tx, namespace, original, ids[original.id], actor)
        replayed.append(original.id)
    if replayed:
        _mark_replayed(tx, namespace, {id: ids[id] for id in replayed})
        audit(tx, namespace, actor, "dead.replay", f"{len(replayed)} executions", after=replayed[:1000])
    return [ids[id] for id in replayed]


def repeat(tx: Tx, namespace: str, id: str, new_id: str, actor: str) -> str:
    """Runs any execution again as a new one that names it; removes it from the dead letters if it is there.

    A run of a workflow is retried if a step of it failed. A step of a run is refused: the steps after it would not know
    its new result.
    """
    originals = tx.records("replayable", Original, namespace=namespace, id=reader.known(id))
    if not originals:
        raise UnknownExecution(f"there is no execution {id}")
    if found := tx.records("run_of_step", _Step, id=id):
        raise UsageError(_instead(tx, found[0]))
    if _to_retry(tx, [id]) or tx.rows("depths_of", ids=[id]):
        return retry(tx, namespace, id, new_id, actor, Request())
    _repeat(tx, namespace, originals[0], new_id, actor)
    _mark_replayed(tx, namespace, {id: new_id})
    audit(tx, namespace, actor, "execution.replay", id, after=new_id)
    return new_id


def _to_retry(tx: Tx, ids: Sequence[str]) -> set[str]:
    """The runs with a step that a retry would run again. The others are repeated as a whole."""
    rows = tx.rows("ended_among", ids=list(ids))
    return {id for id, letters, undo in rows if undo is not None or any(one in BAD for one in letters.lower())}


class _Step(msgspec.Struct, frozen=True, array_like=True):
    """A step, and the version of the workflow that its run is of."""

    id: str
    run: str
    root: str
    number: int | None
    namespace: str
    app: str
    job: str
    version: int
    graph: str
    undo_of: str | None


def _instead(tx: Tx, step: _Step) -> str:
    if step.number is None or step.undo_of is not None:
        return f"{step.id} belongs to the undo of a run and is not replayed alone: `rota run retry {step.root}`"
    name = pinned_graph(tx, step).steps[step.number].id
    command = f"rota run retry {step.root}" + (f" --from {name}" if step.run == step.root else "")
    return f"{step.id} is step {name} of run {step.run} and is not replayed alone: `{command}`"


def discard(tx: Tx, namespace: str, ids: Sequence[str], actor: str) -> int:
    """Removes executions from the dead letters; their history stays."""
    gone = tx.changed("undead", namespace=namespace, ids=[id for id in ids if is_id(id)])
    if gone:
        audit(tx, namespace, actor, "dead.discard", f"{gone} executions", after=list(ids)[:1000])
    return gone


def _repeat(tx: Tx, namespace: str, original: Original, new_id: str, actor: str) -> None:
    same = msgspec.structs.asdict(original)
    item = Item(new_id, same.pop("arguments"))
    enqueue.enqueue(tx, Header(namespace=namespace, actor=actor, replay_of=same.pop("id"), **same), [item])


def _mark_replayed(tx: Tx, namespace: str, successors: Mapping[str, str]) -> None:
    """In the order in which every replay locks these rows, to avoid a deadlock: `dead`, then `finished`."""
    tx.run("undead", namespace=namespace, ids=list(successors))
    tx.run("mark_replayed", rows=sorted(successors.items()))
