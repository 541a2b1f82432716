"""Checks twice per lease whether another deploy of the app should be in force, and logs when ours is superseded.

A worker that joins applies its deploy itself. This loop is for a roll-back: when the workers of a newer deploy are
gone, any supervisor of the app applies the older deploy, whose content is in the database.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from rota.domain.deploy import GRACE_LEASES
from rota.engine.loop import Loop
from rota.engine.port import SupervisorStore
from rota.ops import deploy

log = logging.getLogger("rota.engine")

LOOKS_PER_LEASE = 2


class Rollout:
    """The deploys of one app; `ours` are the workers of this supervisor."""

    def __init__(
        self, store: SupervisorStore, namespace: str, app: str, lease_s: float, ours: Callable[[], Sequence[int]]
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._app = app
        self._lease_s = lease_s
        self._ours = ours
        self._superseded: set[int] = set()
        self.loop = Loop("rollout", self.step)

    async def step(self) -> float | None:
        found = await self._store.look_at_deploys(self._namespace, self._app, self._lease_s, self._ours())
        if found.due != found.applied:
            await self._store.settle_deploy(self._namespace, self._app, self._lease_s)
        self._log(found)
        return self._lease_s / LOOKS_PER_LEASE

    def _log(self, found: deploy.Look) -> None:
        """Once when a deploy of our workers is superseded, and once when it is in force again."""
        for number in found.ours:
            if number != found.due and number not in self._superseded:
                log.warning(
                    "deploy %d of app %s is superseded: the schedules and job versions of deploy %s are in force until "
                    "it has had no live worker for %g s; `rota deploys use %s %d` puts deploy %d in force now",
                    *(number, self._app, found.due, GRACE_LEASES * self._lease_s, self._app, number, number),
                )
            elif number == found.due and number in self._superseded:
                log.warning("deploy %d of app %s is in force again", number, self._app)
        self._superseded = {number for number in found.ours if number != found.due}
