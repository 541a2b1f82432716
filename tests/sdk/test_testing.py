"""`rota.testing`: the real engine in memory, on a clock that the test moves."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from rota import (
    App,
    Context,
    DefinitionError,
    ExecutionFailed,
    Exponential,
    FailForGood,
    Fixed,
    Linear,
    NotFinished,
    RetryIn,
    Snooze,
    Status,
    UsageError,
)
from rota.sdk.app import registry_of
from rota.store import notes
from rota.testing import harness

SECOND = 1_000_000
who: ContextVar[str] = ContextVar("who", default="nobody")


def test_everything_that_is_due_runs_and_what_that_enqueues(app: App) -> None:
    ran: list[int] = []

    @app.job
    def countdown(n: int) -> None:
        ran.append(n)
        if n:
            countdown.enqueue(n - 1)

    with harness(app) as rota:
        countdown.enqueue(3)
        assert rota.run_until_idle() == 4
        assert rota.run_until_idle() == 0
    assert ran == [3, 2, 1, 0]


def test_a_delay_fires_exactly_when_the_clock_gets_there(app: App) -> None:
    at: list[datetime] = []

    with harness(app) as rota:

        @app.job
        def note() -> None:
            at.append(rota.now)

        start = rota.now
        for delay in ("1h", "10s", "90s"):
            note.options(delay=delay).enqueue()
        assert rota.advance("9.9s") == 0
        assert rota.advance("2h") == 3
        assert [(moment - start).total_seconds() for moment in at] == [10, 90, 3600]
        assert rota.now == start + timedelta(seconds=7209.9)


def test_retries_fire_on_the_way(app: App) -> None:
    at: list[float] = []

    with harness(app) as rota:
        start = rota.now

        @app.job(retry=Linear(attempts=4, step=10))
        def fail(ctx: Context) -> None:
            at.append((rota.now - start).total_seconds())
            assert ctx.attempt == len(at)
            raise ValueError

        x = fail.enqueue()
        rota.advance("1m")
        assert at == [0, 10, 30, 60]
        assert x.status() is Status.FAILED


@pytest.mark.parametrize("own", [Linear(attempts=4, step=10), None, lambda attempt, error: 1])
def test_an_execution_has_its_own_retries_and_headers(app: App, own: Any) -> None:
    at: list[float] = []

    with harness(app) as rota:
        start = rota.now

        @app.job(retry=own)
        def fail(ctx: Context) -> None:
            at.append((rota.now - start).total_seconds())
            raise ValueError(ctx.headers["tenant"])

        x = fail.options(retry=Fixed(attempts=3, delay="1m"), headers={"tenant": "ann"}).enqueue()
        rota.advance("1h")
        assert at == [0, 60, 120]
        with pytest.raises(ExecutionFailed, match="ann"):
            x.result()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_seed_decides_every_jittered_delay(app: App, seed: int) -> None:
    at: list[list[datetime]] = [[], []]
    current: list[datetime] = []

    @app.job(retry=Exponential(attempts=5, base=10))
    def fail() -> None:
        current.append(rota.now)
        raise ValueError

    for run in (0, 1):
        with harness(app, seed=seed) as rota:
            current = at[run]
            fail.enqueue()
            rota.advance("1h")
    assert len(at[0]) == 5
    assert at[0] == at[1]


def test_the_clock_may_start_anywhere(app: App) -> None:
    start = datetime(2030, 7, 1, 9, 30, 0, 123456, tzinfo=ZoneInfo("Europe/Berlin"))
    with harness(app, start=start) as rota:
        assert (rota.now, rota.now.tzinfo) == (start, UTC)


@pytest.mark.parametrize("start", [datetime(2030, 7, 1), 5_000_000])  # noqa: DTZ001
def test_a_start_without_a_time_zone_is_refused(app: App, start: Any) -> None:
    with (
        pytest.raises(DefinitionError, match=r"start (needs a time zone|must be a datetime)"),
        harness(app, start=start),
    ):
        pass


def test_without_a_worker_the_clock_moves_and_nothing_runs(app: App) -> None:
    at: list[datetime] = []

    @app.job
    def note() -> None:
        at.append(rota.now)

    with harness(app) as rota:
        end = rota.now + timedelta(hours=1)
        note.options(delay="10m").enqueue()
        rota.skip("1h")
        assert rota.run_until_idle() == 1
    assert at == [end]


def test_inline_runs_at_once(app: App) -> None:
    ran: list[str] = []

    @app.job
    def outer() -> str:
        ran.append("outer")
        inner.enqueue()
        return "done"

    @app.job
    async def inner() -> None:
        ran.append("inner")

    with harness(app, inline=True) as rota:
        x = outer.enqueue()
        assert x.result() == "done"
        assert ran == ["outer", "inner"]
        y = inner.options(delay="1m").enqueue()
        assert y.status() is Status.SCHEDULED
        rota.advance("1m")
        assert y.status() is Status.SUCCESS


def test_inline_leaves_a_failure_on_the_handle(app: App) -> None:
    @app.job(retry=None)
    def fail() -> None:
        raise ValueError("boom")

    with harness(app, inline=True):
        x = fail.enqueue()
        with pytest.raises(ExecutionFailed, match="boom"):
            x.result()


async def test_async_tests_can_drive_the_harness(app: App) -> None:
    @app.job
    async def add(a: int) -> int:
        return a + 1

    with harness(app) as rota:
        x = await add.aenqueue(1)
        assert await rota.arun_until_idle() == 1
        assert await x.aresult() == 2
        y = await add.options(delay="1m").aenqueue(2)
        assert await rota.aadvance("2m") == 1
        assert await y.aresult() == 3
        z = add.enqueue(3)
        assert rota.run_until_idle() == 1
        assert z.result() == 4


async def test_an_error_in_the_harness_reaches_an_async_test(app: App) -> None:
    with harness(app) as rota, pytest.raises(ValueError, match="duration must be"):
        rota.advance("soon")


@pytest.mark.parametrize("delay", [5, "5s", timedelta(seconds=5)])
def test_the_signals_of_a_job_are_obeyed(app: App, delay: Any) -> None:
    tries: list[str] = []

    @app.job(retry=Fixed(attempts=2, delay=1000))
    def job(kind: str) -> str:
        tries.append(kind)
        if tries.count(kind) > 1:
            return "done"
        signals: dict[str, Exception] = {"retry": RetryIn(delay), "snooze": Snooze(delay), "fail": FailForGood("no")}
        raise signals[kind]

    with harness(app) as rota:
        retry, snooze, fail = (job.enqueue(kind) for kind in ("retry", "snooze", "fail"))
        rota.run_until_idle()
        assert (retry.status(), snooze.status(), fail.status()) == (Status.RETRYING, Status.SCHEDULED, Status.FAILED)
        assert rota.advance("4.9s") == 0
        assert rota.advance("0.1s") == 2
        assert (retry.result(), snooze.result()) == ("done", "done")
        assert (retry.info().attempt_count, snooze.info().attempt_count) == (2, 1)
        assert fail.info().reason == "permanent_error"


def test_a_start_deadline_is_kept(app: App) -> None:
    @app.job
    def send() -> None: ...

    with harness(app) as rota:
        x = send.options(delay="1h", start_within="1m").enqueue()
        rota.skip("2h")
        rota.run_until_idle()
        assert x.status() is Status.SKIPPED


def test_a_job_that_never_stops_enqueueing_itself_is_noticed(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.testing.MOST_ROUNDS", 50)

    @app.job
    def endless() -> None:
        endless.enqueue()

    with harness(app) as rota:
        endless.enqueue()
        with pytest.raises(AssertionError, match="still not idle"):
            rota.run_until_idle()


def test_each_harness_starts_empty_and_leaves_the_app_as_it_was(app: App) -> None:
    @app.job
    def send() -> None: ...

    outside = send.enqueue()
    with harness(app):
        inside = send.enqueue()
        assert [inside.status()] == [Status.QUEUED]
    with harness(app) as rota:
        assert rota.run_until_idle() == 0
    assert outside.status() is Status.QUEUED


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), StopIteration()])
def test_a_job_may_raise_anything(app: App, error: BaseException) -> None:
    @app.job(retry=None)
    def leave() -> None:
        raise error

    @app.job(retry=None)
    async def leave_async() -> None:
        raise error

    with harness(app) as rota:
        x, y = leave.enqueue(), leave_async.enqueue()
        rota.run_until_idle()
        assert (x.status(), y.status()) == (Status.FAILED, Status.FAILED)


def test_a_job_that_is_called_directly_can_enqueue_others(app: App) -> None:
    @app.job
    def send(to: str) -> str:
        return f"sent to {to}"

    @app.job
    def welcome(ctx: Context, to: str) -> str:
        return ctx.enqueue(send, to).id

    with harness(app) as rota:
        x = app.handle(welcome("a@b.c"))
        rota.run_until_idle()
        assert x.result() == "sent to a@b.c"
        assert x.info().parent_id is None


def test_a_transaction_where_there_can_be_none_costs_one_attempt(app: App) -> None:
    @app.job(retry=5)
    def pay(ctx: Context) -> None:
        with ctx.transaction():
            pass

    with harness(app) as rota:
        x = pay.enqueue()
        rota.advance("1d")
        assert (x.status(), x.info().reason, len(x.attempts())) == (Status.FAILED, "permanent_error", 1)
        assert "only PostgreSQL" in (x.attempts()[0].error_message or "")


def test_the_next_attempt_finds_the_checkpoint_and_progress_and_lines_are_kept(app: App) -> None:
    @app.job(retry=Fixed(attempts=3, delay=10))
    def count(ctx: Context) -> list[int]:
        done: list[int] = ctx.restored or []
        ctx.checkpoint([*done, ctx.attempt])
        ctx.progress(ctx.attempt, 3)
        ctx.log(f"attempt {ctx.attempt}\nhas begun")
        if ctx.attempt < 3:
            raise ConnectionError
        return done

    with harness(app) as rota:
        x = count.enqueue()
        rota.advance("1m")
        assert x.result() == [1, 2]
        store = registry_of(app).connection.store()
        state = store.read(notes.state, "default", x.id)
        assert state is not None
        assert (state.done, state.total) == (3, 3)
        lines = [(line.fence, line.number, line.text) for line in store.read(notes.lines, "default", x.id)]
        assert lines == [
            (fence, number, text) for fence in (1, 2, 3) for number, text in ((1, f"attempt {fence}"), (2, "has begun"))
        ]


def test_each_attempt_has_context_variables_of_its_own(app: App) -> None:
    @app.job
    def greet(name: str) -> str:
        before = who.get()
        who.set(name)
        return before

    @app.job
    async def agreet(name: str) -> str:
        return greet(name)

    before = who.set("the test")
    try:
        with harness(app) as rota:
            who.set("later")
            executions = [job.enqueue(name) for name in "ab" for job in (greet, agreet)]
            rota.run_until_idle()
            assert [x.result() for x in executions] == ["the test"] * 4
            assert who.get() == "later"
    finally:
        who.reset(before)


def test_schedules_can_be_switched_off(app: App) -> None:
    @app.job(every="10s")
    def tick() -> None: ...

    @app.job
    def once() -> None: ...

    with harness(app, schedules=False) as rota:
        once.options(delay="1h").enqueue()
        assert rota.advance("1d") == 1
        assert [schedule.name for schedule in app.schedules()] == ["tick"]


def test_a_copy_of_the_test_s_process_ends_with_the_job(app: App) -> None:
    @app.job(retry=None)
    def forks() -> int:
        copy = os.fork()
        if not copy:
            raise SystemExit(7)
        return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])

    with harness(app) as rota:
        x = forks.enqueue()
        rota.run_until_idle()
        assert x.result() == 7


@pytest.mark.parametrize("inline", [False, True])
def test_the_app_stays_on_the_database_in_memory_when_it_is_closed(
    inline: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROTA_URL", raising=False)
    app = App("shop")

    @app.job
    def send(to: str) -> str:
        return f"sent to {to}"

    with harness(app, inline=inline) as rota:
        first = send.enqueue("a@b.c")
        app.close()
        second = send.enqueue("d@e.f")
        rota.run_until_idle()
        assert [x.result() for x in (first, second)] == ["sent to a@b.c", "sent to d@e.f"]
    assert not any(tmp_path.iterdir())
    send.enqueue("a@b.c")
    assert (tmp_path / "rota.db").exists()
    app.close()


def test_a_forked_process_does_not_open_the_real_database(app: App, tmp_path: Path) -> None:
    @app.job
    def send() -> None: ...

    (tmp_path / "rota.db").unlink(missing_ok=True)
    with harness(app):
        copy = os.fork()
        if not copy:
            try:
                send.enqueue()
            except UsageError as error:
                os._exit(7 if "forked" in str(error) else 1)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == 7
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("timeout", [None, 1, "1h"])
async def test_waiting_for_what_has_not_run_is_refused_at_once(app: App, timeout: str | float | None) -> None:
    @app.job
    def send() -> str:
        return "sent"

    with harness(app) as rota:
        x = send.enqueue()
        with pytest.raises(NotFinished, match=rf"{x.id} is queued.*call run_until_idle\(\) or advance\(\)"):
            x.result(timeout)
        with pytest.raises(NotFinished, match=r"is queued.*call run_until_idle\(\) or advance\(\)"):
            await x.aresult(timeout)
        await rota.arun_until_idle()
        assert x.result(timeout) == await x.aresult(timeout) == "sent"


def test_other_threads_use_the_same_harness(app: App) -> None:
    @app.job
    def send(n: int) -> int:
        return n

    with harness(app) as rota, ThreadPoolExecutor() as threads:
        executions = list(threads.map(send.enqueue, range(20)))
        assert rota.run_until_idle() == 20
        assert [x.result() for x in executions] == list(range(20))
