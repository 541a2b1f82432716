"""When the chores are looked at again."""

from __future__ import annotations

from typing import Any, cast

from rota.clock import ManualClock
from rota.domain.served import Served
from rota.engine.port import SupervisorStore
from rota.engine.upkeep import Upkeep
from rota.ops.runs.expand import LOOK_S
from rota.ops.upkeep import Chores

POLL_S = 2.0


class WithAWaitingMap:
    """A store with a map whose last chunk waits to be claimed: the chore of runs only puts it off."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    async def look(self, *_: Any) -> Chores:
        now = self._clock.now()
        return Chores(now=now, next_due_at=None, next_deadline=None, dead_workers=False, next_run_at=now)

    async def work_on_runs(self) -> int:
        return 0


async def test_a_map_that_was_put_off_is_looked_at_before_the_next_poll() -> None:
    clock = ManualClock()
    store = cast(SupervisorStore, WithAWaitingMap(clock))
    served = Served.one("default", "shop", None, [])
    chores = Upkeep(
        store, clock, 10.0, POLL_S, served=served, found=lambda lanes: None, ours=list, steady_s=lambda: 0.0
    )
    assert await chores.step() == LOOK_S
