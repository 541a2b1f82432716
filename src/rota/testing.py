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

With `harness(app, inline=True)` every enqueue runs at once, before it returns. With `harness(app, http=handler)` the
handler answers the requests of HTTP jobs; none is ever sent. With `harness(app, schedules=False)` no schedule fires.
`rota.approve(run)` and `rota.reject(run)` answer a step that waits for an answer; `advance` ends a sleep.
With `harness(app, fakes={send: lambda to: "sent"})` a function of the test is called in place of a job.

The differences from a worker: one attempt runs at a time, in this process, also of a job with `isolation="process"`. So
memory limits, timeouts, time slices, cancels of running attempts and crashes have no effect, and `ctx.transaction()`
is refused, because the database in memory is not PostgreSQL. Commands are started for real.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import copy
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from rota.clock import ManualClock
from rota.domain import payload, schedule
from rota.domain.claim import Claim
from rota.domain.duration import Duration, seconds
from rota.domain.errors import DefinitionError, UsageError
from rota.domain.instant import MICROSECONDS, moment
from rota.domain.job import Definition
from rota.domain.note import Run, State, pieces
from rota.domain.served import Served
from rota.executors import kinds
from rota.executors.attempt_state import AttemptState
from rota.executors.function import FunctionExecutor
from rota.executors.port import Executor
from rota.executors.process.lines import MOST_LINE
from rota.executors.signature import Signature
from rota.ids import IdSource
from rota.ops import after_end, blockers, claim, define, finish, firing, fleet, notes, upkeep
from rota.ops.actions import work_on_actions
from rota.ops.events.chores import work_on_events
from rota.ops.finish import Finished
from rota.ops.runs import approvals
from rota.ops.runs.approvals import Answer
from rota.ops.runs.chores import work_on_runs
from rota.sdk.app import App, registry_of
from rota.sdk.handle import Handle
from rota.sdk.job import Job
from rota.sdk.options import instant
from rota.store.opening import is_server
from rota.store.port import Tx
from rota.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    import httpx

    Handler = Callable[[httpx.Request], httpx.Response | Awaitable[httpx.Response]]
    Http = Handler | Mapping[str, httpx.Response | int]
    Answers = Callable[[httpx.Request], Awaitable[httpx.Response]]

T = TypeVar("T")
Fakes = Mapping[Job[..., Any, Any] | str, Callable[..., Any]]
FOREVER_S = 100 * 365 * 86400.0
MOST_ROUNDS = 100_000


