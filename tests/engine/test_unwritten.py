"""A worker whose outcomes are written more slowly than its executions end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest

from rota import App
from rota.clock import SystemClock
from rota.domain.claim import Claim
from rota.domain.headcount import Headcount
from rota.engine.capacity import GATHER_S
from rota.engine.port import WorkerStore
from rota.engine.worker_loops import WorkerLoops
from rota.engine.worker_settings import WorkerSettings
from rota.ops import finish
from rota.ops.claim import Claimed, FinishedAndClaimed
from rota.ops.finish import Finished
from rota.sdk.job import registered
from tests.support.waiting import PATIENCE_S

SLOTS, AHEAD, COUNT = 2, 30, 60
app = App("slow", url="sqlite:///:memory:")


@app.job
async def nothing() -> None: ...


class SlowStore:
    """A queue of `COUNT` executions."""

    def __init__(self) -> None:
        self.claimed = self.written = 0
        self.open = self.most_open = 0
        """Transactions at the same time."""

    @contextlib.asynccontextmanager
    async def _transaction(self) -> AsyncIterator[None]:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        await asyncio.sleep(5 * GATHER_S)  # sleep: the time of a transaction
        yield
        self.open -= 1

    async def claim(self, slots: int, _marks: Any, _room: Any) -> Claimed:
        async with self._transaction():
            return self._claim(slots)

    async def claim_on_hint(self, _slots: int, _room: Any) -> Claimed | None:
        await asyncio.Event().wait()  # There are no hints.
        return None

    async def finish(self, reports: Sequence[Finished]) -> list[str]:
        async with self._transaction():
            self.written += len(reports)
            return []

    async def finish_and_claim(
        self, reports: Sequence[Finished], slots: int, _marks: Any, _room: Any
    ) -> FinishedAndClaimed:
        async with self._transaction():
            self.written += len(reports)
            return FinishedAndClaimed([], self._claim(slots))

    def _claim(self, slots: int) -> Claimed:
        now, first = SystemClock().now(), self.claimed
        self.claimed = min(COUNT, first + slots)
        return Claimed(
            [
                Claim(f"{number:03}", 1, 0, 1, 0, 0, now, now, None, "nothing", "{}", None, now, now)
                for number in range(first, self.claimed)
            ]
        )

    async def has_ready(self) -> bool:
        return self.claimed < COUNT

    async def cancels(self) -> list[str]:
        return []

    async def holds_more(self, _named: Any) -> bool:
        return False


def worker_on(store: SlowStore, processes: int) -> WorkerLoops:
    """A worker that never polls, of a supervisor with this many processes."""
    settings = WorkerSettings(
        command=(),
        processes=Headcount(processes, processes),
        queues=None,
        concurrency=SLOTS,
        lease_s=60,
        poll_s=1000 * PATIENCE_S,
        grace_s=1,
        version="",
    )
    targets = {"nothing": registered(app.jobs["nothing"]).target}
    return WorkerLoops(cast("WorkerStore", store), SystemClock(), settings.assignment(1), targets)


async def run(loops: WorkerLoops, store: SlowStore) -> None:
    """Returns when all outcomes are written."""
    running = asyncio.create_task(loops.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            while store.written < COUNT and not running.done():  # noqa: ASYNC110
                await asyncio.sleep(0.01)  # sleep: between two checks
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
    assert store.written == COUNT


async def test_a_worker_claims_again_as_soon_as_its_outcomes_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finish, "MOST", 1)
    store = SlowStore()
    loops = worker_on(store, processes=2)
    # First it prefetches many, then none.
    monkeypatch.setattr(
        loops._pace, "measure", lambda _free: setattr(loops._pace, "ahead", AHEAD if store.claimed < AHEAD else 0)
    )
    await run(loops, store)


@pytest.mark.parametrize(("processes", "most_open"), [(1, 2), (2, 1)])
async def test_only_a_process_by_itself_has_two_transactions_at_once(processes: int, most_open: int) -> None:
    store = SlowStore()
    await run(worker_on(store, processes), store)
    assert store.most_open == most_open
