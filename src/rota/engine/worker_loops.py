"""The loops of one worker process: dispatcher → worker → completer, and the loops for cancels and reconciliation.

It sends no heartbeats: the supervisor does, which runs no user code.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from rota.clock import Clock
from rota.domain.errors import StoreError
from rota.engine.attempt import Stop
from rota.engine.capacity import Pace
from rota.engine.completer import Completer
from rota.engine.dispatcher import Dispatcher
from rota.engine.loop import Loop, Wake
from rota.engine.port import WorkerStore
from rota.engine.scribe import MOST_LOG_BYTES, Scribe
from rota.engine.worker import Worker
from rota.executors.port import Executor
from rota.ops.finish import Finished
from rota.store.hints import CancelAsked, Hint, Ready

MOST_UNWRITTEN = 3
"""How many outcomes may wait to be written, for each claim that the worker may hold."""
LEASES_PER_RECONCILE = 0.5
LONG_ANSWER_S = 5.0
LAST_WORDS_S = 5.0
ROUNDS_PER_LOOK = 12
"""After a claim whose reply was lost, the next round compares. Otherwise only one round in this many does."""


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """The first message from the supervisor: which worker this process is, and how it works."""

    worker: int
    queues: Sequence[str] | None
    """For the log; the supervisor knows what the worker serves."""
    concurrency: int
    transactions: int = 1
    """How many transactions that write outcomes or claim it may have at the same time."""
    lease_s: float
    poll_s: float
    grace_s: float
    stop_grace_s: float = 5.0
    max_log_bytes: int = MOST_LOG_BYTES


class WorkerLoops:
    """Runs until it is drained, tainted, or loses its lease."""

    def __init__(
        self,
        store: WorkerStore,
        clock: Clock,
        assignment: Assignment,
        targets: Mapping[str, Executor],
        settled: Callable[[Sequence[Finished]], None] = lambda _: None,
        leaving: Callable[[], None] = lambda: None,
        blocked: Callable[[Finished], None] | None = None,
        alone: Mapping[str, Executor] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._assignment = assignment
        self._leaving = leaving
        self._in_doubt: list[tuple[str, int]] = []
        self._rounds = 1
        self._told: dict[str, str] = {}
        self._change = Wake()
        self._draining = self._finishing = self._hurried = False
        self._settled = settled
        self.completer = Completer(store, self._outcomes_written, assignment.transactions)
        self.scribe = Scribe(store, clock, assignment.max_log_bytes)
        self._pace = Pace(clock, assignment.concurrency)
        self.worker = Worker(
            targets,
            self.completer,
            clock,
            assignment.concurrency,
            self._pace,
            scribe=self.scribe,
            slot_freed=self._slot_freed,
            stop_grace_s=assignment.stop_grace_s,
            blocked=blocked,
            alone=alone,
        )
        self.dispatcher = Dispatcher(
            store,
            free=self._free,
            is_idle=lambda: self.worker.is_idle and self.completer.is_empty,
            start=self.worker.take,
            outcomes=self.completer,
            pace=self._pace,
            poll_s=assignment.poll_s,
            clock=clock,
            room=self.worker.processes.room,
        )
        self._cancels = Loop("cancels", self._watch_cancels)
        self._reconcile = Loop("reconcile", self._name_what_we_hold)

    def hear(self, hints: Iterable[Hint]) -> None:
        for hint in hints:
            if isinstance(hint, Ready):
                self.dispatcher.hear(hint)
            elif isinstance(hint, CancelAsked) and hint.worker == self._assignment.worker:
                self._cancels.wake.wake()

    def drain(self) -> None:
        """Stops claiming, finishes within the grace, gives back the rest. The second call ends the grace."""
        if self._draining:
            self._hurried = True
        self._draining = True
        self._change.wake()

    def finish(self) -> None:
        """Stops claiming, and ends when the running attempts have ended by themselves, however long that takes."""
        self._finishing = True
        self._change.wake()

    async def run(self) -> None:
        """Returns when everything has been reported or given back. Raises LeaseLost if the lease is gone."""
        claims = [self.dispatcher.loop, self.dispatcher.left_claim_loop]
        loops = [*claims, self.completer.loop, self.scribe.loop, self._cancels, self._reconcile]
        tasks = [asyncio.create_task(loop.run(), name=loop.name) for loop in loops]
        watch = asyncio.create_task(self._live(), name="life")
        try:
            done, _ = await asyncio.wait([watch, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (watch, *tasks):
                task.cancel()
            await asyncio.gather(watch, *tasks, return_exceptions=True)
            self.worker.close()

    async def _live(self) -> None:
        while not self._draining and not self._finishing and not self.worker.is_tainted:
            await self._change.sleep(self._assignment.poll_s)
        self.dispatcher.close()
        self.worker.begin_no_more()
        if self.worker.is_tainted:
            self._leaving()
        with contextlib.suppress(StoreError):
            # Only shown to operators: this process makes no more claims in any case.
            await self._store.drain()
        await self._until(lambda: self.worker.is_idle or self._draining or self.worker.is_tainted)
        await self._until(lambda: self.worker.is_idle or self._hurried, self._assignment.grace_s)
        await self._until(self._has_stopped_all)
        await self._until(lambda: self.completer.is_empty)
        await self._until(lambda: self.scribe.is_empty, LAST_WORDS_S)
        await self.worker.processes.close()

    def _has_stopped_all(self) -> bool:
        # Repeated until idle: a claim in flight when the drain began may still deliver executions.
        self.worker.stop_all(Stop.DRAIN)
        return self.worker.is_idle

    async def _until(self, condition: Callable[[], bool], limit_s: float | None = None) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while not condition():
                    await self._change.sleep(0.05)

    def _free(self) -> int:
        """How many executions to claim: fewer while outcomes cannot be written, so that their number stays bounded."""
        most_held = self._assignment.concurrency + self._pace.ahead
        return min(self.worker.free, MOST_UNWRITTEN * most_held - self.completer.count)

    def _outcomes_written(self, reports: Sequence[Finished]) -> None:
        self._settled(reports)
        self._slot_freed()  # The dispatcher may have waited for that: see `_free`.

    def _slot_freed(self) -> None:
        self.dispatcher.slot_freed()
        if self._draining or self._finishing or self.worker.is_tainted:
            self._change.wake()

    async def _watch_cancels(self) -> float | None:
        if not self.worker.is_idle:
            for id in await self._store.cancels():
                self.worker.stop(id, Stop.CANCEL)
        if (reasons := self.worker.processes.trouble) != self._told:
            await self._store.tell_trouble(reasons)
            self._told = reasons
        return min(0.5, self._assignment.poll_s)

    def _expects_an_answer(self) -> bool:
        """Whether a claim of the dispatcher is in flight. Its executions would look like those of a claim whose reply
        was lost. For a left claim, `holds_more` waits."""
        since = self.dispatcher.claiming_since
        return since is not None and self._clock.monotonic() - since < max(self._assignment.lease_s, LONG_ANSWER_S)

    async def _name_what_we_hold(self) -> float | None:
        """Gives back executions of a claim whose reply was lost; otherwise our heartbeats would hold them forever."""
        self._rounds += 1
        is_wanted = self._in_doubt or self.dispatcher.is_in_doubt or self._rounds % ROUNDS_PER_LOOK == 0
        if not is_wanted or self._expects_an_answer():
            return self._assignment.lease_s * LEASES_PER_RECONCILE
        self.dispatcher.is_in_doubt = False
        held = self.worker.held() + self.completer.held()
        unnamed = await self._store.holds_more(held)
        if self._in_doubt or unnamed:
            held = self.worker.held() + self.completer.held()
            self.dispatcher.disown(self._in_doubt)
            self._in_doubt = await self._store.reconcile(held, self._in_doubt)
        return self._assignment.lease_s * LEASES_PER_RECONCILE
