"""Pausing and resuming an open run. The runs below it are paused with it."""

from __future__ import annotations

from collections.abc import Sequence

from rota.domain.blocker import Kind
from rota.ops import blockers
from rota.ops.audit import audit
from rota.ops.runs.run import Run, not_open
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
    """False if the run was not paused. Postpones its timeout, and those of runs below it, by the pause."""
    _below(tx, reader.known(id))
    run = _open(tx, namespace, id)
    if run.paused_at is None:
        return False
    tx.run("resume_run", id=id)
    if moved := tx.rows("move_run_deadlines", ids=[one.id for one in _below(tx, id)], by=tx.now - run.paused_at):
        tx.run("place_expiries", rows=moved)
        tx.tell(Due(min(deadline for _, deadline in moved)))
    blockers.lift(tx, Kind.RUN_PAUSED, id)
    audit(tx, namespace, actor, "run.resume", id)
    return True


def not_paused(tx: Tx, ids: Sequence[str]) -> list[str]:
    """Those of the runs that are not paused, nor any run above them."""
    paused = {row[0] for row in tx.rows("paused_runs")} if ids else set()
    still = {id for id, above in tx.rows("ancestors_of", ids=list(ids)) if above in paused} if paused else set()
    return [id for id in ids if id not in still]


def _below(tx: Tx, id: str) -> list[Run]:
    """Locks the run and those below it, from the deepest up, as everywhere."""
    return tx.records("lock_runs", Run, ids=sorted(row[0] for row in tx.rows("runs_below", id=id)))


def _open(tx: Tx, namespace: str, id: str) -> Run:
    runs = [run for run in tx.records("lock_runs", Run, ids=[reader.known(id)]) if run.namespace == namespace]
    if not runs:
        status = reader.status(tx, namespace, id)
        raise not_open(id, status)
    return runs[0]
