"""Looks after the history: makes days ahead, removes what was kept long enough. Every node has one, one works.

A round is many small pieces with pauses between them, so that nobody who enqueues or works notices it. Whatever happens
to a piece, the next look goes on where it stopped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from rota.clock import Clock
from rota.domain import duration
from rota.domain import retention as policy
from rota.domain.errors import StoreError
from rota.domain.retention import DAY_S, FIRST_BATCH, Pass, Retention, next_batch
from rota.engine.bridge import Bridge
from rota.engine.loop import Loop
from rota.ids import FIRST_ID
from rota.ops import retention
from rota.ops.retention import Overtaken, Sweep
from rota.store.keeping import Dropped, Keeper

log = logging.getLogger("rota.engine")

T = TypeVar("T")
FIRST_LOOK_S = 60.0
LOOK_S = 600.0
PAUSE_S = 0.05


class Janitor:
    """Removes what `retention_days` and the namespaces say; 0 days is for ever."""

    def __init__(self, bridge: Bridge, clock: Clock, keeper: Keeper | None, retention_days: int) -> None:
        self._bridge = bridge
        self._clock = clock
        self._keeper = keeper
        self._default_s = retention_days * DAY_S
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rota-janitor")
        self._round: AsyncIterator[None] | None = None
        self._rested = False
        self._told: set[int] = set()
        self.loop = Loop("janitor", self.step)

    async def step(self) -> float:
        """One piece of the round; then a pause, or a long one at its end."""
        if not self._rested:
            # Nodes that start together do not look together, and a worker that starts has better things to do.
            self._rested = True
            return FIRST_LOOK_S * (0.5 + self._clock.random())
        try:
            self._round = self._round or self._tidy()
            await anext(self._round)
        except StopAsyncIteration:
            self._round = None
        except (StoreError, Overtaken) as error:
            self._round = None
            log.info("the history is looked after later: %s", error)
        except Exception:
            # A history that grows is no reason to end the work.
            self._round = None
            log.exception("the history could not be looked after")
        else:
            return PAUSE_S
        return LOOK_S * (0.9 + 0.2 * self._clock.random())

    def close(self) -> None:
        """Ends what is being done; it is as if it had not been begun."""
        if self._keeper is not None:
            self._keeper.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _tidy(self) -> AsyncIterator[None]:
        if self._keeper is not None:
            await self._make_days(self._keeper)
            yield
        if not await self._bridge.read(retention.is_due):
            return
        begun = await self._bridge.transact(retention.begin)
        if begun is None:
            return
        kept = await self._bridge.read(retention.policy, self._default_s)
        started_at = self._clock.monotonic()
        dropped: list[Dropped] = []
        async for _ in self._remove(begun, kept, dropped):
            yield
        async for _ in self._remove_the_rest(begun, kept):
            yield
        removed = await self._bridge.transact(retention.end, begun.begun_at)
        if removed:
            took = duration.words(self._clock.monotonic() - started_at)
            days = sum(not one.trouble for one in dropped)
            log.info("pruned %d executions and %d whole days in %s", removed, days, took)

    async def _make_days(self, keeper: Keeper) -> None:
        made = await self._blocking(keeper.make_ahead)
        if made.made:
            log.info("made the days %s", ", ".join(map(policy.day_name, made.made)))
        for day in set(made.left) - self._told:
            self._told.add(day)
            log.warning("day %s stays in the default partition, which has rows of it already", policy.day_name(day))
        if made.waiting:
            log.warning("%d days could not be made: the tables are in use by long transactions", len(made.waiting))

    async def _remove(self, begun: Pass, kept: Retention, dropped: list[Dropped]) -> AsyncIterator[None]:
        """Whole days where there are days, rows elsewhere."""
        now = begun.begun_at
        sweeps: list[Sweep | None] = []
        if self._keeper is None:
            sweeps.append(retention.sweep_all(kept, begun.mark, now))
        elif kept.shortest_s is not None:
            for day in policy.days_to_drop(await self._blocking(self._keeper.days), kept, now):
                one = await self._blocking(partial(self._keeper.drop, day, kept.cutoffs(now)))
                await self._bridge.transact(retention.beat, begun.begun_at, one.removed)
                dropped.append(one)
                if one.trouble == "crowded":
                    sweeps.append(retention.sweep_day(kept, day, now))
                yield
            sweeps += [retention.sweep_strays(kept, now), retention.sweep_hasty(kept, begun.mark, now)]
        for sweep in sweeps:
            if sweep is not None:
                async for _ in self._sweep(begun, sweep):
                    yield

    async def _sweep(self, begun: Pass, sweep: Sweep) -> AsyncIterator[None]:
        batch = FIRST_BATCH
        after: str | None = sweep.after
        while after is not None:
            started_at = self._clock.monotonic()
            step = await self._bridge.transact(retention.prune, begun.begun_at, sweep, after, batch)
            batch = next_batch(batch, self._clock.monotonic() - started_at)
            after = step.after
            yield

    async def _remove_the_rest(self, begun: Pass, kept: Retention) -> AsyncIterator[None]:
        """Keys, workers, the ledger and the audit trail: all that is kept as long as the history, or longer."""
        after: tuple[int, str] | None = (0, FIRST_ID)
        while after is not None:
            after = await self._bridge.transact(retention.prune_keys, begun.begun_at, kept, after, FIRST_BATCH)
            yield
        workers = await self._bridge.read(retention.old_workers, kept)
        if workers:
            await self._bridge.transact(retention.prune_workers, begun.begun_at, workers)
        while await self._bridge.transact(retention.prune_affinity, begun.begun_at):
            yield
        reached: int | None = 0
        while reached is not None:
            reached = await self._bridge.transact(retention.prune_ticks, begun.begun_at, kept, reached)
            yield
        while await self._bridge.transact(retention.prune_audit, begun.begun_at, kept):
            yield

    async def _blocking(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
