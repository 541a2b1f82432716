"""Chores for the executions of all workers. Every supervisor does them; one supervisor is enough.

A cheap read says whether there is a chore to do and when the next one is due, so idle supervisors write nothing and
sleep until then. A hint about an earlier execution wakes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from rota.clock import Clock
from rota.domain import schedule
from rota.domain.instant import MICROSECONDS
from rota.domain.served import Served
from rota.engine.loop import Loop
from rota.engine.port import SupervisorStore
from rota.engine.report_worker_end import log_failures
from rota.ops import firing, upkeep
from rota.ops.runs.expand import LOOK_S
from rota.store.hints import Due

LOOK_SHARE = 20
LONGEST_PAUSE_S = 10.0
FOLLOW_S = 5.0
EVENTS_S = 1.0
"""How often upkeep looks for undelivered events while there are subscriptions. An event that was emitted in a
transaction of the caller is delivered within this time, even if its hint is lost or was not sent."""
STREAMS = 2
STREAM_S = 0.25
STREAM_SHARDS = 8


class Upkeep:
    """Promotes due executions, expires late ones, fires schedules, and rescues the executions of dead workers."""

    def __init__(
        self,
        store: SupervisorStore,
        clock: Clock,
        lease_s: float,
        poll_s: float,
        *,
        served: Served,
        found: Callable[[dict[int, int]], None],
        ours: Callable[[], Sequence[int]],
        steady_s: Callable[[], float],
    ) -> None:
        """`ours` are the workers whose end the caller reports itself.

        `steady_s()` says for how long the caller's own heartbeats have been written. After an outage of the database
        every lease has run out: no worker is declared dead before the live ones had a whole lease to renew theirs.
        """
        self._store = store
        self._clock = clock
        self._lease_s = lease_s
        self._poll_s = poll_s
        self.served = served
        """Whose ready executions to look for; `found(lanes)` is called with the answer."""
        self._found = found
        self._ours = ours
        self._steady_s = steady_s
        self._shards: Sequence[tuple[int, int]] = schedule.share(0, ())
        self._follow_at = 0.0
        self._turn = 0
        self._has_plenty = False
        self._look_for_ready_at = 0.0
        self._seen: tuple[int, float] | None = None
        self._rescue_after = 0.0
        self._next_at: int | None = None
        self.loop = Loop("upkeep", self.step)

    def hear(self, hint: Due) -> None:
        if self._next_at is None or hint.at < self._next_at:
            self.loop.wake.wake()

    async def step(self) -> float | None:
        """One piece of every chore, so that a million due executions do not delay the rescue from a dead worker."""
        chores = await self._look()
        self._notice_jump(chores.now)
        done = [0]
        if _is_past(chores.next_due_at, chores.now):
            done.append(await self._store.promote())
        if _is_past(chores.next_deadline, chores.now):
            done.append(await self._store.expire())
        if _is_past(chores.next_tick_at, chores.now):
            done.append(await self._fire())
        if chores.has_lifted:
            done.append(await self._store.release_lifted())
        if _is_past(chores.next_run_at, chores.now):
            done.append(await self._store.work_on_runs())
        if chores.has_events:
            done.append(await self._store.work_on_events())
        if _is_past(chores.next_action_at, chores.now):
            done.append(await self._store.work_on_actions())
        if chores.has_followers and self._clock.monotonic() >= self._follow_at:
            self._follow_at = self._clock.monotonic() + FOLLOW_S
            done.append(await self._store.wake_forgotten())
        is_settled = self._clock.monotonic() >= self._rescue_after and self._steady_s() >= self._lease_s
        if chores.dead_workers and is_settled:
            log_failures(await self._store.rescue(self._lease_s, chores.now, self._ours()))
        # More may have become due since the look.
        return 0 if max(done) > 0 else self._delay_s(chores)

    async def _look(self) -> upkeep.Chores:
        """One read for all children: they get the lanes that have ready executions, and need not read themselves.

        Dead rows that are not vacuumed make it slow to find the first ready row, and then that is done more rarely.
        """
        asked_at = self._clock.monotonic()
        served = self.served if asked_at >= self._look_for_ready_at else None
        chores = await self._store.look(self._lease_s, served, self._shards, self._ours())
        self._shards = schedule.share(chores.workers, chores.places)
        if served is not None:
            now = self._clock.monotonic()
            self._look_for_ready_at = now + min(LONGEST_PAUSE_S, LOOK_SHARE * (now - asked_at) - self._poll_s)
            self._found(chores.ready)
        return chores

    async def _fire(self) -> int:
        """Fires some due schedules. While there are many, in two streams: the database works while Python decides."""
        if self._has_plenty:
            done = sum(await asyncio.gather(*(self._stream() for _ in range(STREAMS))))
        else:
            done = await self._fire_some(len(self._shards))
        self._has_plenty = done >= firing.MOST // 2
        return done

    async def _stream(self) -> int:
        """Fires batch after batch for a moment, from few shards at a time: each shard has to skip the rows of schedules
        that were fired before."""
        until, done = self._clock.monotonic() + STREAM_S, 0
        while True:
            last = await self._fire_some(STREAM_SHARDS)
            done += last
            if last < firing.MOST // 2 or self._clock.monotonic() >= until:
                return done

    async def _fire_some(self, number: int) -> int:
        # Starts at another shard each time, so that a full shard does not delay the others.
        first, among = self._turn, len(self._shards)
        self._turn = (first + (number if number < among else 1)) % among
        shards = [self._shards[(first + place) % among] for place in range(number)]
        return await self._store.fire(shards)

    def _notice_jump(self, now: int) -> None:
        """If the store's clock has jumped, leases prove nothing until every live worker had time to renew its lease.

        The first look, and a look after a long pause, cannot tell, and count as a jump.
        """
        monotonic = self._clock.monotonic()
        if self._seen is None or self._may_have_jumped(now - self._seen[0], monotonic - self._seen[1]):
            self._rescue_after = monotonic + self._lease_s
        self._seen = (now, monotonic)

    def _may_have_jumped(self, wall: int, passed_s: float) -> bool:
        jumped_s = abs(wall / MICROSECONDS - passed_s)
        return jumped_s > self._lease_s / 2 or passed_s > self._lease_s / 2 + self._poll_s

    def _delay_s(self, chores: upkeep.Chores) -> float:
        known = (
            chores.next_due_at,
            chores.next_deadline,
            chores.next_tick_at,
            chores.next_run_at,
            chores.next_action_at,
        )
        times = [at for at in known if at is not None and at > chores.now]
        self._next_at = min(times, default=None)
        if _is_past(chores.next_run_at, chores.now):
            return LOOK_S  # A map was postponed, so the time that was read before is out of date.
        poll_s = min(self._poll_s, EVENTS_S) if chores.has_subscriptions else self._poll_s
        if self._next_at is None:
            return poll_s
        return min(poll_s, max(0.001, (self._next_at - chores.now) / MICROSECONDS))


def _is_past(at: int | None, now: int) -> bool:
    return at is not None and at <= now
