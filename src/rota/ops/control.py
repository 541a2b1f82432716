"""Cancelling, starting early, replaying and discarding executions, by people and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rota.domain.errors import UnknownExecution
from rota.domain.status import Reason, Status
from rota.ids import is_id
from rota.ops import end_from_outside, enqueue, upkeep
from rota.ops.audit import audit
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
    """Cancels a pending execution at once; asks a running one to stop. Returns the status that this led to."""
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
    """Runs dead letters again as new executions; `ids` maps each dead letter to the id of its successor."""
    originals = tx.records("dead_to_replay", Original, namespace=namespace, ids=[id for id in ids if is_id(id)])
    for original in originals:
        _repeat(tx, namespace, original, ids[original.id], actor)
    _mark_replayed(tx, namespace, {original.id: ids[original.id] for original in originals})
    if originals:
        replayed = [original.id for original in originals]
        audit(tx, namespace, actor, "dead.replay", f"{len(replayed)} executions", after=replayed[:1000])
    return [ids[original.id] for original in originals]


def repeat(tx: Tx, namespace: str, id: str, new_id: str, actor: str) -> str:
    """Runs any execution again as a new one that names it; removes it from the dead letters if it is there."""
    originals = tx.records("replayable", Original, namespace=namespace, id=reader.known(id))
    if not originals:
        raise UnknownExecution(f"there is no execution {id}")
    _repeat(tx, namespace, originals[0], new_id, actor)
    _mark_replayed(tx, namespace, {id: new_id})
    audit(tx, namespace, actor, "execution.replay", id, after=new_id)
    return new_id


def discard(tx: Tx, namespace: str, ids: Sequence[str], actor: str) -> int:
    """Removes executions from the dead letters; their history stays."""
    gone = tx.run("undead", namespace=namespace, ids=[id for id in ids if is_id(id)])
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
