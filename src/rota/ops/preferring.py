"""Claiming from a lane whose executions prefer the worker that ran the last one of their kind."""

from __future__ import annotations

from collections.abc import Sequence

from rota.domain import affinity
from rota.domain.affinity import Candidate
from rota.store.port import Row, Tx

WINDOW = 200
"""So many from the front of a lane are looked at. What is behind them waits no longer than they may."""


def take(
    tx: Tx, worker: int, namespace: str, app: str, lane: int, argument: str, wait_s: float, highest: int, most: int
) -> tuple[list[Row], list[str], bool]:
    """What the worker took, the keys that are its own from now on, and whether something was left for others."""
    window = tx.rows("lane_window", lane=lane, highest=highest, most=WINDOW)
    if not window:
        return [], [], False
    ranks: dict[str, int] = dict(window)
    ids = list(ranks)
    about = tx.rows("affinity_values", ids=ids, lowest=min(ids), highest=max(ids), argument=argument)
    found = sorted((Candidate(row[0], ranks[row[0]], *row[1:]) for row in about), key=lambda one: (one.rank, one.id))
    holders = _holders(tx, namespace, app, [affinity.key(argument, one.value) for one in found])
    free = affinity.takeable(found, argument, wait_s, holders, worker, tx.now)
    chosen = {one.id: one for one in free[:most]}
    taken = tx.records("claim_these", tuple, ids=list(chosen), worker=worker) if chosen else []
    keys = {affinity.key(argument, chosen[row[0]].value) for row in taken}
    return taken, sorted(key for key in keys if key is not None), len(free) < len(found)


def keep(tx: Tx, worker: int, namespace: str, app: str, keys: Sequence[str]) -> None:
    """From now on these are preferably run here. Once for each claim, so that nobody waits for us crosswise."""
    tx.run("keep_affinity", namespace=namespace, app=app, worker=worker, keys=[(key,) for key in sorted(set(keys))])


def _holders(tx: Tx, namespace: str, app: str, keys: Sequence[str | None]) -> dict[str, int]:
    known = sorted({key for key in keys if key is not None})
    return dict(tx.rows("affinity_holders", namespace=namespace, app=app, keys=known)) if known else {}
