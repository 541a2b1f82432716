"""Lane gate: no breaker of the lane is open, except for the one probe that a half-open breaker allows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rota.domain import breaker, requirement
from rota.domain.claim import Claim
from rota.ops import breakers
from rota.ops.gates.claim_state import Claiming, Group
from rota.store.load_reader import open_circuits


def open_breakers(claiming: Claiming, group: Group) -> None:
    wanted = requirement.breakers(group.requirements) if group.heads else []
    if not wanted:
        return
    read = partial(open_circuits, claiming.tx, group.namespace)
    names = breaker.gate(wanted, claiming.once(f"breakers of {group.namespace}", read), claiming.tx.now)
    if names is None:
        group.limit(0)
    elif names:
        group.limit(1)
        group.permit = partial(_probe, claiming, group, names)


def _probe(claiming: Claiming, group: Group, names: Sequence[str]) -> bool:
    if not breakers.probe(claiming.tx, group.namespace, names):
        return False
    claiming.at_end.append(partial(_release, claiming, group, frozenset(group.heads), names))
    return True


def _release(
    claiming: Claiming, group: Group, lanes: frozenset[int], names: Sequence[str], started: Sequence[Claim]
) -> None:
    """If the probe did not start (job paused, deadline passed, claimed elsewhere), another execution can probe."""
    if lanes.isdisjoint(claim.lane for claim in started):
        breakers.release(claiming.tx, group.namespace, names)
