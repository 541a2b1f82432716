"""For your tests: the real engine in memory, without processes, on a clock that you move.

    from rota.testing import harness

    def test_welcome() -> None:
        with harness(app) as rota:
            x = send.enqueue("a@b.c")
            rota.run_until_idle()                # runs everything that is due
            assert x.result() == "sent"

            y = send.options(delay="1h").enqueue("a@b.c")
            rota.advance("1h")                   # fires delays and retries on the way, each at its time
            assert y.status() == "success"

With `harness(app, inline=True)` every enqueue runs at once, before it returns.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from rota.clock import ManualClock
from rota.domain.claim import Claim
from rota.domain.duration import Duration, seconds
from rota.domain.outcome import Failed, GivenBack, Outcome
from rota.domain.status import Reason
from rota.executors.context import Context
from rota.executors.function import FunctionTarget
from rota.executors.port import Executor
from rota.ids import IdSource
from rota.ops import claim, finish, firing, fleet, following, upkeep
from rota.sdk.app import App
from rota.store.sqlite import SqliteStore

T = TypeVar("T")
FOREVER_S = 100 * 365 * 86400.0
MOST_ROUNDS = 100_000
MICROSECONDS = 1_000_000


class Harness:
    """One worker in this thread, on a manual clock."""

    def __init__(self, app: App, store: SqliteStore, clock: ManualClock) -> None:
        self.clock = clock
        self._app = app
        self._store = store
        newcomer = fleet.Newcomer(
            namespace=app.settings.namespace,
            app=app.name,
            name="harness",
            host="test",
            pid=0,
            version="test",
            queues=None,
            concurrency=1,
        )
        self._worker = store.transact(fleet.join, newcomer, FOREVER_S)
        self._ids = IdSource(clock)
        app.declare_schedules()

    def run_until_idle(self) -> int:
        """Runs everything that is due now, and what that enqueues; returns how many attempts there were."""
        return _drive(self.arun_until_idle())

    async def arun_until_idle(self) -> int:
        """`run_until_idle` for async tests."""
        for count in range(MOST_ROUNDS):
            self._do_chores()
            taken = self._store.transact(
                claim.claim, self._worker, self._app.settings.namespace, self._app.name, None, 1
            )
            if not taken.claims:
                return count
            await self._run(taken.claims[0])
        raise AssertionError(f"still not idle after {MOST_ROUNDS} attempts: does a job enqueue itself for ever?")

    def advance(self, duration: Duration) -> int:
        """Moves the clock, stopping at every instant at which something becomes due; returns the attempts."""
        return _drive(self.aadvance(duration))

    async def aadvance(self, duration: Duration) -> int:
        """`advance` for async tests."""
        end = self.clock.now() + round(seconds(duration) * MICROSECONDS)
        attempts = await self.arun_until_idle()
        while (next_at := self._next_at()) is not None and next_at <= end:
            self.clock.set(max(next_at, self.clock.now()))
            attempts += await self.arun_until_idle()
        self.clock.set(end)
        return attempts + await self.arun_until_idle()

    def _next_at(self) -> int | None:
        chores = self._store.read(upkeep.look, FOREVER_S)
        times = [at for at in (chores.next_due_at, chores.next_deadline, chores.next_tick_at) if at is not None]
        return min(times, default=None)

    def _do_chores(self) -> None:
        while (
            self._store.transact(firing.fire, upkeep.ALL_SHARDS, self._ids.many).schedules
            or self._store.transact(following.catch_up)
            or self._store.transact(upkeep.promote)
            or self._store.transact(upkeep.expire)
        ):
            pass

    async def _run(self, attempt: Claim) -> None:
        target = self._app.targets().get(attempt.job)
        if target is None:
            report = finish.Finished(attempt.id, attempt.fence, GivenBack(Reason.UNKNOWN_JOB, 5.0))
        else:
            outcome = await _outcome(target, attempt)
            report = finish.Finished(attempt.id, attempt.fence, outcome, target.rules, self.clock.random())
        self._store.transact(finish.finish, [report])


@contextlib.contextmanager
def harness(app: App, *, inline: bool = False, start: int | None = None, seed: int = 0) -> Iterator[Harness]:
    """The app on an empty database in memory. `start` is the clock's first instant (microseconds since 1970 UTC)."""
    clock = ManualClock(seed=seed) if start is None else ManualClock(start, seed)
    store = _InlineStore(clock) if inline else SqliteStore("sqlite://:memory:", clock, inline=True)
    with app.connection.borrowed(store, clock):
        running = Harness(app, store, clock)
        if isinstance(store, _InlineStore):
            store.harness = running
        yield running


class _InlineStore(SqliteStore):
    """Runs what an operation made ready, once the outermost operation is done."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__("sqlite://:memory:", clock, inline=True)
        self.harness: Harness | None = None
        self._busy = False

    def submit(self, op: Any, *args: Any, **kwargs: Any) -> Any:
        future = super().submit(op, *args, **kwargs)
        if self.harness is not None and not self._busy:
            self._busy = True
            try:
                self.harness.run_until_idle()
            finally:
                self._busy = False
        return future


async def _outcome(target: FunctionTarget | Executor, attempt: Claim) -> Outcome:
    if not isinstance(target, FunctionTarget):
        return await target.run(attempt, Context(attempt, None))
    prepared = target.prepare(attempt.arguments, Context(attempt, None))
    if isinstance(prepared, Failed):
        return prepared
    args, kwargs = prepared
    try:
        value = target.function(*args, **kwargs)
        if target.is_async:
            value = await value
    except (Exception, SystemExit) as error:
        return target.raised(error, attempt.attempts + 1)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise  # It is the test that is being stopped, not the job that raised.
        return target.raised(error, attempt.attempts + 1)
    return target.returned(value)


def _drive(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end, also where an event loop is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(max_workers=1) as threads:
        return threads.submit(asyncio.run, work).result()
