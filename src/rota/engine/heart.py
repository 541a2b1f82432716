"""Heartbeats: what keeps the leases of a supervisor's workers alive.

The store decides by its own clock whether a lease still holds. We decide by our monotonic clock when to stop believing
in it: from the moment the last acknowledged heartbeat was sent, plus the lease, minus a margin. So we let go before
anybody else may take over, even if the store cannot be reached or this process was stopped for a while.
"""

from __future__ import annotations

from collections.abc import Callable

from rota.clock import Clock
from rota.domain.errors import StoreError
from rota.engine.bridge import Bridge
from rota.engine.loop import Loop
from rota.ops import fleet

MARGIN = 0.1
STUCK = 0.35
"""The part of a lease that a beat may take before somebody should ask what holds it up."""
BEATS_PER_LEASE = 4
CHECKS_PER_LEASE = 20


class Heart:
    """Beats for a set of workers; `lost(worker)` is called once for each whose lease is gone.

    `stuck()` is called, again and again, while a beat takes so long that leases are in danger, `drain(worker)` for one
    that somebody has asked to drain, and `renewed(worker, until)` whenever a lease holds for longer.
    """

    def __init__(
        self,
        bridge: Bridge,
        clock: Clock,
        lease_s: float,
        lost: Callable[[int], None],
        stuck: Callable[[], None] = lambda: None,
        drain: Callable[[int], None] = lambda _: None,
        renewed: Callable[[int, float], None] = lambda worker, until: None,
    ) -> None:
        self._bridge = bridge
        self._clock = clock
        self._lease_s = lease_s
        self._lost = lost
        self._stuck = stuck
        self._drain, self._renewed = drain, renewed
        self._sent_at: float | None = None
        self._good_until: dict[int, float] = {}
        self.loop = Loop("heart", self.step)
        self.watch = Loop("lease watch", self.check)

    def add(self, worker: int, joined_at: float) -> None:
        """`joined_at` is our monotonic time just before the worker joined."""
        self._good_until[worker] = self._until(joined_at)

    def tell(self, worker: int) -> None:
        """Says how long its lease holds, as after every beat."""
        if worker in self._good_until:
            self._renewed(worker, self._good_until[worker])

    def remove(self, worker: int) -> None:
        self._good_until.pop(worker, None)

    async def step(self) -> float | None:
        if self._good_until:
            self._sent_at = sent_at = self._clock.monotonic()
            asked = list(self._good_until)
            try:
                alive = await self._bridge.transact(fleet.beat, asked, self._lease_s)
            finally:
                self._sent_at = None
            for worker in asked:
                if worker in alive:
                    self._renew(worker, sent_at)
                    if alive[worker] == fleet.TO_DRAIN:
                        self._drain(worker)
                else:
                    self._lose(worker)
        return self._lease_s / BEATS_PER_LEASE

    async def check(self) -> float | None:
        """Apart from the beats, which may hang in the store."""
        now = self._clock.monotonic()
        if self._sent_at is not None and now - self._sent_at >= STUCK * self._lease_s:
            self._stuck()
        for worker, until in list(self._good_until.items()):
            if now >= until:
                self._lose(worker)
        return self._lease_s / CHECKS_PER_LEASE

    def _renew(self, worker: int, sent_at: float) -> None:
        if worker in self._good_until:
            self._good_until[worker] = max(self._good_until[worker], self._until(sent_at))
            self.tell(worker)

    def _lose(self, worker: int) -> None:
        if self._good_until.pop(worker, None) is not None:
            self._lost(worker)

    def _until(self, sent_at: float) -> float:
        return sent_at + self._lease_s * (1 - MARGIN)


async def farewell(bridge: Bridge, worker: int) -> None:
    """Leaves the fleet in order; if the store is away, the lease will say it for us."""
    try:
        await bridge.transact(fleet.leave, worker)
    except StoreError:
        return
