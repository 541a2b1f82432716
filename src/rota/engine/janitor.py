"""Creates partitions ahead and removes history that is old enough. Every supervisor has a janitor; one of them works.

A round is many small pieces with pauses between them, so that it does not slow enqueues and workers. If a piece fails,
the next round resumes there. The pieces are plain blocking calls in a thread of the janitor's own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from rota.clock import Clock
from rota.domain import duration
from rota.domain import retention as policy
from rota.domain.errors import StoreError
from rota.domain.retention import DAY_S, FIRST_BATCH, LARGEST_BATCH, Pass, Retention, next_batch
from rota.engine.loop import Loop
from rota.ids import FIRST_ID
from rota.ops import retention
from rota.ops.retention import Overtaken, Sweep
from rota.store.partitions import Dropped, Keeper
from rota.store.port import Store

log = logging.getLogger("rota.engine")

FIRST_LOOK_S = 60.0
LOOK_S = 600.0
PAUSE_S = 0.05
_END = object()


class Janitor:
    """Keeps history for `retention_days`, unless its namespace says otherwise; 0 days means forever."""

    def __init__(self, store: Store, clock: Clock, keeper: Keeper | None, retention_days: int) -> None:
        self._store = store
        self._clock = clock
        self._keeper = keeper
        self._default_s = retention_days * DAY_S
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rota-janitor")
        self._round: Iterator[None] | None = None
        self._rested = False
        self._told: set[int] = set()
        self.loop = Loop("janitor", self.step)

    async def step(self) -> float:
        """One piece of the round; then a pause, or a long one at its end."""
        if not self._rested:
            # Not at the start of a worker, and not at the same time as other supervisors that were started with it.
            self._rested = True
            return FIRST_LOOK_S * (0.5 + self._clock.random())
        try:
            self._round = self._round or self._tidy()
            if await asyncio.get_running_loop().run_in_executor(self._threads, _has_more, self._round):
                return PAUSE_S
            self._round = None
        except (StoreError, Overtaken) as error:
            self._round = None
            log.info("retention is postponed: %s", error)
        except Exception:
            # The worker must not end because history cannot be removed.
            self._round = None
            log.exception("retention failed, and is tried again later")
        return LOOK_S * (0.9 + 0.2 * self._clock.random())

    def close(self) -> None:
        """Interrupts the current piece, whose transaction is rolled back."""
        if self._keeper is not None:
            self._keeper.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _tidy(self) -> Iterator[None]:
        if self._keeper is not None:
            self._make_days(self._keeper)
            yield
        begun = self._store.transact(retention.begin)
        if begun is None:
            return
        kept = self._store.read(retention.policy, self._default_s)
        started_at = self._clock.monotonic()
        dropped: list[Dropped] = []
        yield from self._remove(begun, kept, dropped)
        yield from self._remove_events(begun, kept)
        yield from self._remove_the_rest(begun, kept)
        removed = self._store.transact(retention.end, begun.begun_at)
        if removed:
            took = duration.words(self._clock.monotonic() - started_at)
            days = sum(not one.trouble for one in dropped)
            log.info("pruned %d executions and %d whole days in %s", removed, days, took)

    def _make_days(self, keeper: Keeper) -> None:
        made = keeper.make_ahead()
        if made.made:
            log.info("created the partitions of the days %s", ", ".join(map(policy.day_name, made.made)))
        for day in set(made.left) - self._told:
            self._told.add(day)
            log.warning("day %s stays in the default partition, which has rows of it already", policy.day_name(day))
        if made.waiting:
            log.warning(
                "partitions of %d days could not be created: long transactions use the tables", len(made.waiting)
            )

    def _remove(self, begun: Pass, kept: Retention, dropped: list[Dropped]) -> Iterator[None]:
        """Drops whole days if the database has daily partitions; otherwise deletes rows."""
        now = begun.begun_at
        sweeps: list[Sweep | None] = []
        if self._keeper is None:
            sweeps.append(retention.sweep_all(kept, begun.mark, now))
        elif kept.shortest_s is not None:
            for day in policy.days_to_drop(self._keeper.days(), kept, now):
                one = self._keeper.drop(day, kept.cutoffs(now))
                self._store.transact(retention.beat, begun.begun_at, one.removed)
                dropped.append(one)
                if one.trouble == "crowded":
                    sweeps.append(retention.sweep_day(kept, day, now))
                yield
            sweeps += [retention.sweep_strays(kept, now), retention.sweep_hasty(kept, begun.mark, now)]
        for sweep in sweeps:
            if sweep is not None:
                yield from self._sweep(begun, sweep)

    def _remove_events(self, begun: Pass, kept: Retention) -> Iterator[None]:
        """Removes old events. With daily partitions, most of them were dropped with the partition of their day."""
        now = begun.begun_at
        if self._keeper is None:
            sweeps = [retention.sweep_events(kept, now)]
        else:
            sweeps = [retention.sweep_strays(kept, now), retention.sweep_hasty_events(kept, now)]
        for sweep in sweeps:
            after = None if sweep is None else sweep.after
            while sweep is not None and after is not None:
                after = self._store.transact(retention.prune_events, begun.begun_at, sweep, after, LARGEST_BATCH)
                yield

    def _sweep(self, begun: Pass, sweep: Sweep) -> Iterator[None]:
        batch = FIRST_BATCH
        after: str | None = sweep.after
        while after is not None:
            started_at = self._clock.monotonic()
            step = self._store.transact(retention.prune, begun.begun_at, sweep, after, batch)
            batch = next_batch(batch, self._clock.monotonic() - started_at)
            after = step.after
            yield

    def _remove_the_rest(self, begun: Pass, kept: Retention) -> Iterator[None]:
        """Keys, workers, deploys, the ledger and the audit trail, which are kept as long as the history, or longer."""
        after: tuple[int, str] | None = (0, FIRST_ID)
        while after is not None:
            after = self._store.transact(retention.prune_keys, begun.begun_at, kept, after, FIRST_BATCH)
            yield
        reached: int | None = 0
        while reached is not None:
            reached = self._store.transact(retention.prune_ticks, begun.begun_at, kept, reached)
            yield
        for statement in retention.OTHERS:
            while self._store.transact(retention.prune_others, begun.begun_at, kept, statement):
                yield
        while self._store.transact(retention.prune_statistics, begun.begun_at):
            yield


def _has_more(pieces: Iterator[None]) -> bool:
    """Does the next piece; False if that was the end of the round."""
    return next(pieces, _END) is not _END
