"""Lane gate: the worker has a process for each isolated job and each command that it takes."""

from __future__ import annotations

from rota.domain import requirement
from rota.ops.gates.claim_state import Claiming, Group


def processes(claiming: Claiming, group: Group) -> None:
    group.limit(requirement.within(group.requirements, claiming.room))
