"""Gathers outcomes and writes them in batches.

While one batch is being committed the next one gathers, so the batches grow with the load. A single outcome waits only
for its turn, and is then written with the claim that waits, if there is one. The outcome of a step waits for a moment
for the next claim. An outcome stays here until the store has it:
the store may be away for as long as the lease allows.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from rota.domain import payload
from rota.domain.errors import StoreUnavailable
from rota.domain.outcome import Error, Failed, Outcome, Succeeded
from rota.domain.status import Reason
from rota.engine.loop import Loop, Wake
from rota.engine.port import WorkerStore
from rota.ops import finish
from rota.ops.finish import Finished

log = logging.getLogger("rota.engine")

BUSY = 20
WORTHWHILE = 2 * finish.MOST
"""With this many outcomes the completer writes at once: one batch goes with the next claim, and one by itself."""
GATHER_S = 0.002
MOST_BYTES = 16 * 1024 * 1024


class Completer:
    """Outcomes enter by `add` and leave when the store has them."""

    def __init__(
        self,
        store: WorkerStore,
        settled: Callable[[Sequence[Finished]], None] = lambda _: None,
        transactions: int = 1,
    ) -> None:
        self._store = store
        self._settled = settled
        self._pending: list[Finished] = []
        self._writing: list[Finished] = []
        self._lent: list[Finished] = []
        self._lends = True
        self._is_busy = False
        self._turn = asyncio.Semaphore(transactions)
        """Held by the completer while it writes outcomes, and by the dispatcher while it claims. With two transactions
        both can hold it. Outcomes and free slots gather while one of them waits for its turn."""
        self._claim_waits = False
        """Whether the dispatcher waits for its turn."""
        self.claim_is_near = False
        """Whether an outcome waits for the next claim of the dispatcher, to be written in the same transaction."""
        self._enough = Wake()
        self.loop = Loop("completer", self.step)

    def add(self, report: Finished, *, claim_is_near: bool = False) -> None:
        """Takes the outcome of an attempt. With `claim_is_near` it waits a moment for the next claim of the dispatcher,
        which can write the outcome in the same transaction."""
        self._pending.append(report)
        if claim_is_near:
            self.claim_is_near = True
        if len(self._pending) == 1:
            self.loop.wake.wake()
        elif len(self._pending) == WORTHWHILE:
            self._enough.wake()

    @property
    def is_empty(self) -> bool:
        return not self._pending and not self._writing and not self._lent

    @property
    def count(self) -> int:
        return len(self._pending) + len(self._writing) + len(self._lent)

    def held(self) -> list[str]:
        """Executions whose outcome is not yet in the store."""
        return [report.id for report in (*self._lent, *self._writing, *self._pending)]

    @contextlib.asynccontextmanager
    async def turn_to_claim(self) -> AsyncIterator[None]:
        """Waits for the dispatcher's turn and holds it. If the completer gets a turn while the dispatcher waits, it
        writes nothing: the claim takes the outcomes along."""
        self._claim_waits = True
        try:
            await self._turn.acquire()
        finally:
            self._claim_waits = False
        try:
            yield
        finally:
            self._turn.release()

    def lend(self) -> list[Finished]:
        """Outcomes for the dispatcher to write in the transaction of its next claim. It must call `take_back`."""
        if self._lent or not self._lends:
            return []
        count = self._piece()
        self._lent, self._pending = self._pending[:count], self._pending[count:]
        self.claim_is_near = False
        return self._lent

    def take_back(self, stale: Sequence[str] | None, *, refused: bool = False) -> None:
        """`stale` is the answer of the store; None if nothing was written. Refused outcomes are written by `step`."""
        lent, self._lent = self._lent, []
        if stale is not None:
            self._written(lent, stale)
        elif lent:
            self._pending[:0] = lent
            self._lends = not refused
            self.loop.wake.wake()

    async def step(self) -> float | None:
        if (self._is_busy or self.claim_is_near) and len(self._pending) < WORTHWHILE and not self._writing:
            # Many outcomes came while the last batch was written, so many more will come, and a claim that takes them
            # along is near: a short wait halves the commits.
            self.claim_is_near = False
            await self._enough.sleep(GATHER_S)
        async with self._turn:
            is_left = self._claim_waits and self._lends and not self._writing
            if not self._writing and not is_left:
                count = self._piece()
                self._writing, self._pending = self._pending[:count], self._pending[count:]
            if self._writing:
                await self._write(self._writing)
        if is_left:
            # The claim takes these outcomes along. If it does not, the next step writes them; the dispatcher may have
            # been cancelled, and notices that in between.
            await asyncio.sleep(0)
            return 0
        self._lends = self._lends or not self._pending
        return 0 if self._pending else None

    def _written(self, done: list[Finished], stale: Sequence[str]) -> None:
        self._is_busy = len(done) >= BUSY
        late = set(stale)
        self._settled([_as_committed(report) if report.id in late else report for report in done])
        if missed := sum(report.written is None for report in done if report.id in late):
            log.warning("%d outcomes came too late: their executions had been given to other workers", missed)

    def _piece(self) -> int:
        """How many outcomes go into the next batch: not too many, and not too large together."""
        total = 0
        for count, report in enumerate(self._pending[: finish.MOST]):
            total += _size(report.outcome)
            if count and total > MOST_BYTES:
                return count
        return finish.MOST

    async def _write(self, reports: list[Finished]) -> None:
        """Writes the first of `_writing`. If the store refuses them, writes them in halves: one bad outcome costs a few
        transactions, not hundreds."""
        try:
            stale = await self._store.finish(reports)
        except StoreUnavailable:
            raise
        except Exception as error:
            if len(reports) > 1:
                log.warning("a batch of %d outcomes was refused (%s); writing it in halves", len(reports), error)
                middle = len(reports) // 2
                await self._write(reports[:middle])
                await self._write(reports[middle:])
                return
            log.exception("the outcome of execution %s was refused; ending its attempt without it", reports[0].id)
            stale = await self._write_bare(reports[0], error)
        self._writing = self._writing[len(reports) :]
        self._written(reports, stale)

    async def _write_bare(self, report: Finished, error: Exception) -> list[str]:
        """Ends the attempt without the result or the error that the store has refused."""
        problem = payload.error("OutcomeError", f"the outcome could not be stored: {error}")
        failed = Failed(problem, Reason.BAD_RESULT, permanent=True)
        try:
            return await self._store.finish([Finished(report.id, report.fence, failed, written=report.written)])
        except StoreUnavailable:
            raise
        except Exception:
            # The other outcomes must not wait for this one. This worker no longer names the execution among those that
            # it holds, so reconciliation gives it back to the queue.
            log.exception("the end of execution %s was refused for good, and is given up", report.id)
            return []


def _size(outcome: Outcome) -> int:
    """In characters, of the parts that can be large."""
    if isinstance(outcome, Succeeded):
        return len(outcome.result)
    error: Error | None = getattr(outcome, "error", None)
    if error is None:
        return 0
    source = sum(len(line) for one in error.source or [] for line in one.lines)
    return len(error.message) + len(error.traceback) + source


def _as_committed(report: Finished) -> Finished:
    """A job that completed in a transaction of its own has succeeded, whatever its report says."""
    return report if report.written is None else msgspec.structs.replace(report, outcome=Succeeded(report.written))
