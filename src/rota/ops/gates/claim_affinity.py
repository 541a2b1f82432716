"""Lane gate: executions that prefer another worker, which last ran one of their kind, are left to it for a while."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rota.domain import affinity, requirement
from rota.domain.affinity import Candidate
from rota.domain.claim import Claim
from rota.ops.gates.claim_state import Claiming, Group
from rota.store.port import Row

Key = tuple[str, str, str]
"""A namespace, an app, and an argument with its value."""
WINDOW = 200
"""How many executions from the front of a lane are read. Those behind them follow once these are taken."""


def claim_affinity(claiming: Claiming, group: Group) -> None:
    if group.heads and requirement.affinity(group.requirements) is not None:
        group.choose = partial(_choose, claiming, group, claiming.once("affinity keys", partial(_keys, claiming)))


def _keys(claiming: Claiming) -> set[Key]:
    """A set for the keys of the executions that are taken; the claim stores them at its end."""
    keys: set[Key] = set()
    claiming.at_end.append(partial(_keep, claiming, keys))
    return keys


def _choose(claiming: Claiming, group: Group, keys: set[Key], lane: int, highest: int, most: int) -> list[Row]:
    tx, (argument, wait_s) = claiming.tx, requirement.affinity(group.requirements) or ("", 0.0)
    window = tx.rows("lane_window", lane=lane, highest=highest, most=WINDOW)
    if not window:
        return []
    ranks: dict[str, int] = dict(window)
    ids = list(ranks)
    about = tx.rows("affinity_values", ids=ids, lowest=min(ids), highest=max(ids), argument=argument)
    found = sorted((Candidate(row[0], ranks[row[0]], *row[1:]) for row in about), key=lambda one: (one.rank, one.id))
    holders = _holders(claiming, group, [affinity.key(argument, one.value) for one in found])
    free = affinity.takeable(found, argument, wait_s, holders, claiming.worker, tx.now)
    claiming.left_some = claiming.left_some or len(free) < len(found)
    chosen = {one.id: one for one in free[:most]}
    taken = tx.records("claim_these", tuple, ids=list(chosen), worker=claiming.worker) if chosen else []
    taken_keys = {affinity.key(argument, chosen[row[0]].value) for row in taken}
    keys.update((group.namespace, group.app, key) for key in taken_keys if key is not None)
    return taken


def _keep(claiming: Claiming, keys: set[Key], started: Sequence[Claim]) -> None:
    """Stores that executions with these keys prefer this worker. Sorted, to avoid a deadlock between two claims."""
    if keys:
        claiming.tx.run("keep_affinity", keys=sorted(keys), worker=claiming.worker)


def _holders(claiming: Claiming, group: Group, keys: Sequence[str | None]) -> dict[str, int]:
    known = sorted({key for key in keys if key is not None})
    where = {"namespace": group.namespace, "app": group.app}
    return dict(claiming.tx.rows("affinity_holders", keys=known, **where)) if known else {}