class Harness:
    """One worker in this thread, on a manual clock."""

    def __init__(
        self,
        app: App,
        store: SqliteStore,
        clock: ManualClock,
        http: Http | None = None,
        *,
        schedules: bool = True,
        fakes: Fakes | None = None,
    ) -> None:
        self._clock = clock
        self._registry = registry = registry_of(app)
        self._store = store
        self._answers = _answers(http)
        self._fires = schedules
        self._fakes = {job: self._fake(job, function) for job, function in _by_name(app, fakes or {}).items()}
        self._variables = contextvars.copy_context()
        self._served = Served.one(registry.settings.namespace, app.name, None, [])
        newcomer = fleet.Newcomer(
            namespace=registry.settings.namespace,
            app=app.name,
            name="harness",
            host="test",
            pid=0,
            version="test",
            queues=None,
            jobs=registry.names(),
            concurrency=1,
            deploy=app.declare(),
        )
        self._worker = store.transact(fleet.join, newcomer, FOREVER_S)
        self._ids = IdSource(clock)

    @property
    def now(self) -> datetime:
        """The time on the clock, in UTC."""
        return moment(self._clock.now())

    def run_until_idle(self) -> int:
        """Runs everything that is due now, and what that enqueues; returns how many attempts there were."""
        return _drive(self.arun_until_idle())

    async def arun_until_idle(self) -> int:
        """`run_until_idle` for async tests."""
        attempts, _ = await self._run_due()
        return attempts

    def advance(self, duration: Duration) -> int:
        """Moves the clock, stopping at every instant at which something becomes due; returns the attempts."""
        return _drive(self.aadvance(duration))

    async def aadvance(self, duration: Duration) -> int:
        """`advance` for async tests."""
        end = self._clock.now() + round(seconds(duration) * MICROSECONDS)
        attempts, next_at = await self._run_due()
        while next_at is not None and next_at <= end:
            self._clock.set(max(next_at, self._clock.now()))
            more, next_at = await self._run_due(is_due=True)
            attempts += more
        self._clock.set(end)
        more, _ = await self._run_due()
        return attempts + more

    def approve(self, run: Handle[Any], step: str | None = None, note: str = "", by: str = "test") -> int:
        """Approves a step, or without `step` the only open approval; then runs until idle, and returns the number of
        attempts."""
        return self._answer(run, Answer(True, by, note, step))

    def reject(self, run: Handle[Any], step: str | None = None, note: str = "", by: str = "test") -> int:
        """Rejects a step; otherwise like `approve`."""
        return self._answer(run, Answer(False, by, note, step))

    def _answer(self, run: Handle[Any], given: Answer) -> int:
        before = self.run_until_idle()
        self._store.transact(approvals.answer, self._registry.settings.namespace, run.id, given)
        return before + self.run_until_idle()

    def skip(self, duration: Duration) -> None:
        """Moves the clock without running anything, as if no worker had been up: `run_until_idle` then catches up."""
        self._clock.advance(seconds(duration))

    async def _run_due(self, *, is_due: bool = False) -> tuple[int, int | None]:
        """Runs the executions that are due now. Returns the number of attempts, and when the next is due."""
        ended: tuple[Finished, _Notes] | None = None
        for count in range(MOST_ROUNDS):
            found, next_at = self._store.transact(self._turn, ended, is_due)
            if found is None:
                return count, next_at
            ended, is_due = await self._run(found), False
        raise AssertionError(f"still not idle after {MOST_ROUNDS} attempts: does a job enqueue itself forever?")

    def _turn(self, tx: Tx, ended: tuple[Finished, _Notes] | None, is_due: bool) -> tuple[Claim | None, int | None]:
        """Reports the ended attempt, does the chores and claims, in one transaction to save time."""
        shards = self._known_shards()
        if ended is not None:
            report, told = ended
            if told.runs or told.states:  # Notes first: checkpoints of an attempt that has ended are refused.
                notes.write(tx, pieces(report.id, report.fence, told.runs), told.states)
            finish.finish(tx, [report])
        if is_due:
            self._has_done_chores(tx, shards)
        chores = upkeep.look(tx, FOREVER_S, self._served, shards)
        while self._is_due(chores) and self._has_done_chores(tx, shards):
            chores = upkeep.look(tx, FOREVER_S, self._served, shards)
        # A map that waits for its last chunk is checked after each attempt, not by the clock.
        times = [at for at in self._times(chores) if at > chores.now or at != chores.next_run_at]
        next_at = min(times, default=None)
        if not chores.ready:
            return None, next_at
        served = msgspec.structs.replace(self._served, jobs=self._registry.names())
        taken = claim.claim(tx, self._worker, served, 1)
        while not taken.claims and taken.has_more:  # A row gate has moved what was claimed: a workflow was opened.
            taken = claim.claim(tx, self._worker, served, 1)
        return (taken.claims[0] if taken.claims else None), next_at

    def _times(self, chores: upkeep.Chores) -> list[int]:
        times = [chores.next_due_at, chores.next_deadline, chores.next_run_at, chores.next_action_at]
        times += [chores.next_tick_at] if self._fires else []
        return [at for at in times if at is not None]

    def _is_due(self, chores: upkeep.Chores) -> bool:
        has_chores = chores.has_followers or chores.has_lifted or chores.has_events
        return has_chores or any(at <= chores.now for at in self._times(chores))

    def _known_shards(self) -> list[tuple[int, int]]:
        """The shards that can have schedules of the app's jobs; looking into all 64 takes longer."""
        namespace = self._registry.settings.namespace
        return sorted({(schedule.shard(namespace, job), 0) for job in self._registry.jobs})

    def _has_done_chores(self, tx: Tx, shards: list[tuple[int, int]]) -> bool:
        fired = firing.fire(tx, shards, self._ids.many).schedules if self._fires else 0
        is_woken = after_end.wake_forgotten(tx) or blockers.release_lifted(tx)
        is_woken = is_woken or work_on_events(tx) or work_on_actions(tx)
        return bool(fired or is_woken or upkeep.promote(tx) or upkeep.expire(tx) or work_on_runs(tx, look_s=0))

    async def _run(self, attempt: Claim) -> tuple[Finished, _Notes]:
        target = self._target(attempt.job)
        state = AttemptState(attempt, None, target.completions)
        state.notes = told = _Notes(self._clock)
        run, variables = target.run(attempt, state), self._variables.copy()
        outcome = await asyncio.get_running_loop().create_task(run, context=variables)
        state.notes = None
        rules, jitter = target.rules, self._clock.random()
        report = Finished(
            attempt.id, attempt.fence, outcome, jitter, attempt.job, breakers=rules.breakers, pauses=rules.pauses
        )
        return finish.timed(report, attempt), told

    def _fake(self, job: str, function: Callable[..., Any]) -> Executor:
        """Calls the function of the test in place of the job, with the rules of the job."""
        rules, most = self._registry.jobs[job].target.rules, self._registry.settings.max_result_bytes
        return FunctionExecutor(function, Signature(function, f"the fake of {job}"), rules, most)

    def _target(self, job: str) -> Executor:
        if job in self._fakes:
            return self._fakes[job]
        target = self._registry.targets()[job]
        if self._registry.jobs[job].definition.target.get("kind") == kinds.HTTP:
            target = copy.copy(target)
            target.answers = self._answers  # type: ignore[attr-defined]
        return target


