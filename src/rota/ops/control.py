"""Cancelling, starting early, replaying and discarding executions, by people and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rota.domain import callback
from rota.domain.errors import Conflict, NotEnded, TooMany, UnknownExecution, UsageError
from rota.domain.status import TERMINAL, Reason, Status
from rota.domain.workflow.letters import BAD
from rota.ids import is_id
from rota.ops import end_from_outside, enqueue, upkeep
from rota.ops.audit import audit
from rota.ops.runs.retry import Request, retry
from rota.ops.runs.run import Run, pinned_graph
from rota.ops.submission import Header, Item
from rota.store import reader, run_reader
from rota.store.port import Tx

MOST_CHILDREN = 1_000


class Original(msgspec.Struct, frozen=True, array_like=True):
    """The columns of an execution that its replay copies."""

    id: str
    app: str
    job: str
    queue: str
    priority: int
    arguments: str
    tags: str | None
    headers: str | None
    overrides: str | None


class Cancelled(msgspec.Struct, frozen=True):
    """The status that a cancel led to, whether it changed something, and how many children it has reached."""

    status: Status
    is_changed: bool
    children: int = 0


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a replay; None keeps the value of the original."""

    arguments: str | None = None
    queue: str | None = None
    priority: int | None = None
    delay_s: float | None = None


def cancel(tx: Tx, namespace: str, id: str, actor: str) -> Status:
    """Cancels a pending execution at once; asks a running one to stop. Returns the status that this led to.

    A run that is undoing cannot be cancelled, nor can the run that undoes it. The undo of a single step can be
    cancelled: it then counts as failed.
    """
    return cancel_with(tx, namespace, id, actor).status


def cancel_with(
    tx: Tx, namespace: str, id: str, actor: str, *, note: str | None = None, children: bool = False
) -> Cancelled:
    """`cancel` with a note for the audit trail; with `children` also what it and its children have enqueued."""
    known = reader.known(id)
    runs = tx.records("lock_runs", Run, ids=[known])  # So that the run cannot begin to undo after this check.
    if found := tx.one("undoing_run", id=known):
        raise Conflict(
            f"run {found[0]} is undoing, which cannot be cancelled: `rota run pause {found[0]}` holds back its undos"
        )
    before = end_from_outside.current_statuses(tx, namespace, [known])
    status = end_from_outside.end(tx, namespace, id, Status.CANCELLED, Reason.CANCELLED)
    below = _cancel_children(tx, namespace, known) if children else 0
    is_asked = any(row.cancel_at is not None or row.status in TERMINAL for row in before)
    is_asked |= any(run.stopping is not None for run in runs)
    is_changed = below > 0 or (not is_asked and status in (Status.CANCELLED, Status.RUNNING))
    after = {"status": status, **({"note": note} if note else {}), **({"children": below} if children else {})}
    audit(tx, namespace, actor, "execution.cancel", id, after=after)
    return Cancelled(status, is_changed, below)


def _cancel_children(tx: Tx, namespace: str, id: str) -> int:
    """How many of them had not ended. Children of children are found even if those between have ended."""
    seen, level, reached = {id}, [id], 0
    while level:
        rows = tx.rows("children_of", namespace=namespace, ids=level, most=MOST_CHILDREN + 1)
        level = sorted({row[0] for row in rows} - seen)
        seen.update(level)
        if len(rows) > MOST_CHILDREN or len(seen) > MOST_CHILDREN:
            raise TooMany(f"it has more than {MOST_CHILDREN:,} children: cancel them with an action on many executions")
        current = end_from_outside.current_statuses(tx, namespace, level) if level else []
        open_ = [row.id for row in current if row.status not in TERMINAL and row.cancel_at is None]
        end_from_outside.end_all(tx, namespace, open_, Status.CANCELLED, Reason.CANCELLED)
        reached += len(open_)
    return reached


def cancel_run(tx: Tx, namespace: str, id: str, actor: str) -> bool:
    """`cancel` for a run. False if the run has ended or is stopping already."""
    row = run_reader.run(tx, namespace, id)
    if row is None:
        raise reader.unknown(id)
    if row.status in TERMINAL or row.stopping is not None:
        return False
    return cancel(tx, namespace, id, actor) in (Status.RUNNING, Status.CANCELLED)


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
            except Conflict:  # The check that raises it comes before the first write.
                continue
        else:
            _repeat(tx, namespace, original, ids[original.id], actor)
        replayed.append(original.id)
    if replayed:
        _mark_replayed(tx, namespace, {id: ids[id] for id in replayed})
        audit(tx, namespace, actor, "dead.replay", f"{len(replayed)} executions", after=replayed[:1000])
    return [ids[id] for id in replayed]


def repeat(tx: Tx, namespace: str, id: str, new_id: str, actor: str, replay: Replay = Replay()) -> str:  # noqa: B008
    """Runs an ended execution again as a new one that names it; removes it from the dead letters if it is there.

    A run of a workflow is retried if a step of it failed. A step of a run is refused: the steps after it would not know
    its new result.
    """
    originals = tx.records("replayable", Original, namespace=namespace, id=reader.known(id))
    if not originals:
        raise UnknownExecution(f"there is no execution {id}")
    if (status := reader.status(tx, namespace, id)) not in TERMINAL:
        raise NotEnded(f"{id} is {status} and has not ended: wait for it, or cancel it first")
    if found := tx.records("run_of_step", _Step, id=id):
        raise UsageError(_instead(tx, found[0]))
    if _to_retry(tx, [id]) or tx.rows("depths_of", ids=[id]):
        if replay.queue is not None or replay.priority is not None or replay.delay_s is not None:
            raise UsageError(
                f"{id} is a run of a workflow: a retry takes new arguments, but no queue, priority or delay"
            )
        return retry(tx, namespace, id, new_id, actor, Request(arguments=replay.arguments))
    if replay.arguments is not None and callback.is_reserved(originals[0].app):
        raise UsageError(f"{id} is a callback, whose body is signed: it is replayed only with its own arguments")
    _repeat(tx, namespace, originals[0], new_id, actor, replay)
    _mark_replayed(tx, namespace, {id: new_id})
    audit(tx, namespace, actor, "execution.replay", id, after=new_id)
    return new_id


def _to_retry(tx: Tx, ids: Sequence[str]) -> set[str]:
    """The runs with steps or undos that a retry would repeat. The other runs are started again from scratch."""
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


def _repeat(
    tx: Tx,
    namespace: str,
    original: Original,
    new_id: str,
    actor: str,
    replay: Replay = Replay(),  # noqa: B008
) -> None:
    given = {name: value for name, value in msgspec.structs.asdict(replay).items() if value is not None}
    same = msgspec.structs.asdict(original) | given
    item = Item(new_id, same.pop("arguments"))
    enqueue.enqueue(tx, Header(namespace=namespace, actor=actor, replay_of=same.pop("id"), **same), [item])


def _mark_replayed(tx: Tx, namespace: str, successors: Mapping[str, str]) -> None:
    """In the order in which every replay locks these rows, to avoid a deadlock: `dead`, then `finished`."""
    tx.run("undead", namespace=namespace, ids=list(successors))
    tx.run("mark_replayed", rows=sorted(successors.items()))
