"""Lane gate: the worker has the pool, the tags and enough of the resources that the lane needs."""

from __future__ import annotations

from functools import partial

from rota.domain import requirement
from rota.domain.instant import MICROSECONDS
from rota.domain.requirement import Offers
from rota.ops.gates.claim_state import Claiming, Group

STARVES_S = 60
PLAIN_OFFERS = requirement.encode(Offers())


def offers(claiming: Claiming, group: Group) -> None:
    if not group.requirements and claiming.offers == PLAIN_OFFERS:
        return
    most = requirement.most(group.requirements, claiming.offers)
    group.fits = most != 0
    if most and group.heads:
        used = claiming.once("used resources", partial(_used, claiming))
        most = requirement.most(group.requirements, claiming.offers, used)
        group.starves = most == 0 and group.head < claiming.tx.now - STARVES_S * MICROSECONDS
    group.limit(most)


def _used(claiming: Claiming) -> tuple[tuple[str, float], ...]:
    """The resources that the executions of this worker hold already."""
    return requirement.used(claiming.tx.rows("held_in_lanes", worker=claiming.worker))


def starving_lanes(claiming: Claiming, group: Group) -> None:
    """A lane that has waited longer than `STARVES_S` for a resource blocks later lanes that compete for it."""
    if group.heads and any(_blocks(other, group) for other in claiming.groups if other.starves):
        group.limit(0)


def _blocks(starving: Group, other: Group) -> bool:
    return other.head > starving.head and requirement.compete(starving.requirements, other.requirements)
