"""Pausing and resuming an open run. The runs below it are paused with it."""

from __future__ import annotations

from rota.domain.blocker import Kind
from rota.domain.errors import Conflict
from rota.ops import blockers
from rota.ops.audit import audit
from rota.ops.runs.run import Run
from rota.store import reader
from rota.store.hints import Due
from rota.store.port import Tx


def pause(tx: Tx, namespace: str, id: str, actor: str, note: str = "") -> bool:
    """No step of the run starts until `resume`; running steps end and count. False if it was paused already.

    Steps that are ready stay so: the claim that meets one moves it behind the pause (`gates/paused_runs.py`).
    """
    run = _open(tx, namespace, id)
    if run.paused_at is not None:
        return False
    tx.run("pause_run", id=id, actor=actor, note=note or None)
    audit(tx, namespace, actor, "run.pause", id, after={"note": note})
    return True


def resume(tx: Tx, namespace: str, id: str, actor: str) -> bool:
    """False if the run was not paused. Its timeout is later by as long as it was paused."""
    run = _open(tx, namespace, id)
    if run.paused_at is None:
        return False
    deadline = None if run.deadline is None else run.deadline + tx.now - run.paused_at
    tx.run("resume_run", id=id, deadline=deadline)
    if deadline is not None:
        tx.run("place_expiries", rows=[(id, deadline)])
        tx.tell(Due(deadline))
    blockers.lift(tx, Kind.RUN_PAUSED, id)
    audit(tx, namespace, actor, "run.resume", id)
    return True


def _open(tx: Tx, namespace: str, id: str) -> Run:
    runs = [run for run in tx.records("lock_runs", Run, ids=[reader.known(id)]) if run.namespace == namespace]
    if not runs:
        status = reader.status(tx, namespace, id)
        raise Conflict(f"{id} is not an open run: it is {status}")
    return runs[0]
