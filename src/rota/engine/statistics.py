"""Folds the statistics and samples the queues. Every supervisor looks, and one of them does the work.

A cheap read says whether there is anything to do, so an idle supervisor writes only one sample a minute.
"""

from __future__ import annotations

import logging

from rota.clock import Clock
from rota.domain.errors import StoreError
from rota.engine.loop import Loop
from rota.engine.port import SupervisorStore

log = logging.getLogger("rota.engine")

LOOK_S = 5.0
TROUBLE_S = 60.0
PAUSE_S = 0.02
"""Between two transactions, because others wait for the write lock of an SQLite file."""


class StatisticsUpkeep:
    """One loop for folding and sampling."""

    def __init__(self, store: SupervisorStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.loop = Loop("statistics", self.step)

    async def step(self) -> float:
        try:
            if await self._store.keep_statistics():
                return PAUSE_S
        except StoreError:
            raise
        except Exception:
            # The worker must not end because statistics cannot be kept.
            log.exception("the statistics could not be kept")
            return TROUBLE_S
        # Not at the same time as the supervisors that were started together with this one.
        return LOOK_S * (0.8 + 0.4 * self._clock.random())
