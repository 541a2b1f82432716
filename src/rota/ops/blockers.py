"""Blockers: the one way in which an execution waits, and in which its wait ends.

A waiting execution keeps its rank and has one blocker or more. `release` removes one blocker from the executions with
the lowest ranks, in a bounded batch; those without any blocker left move to `ready` with the rank that they had.

A pause that ends may have a million executions behind it. `lift` records that the blocker has ended and releases the
first batch. Upkeep releases the others batch by batch (`release_lifted`), in any supervisor, so the process that
began it may crash. Until the last batch, claims put newer executions behind the same blocker (`fronts`): no execution
overtakes an older one that still waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rota.domain.blocker import Kind
from rota.store.hints import Ready
from rota.store.port import Tx

MOST = 500
"""Executions in one batch: the transaction stays short."""

Blocked = tuple[str, Kind, str]
"""An execution, and the kind and key of a blocker."""


def block(tx: Tx, blocked: Sequence[Blocked]) -> None:
    """Moves executions behind blockers. The caller has claimed them in this transaction, or has locked their rows."""
    tx.run("block", ids=sorted({id for id, _, _ in blocked}), blockers=list(blocked))


def release(tx: Tx, kind: Kind, key: str, most: int) -> int:
    """Removes this blocker from up to `most` executions, lowest rank first. Returns from how many."""
    found = tx.rows("first_blocked", kind=kind, key=key, most=most)
    if found:
        tx.run("release", kind=kind, key=key, ids=sorted(id for id, _, _ in found))
        tx.tell(Ready.of((lane, rank) for _, lane, rank in found))
    return len(found)


def release_first(tx: Tx, kind: Kind, key: str) -> str | None:
    """Removes this blocker from one execution, which it returns.

    None if another transaction holds the first one: upkeep removes the blocker if that execution does not end.
    """
    found = tx.rows("first_blocked", kind=kind, key=key, most=1)
    if not found:
        tx.run("lift_blocker", kind=kind, key=key)
        return None
    release(tx, kind, key, 1)
    return str(found[0][0])


def lift(tx: Tx, kind: Kind, key: str) -> None:
    """Ends a blocker for all executions behind it: the first batch at once, the others by upkeep."""
    tx.run("lift_blocker", kind=kind, key=key)
    _release_batch(tx, kind, key)


def unlift(tx: Tx, kind: Kind, key: str) -> None:
    """Puts a lifted blocker in force again: executions behind it that were not released yet keep waiting."""
    tx.run("unlift_blocker", kind=kind, key=key)


def release_lifted(tx: Tx) -> bool:
    """Releases one batch of one lifted blocker. False if that changed nothing."""
    found = tx.one("next_lifted")
    return found is not None and _release_batch(tx, Kind(found[0]), found[1])


def fronts(tx: Tx, kind: Kind, keys: Iterable[str]) -> dict[str, int]:
    """For each of these keys whose blocker is lifted: the lowest rank of an execution that still waits behind it.

    Locks their rows in `lifted_blocker`, so that none is deleted before this transaction ends.
    """
    found = tx.rows("lifted_fronts", kind=kind, keys=sorted(keys))
    return {key: rank for key, rank in found if rank is not None}


def _release_batch(tx: Tx, kind: Kind, key: str) -> bool:
    which = {"kind": kind, "key": key}
    if kind is Kind.DEPENDENCY:  # The end of an upstream starts one execution.
        released = release(tx, kind, key, 1)
        is_over = released > 0 or tx.one("has_blocked", **which) is None
    else:
        released = release(tx, kind, key, MOST)
        is_empty = released < MOST and tx.one("lock_lifted", **which) and tx.one("has_blocked", **which) is None
        is_over = bool(is_empty)
    tx.run("unlift_blocker" if is_over else "note_release", **which)
    return bool(released or is_over)