@contextlib.contextmanager
def harness(
    app: App,
    *,
    inline: bool = False,
    start: datetime | None = None,
    seed: int = 0,
    http: Http | None = None,
    schedules: bool = True,
    fakes: Fakes | None = None,
) -> Iterator[Harness]:
    """The app on an empty database in memory, which `app.close()` does not leave.

    `start` is when its clock starts, a datetime with a time zone (default: 2026-01-01 in UTC). `http` answers the
    requests of HTTP jobs: a function from `httpx.Request` to `httpx.Response`, or a mapping from URLs to responses or
    status codes. Without `schedules` none fires. `fakes` are functions that are called in place of jobs, by job or by
    its name.
    """
    clock = ManualClock(seed=seed) if start is None else ManualClock(instant(start, "start"), seed)
    store = _InlineStore(clock) if inline else SqliteStore("sqlite://:memory:", clock, inline=True)
    registry = registry_of(app)
    if is_server(registry.settings.url):
        raise UsageError(
            "a harness has a database of its own, and this app reaches a server over HTTP: in tests make the app "
            "without the URL of the server (url= or ROTA_URL)"
        )
    for one in registry.upstreams():  # Jobs of other apps are known, but never run here.
        store.transact(define.register, registry.settings.namespace, one.app, [Definition(name=one.job)], [])
    with registry.connection.borrowed(store, clock):
        running = Harness(app, store, clock, http, schedules=schedules, fakes=fakes)
        if isinstance(store, _InlineStore):
            store.harness = running
        yield running


class _InlineStore(SqliteStore):
    """Runs the executions that an operation made ready, after the outermost operation."""

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


class _Notes:
    """Keeps the log lines, progress and checkpoints of one attempt. Implements `executors.attempt_state.Notes`."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._count = 0
        self.runs: list[Run] = []
        self.states: list[State] = []

    def line(self, id: str, fence: int, stream: str, text: str) -> None:
        self.lines(id, fence, stream, [text])

    def lines(self, id: str, fence: int, stream: str, texts: list[str]) -> None:
        cleaned = [payload.clean(text, MOST_LINE) for text in texts]
        size = sum(map(len, cleaned)) + len(cleaned)
        self.runs.append(Run(self._count + 1, self._clock.now(), stream, cleaned, size))
        self._count += len(cleaned)

    def state(self, state: State) -> None:
        self.states.append(msgspec.structs.replace(state, at=self._clock.now()))


def _by_name(app: App, fakes: Fakes) -> dict[str, Callable[..., Any]]:
    named = {job.name if isinstance(job, Job) else job: function for job, function in fakes.items()}
    if unknown := sorted(named.keys() - app.jobs.keys()):
        raise DefinitionError(f"fakes= names {unknown[0]!r}, which is not a job of app {app.name!r}")
    return named


def _drive(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end, also where an event loop is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(max_workers=1) as threads:
        return threads.submit(asyncio.run, work).result()


# --- The requests of HTTP jobs ---------------------------------------------------------------------


def _answers(http: Http | None) -> Answers:
    """The `http=` of a harness as one async function. An AssertionError that it raises fails the test, not the job."""
    if http is not None and not callable(http) and not isinstance(http, Mapping):
        raise DefinitionError(
            "http= takes a function from httpx.Request to httpx.Response, or a mapping from URLs to responses or "
            f"status codes, not {http!r}"
        )

    async def answer(request: httpx.Request) -> httpx.Response:
        import httpx  # lazy: an extra

        try:
            found = _listed(http, request) if http is None or isinstance(http, Mapping) else http(request)
            response = await found if inspect.isawaitable(found) else found
        except httpx.TimeoutException as error:
            raise TimeoutError(str(error)) from None
        except httpx.TransportError as error:
            raise ConnectionError(str(error)) from None
        if not isinstance(response, httpx.Response):
            raise AssertionError(f"the answer to {_named(request)} must be an httpx.Response, not {response!r}")
        return response

    return answer


def _listed(listed: Mapping[str, httpx.Response | int] | None, request: httpx.Request) -> httpx.Response:
    import httpx  # lazy: an extra

    if listed is None:
        raise AssertionError(
            f"a job sends {_named(request)}, and a harness sends nothing: give it the answers, such as "
            "harness(app, http=lambda request: httpx.Response(200))"
        )
    found = listed.get(str(request.url), listed.get(str(request.url.copy_with(query=None))))
    if found is None:
        raise AssertionError(f"http= has no answer to {_named(request)}: it has {', '.join(listed) or 'none'}")
    return httpx.Response(found) if isinstance(found, int) else found


def _named(request: httpx.Request) -> str:
    return f"{request.method} {request.url}"
