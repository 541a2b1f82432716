"""The code of a user, with all that `rota` has: type checkers must find these types in it. Nothing here is run."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, assert_type

from rota import (
    App,
    Attempt,
    Context,
    Custom,
    DeadLetter,
    ExecutionCancelled,
    ExecutionDetail,
    ExecutionFailed,
    ExecutionSkipped,
    Exponential,
    FailForGood,
    Fixed,
    Handle,
    Job,
    LastTick,
    Linear,
    NotFinished,
    NotUnique,
    Paused,
    Progress,
    QueueFull,
    Remedy,
    RetryIn,
    RotaError,
    Schedule,
    ScheduleHandle,
    Snooze,
    Status,
    StoreUnavailable,
    Tick,
    Unique,
    Usage,
    Why,
    WhyCheck,
)
from rota.testing import Harness, harness

app = App("typed", url="sqlite://:memory:", namespace="default")
app.queue("mail", policy="fifo", max_depth=100)
app.breaker("bank", failures=3, wait=timedelta(minutes=1))
app.calendar("holidays", [date(2026, 12, 24), "2026-12-25"])


@dataclass
class Receipt:
    cents: int


@app.job(queue="mail", retry=Exponential(attempts=3), timeout="30s")
def send(to: str, *, subject: str = "hi") -> str:
    return to + subject


@app.job
def bare(n: int) -> list[int]:
    return [n]


@app.job()
async def fetch(url: str) -> bytes:
    return url.encode()


@app.job
async def bare_async(n: int) -> int:
    return n


@app.job(retry=None)
def with_context(ctx: Context, n: int) -> float:
    return n / ctx.attempt


@app.job
async def bare_with_context(ctx: Context, n: int, *, loud: bool = False) -> str:
    return f"{ctx.id}{n}{loud}"


@app.job(retry=lambda attempt, error: None if attempt > 3 else "5s")
def custom_retry() -> None: ...


@app.job(cron=["0 9 * * 1-5", "0 12 * * 6"], tz="Europe/Berlin", catch_up=3, overlap="queue_one", jitter="30s")
def by_itself(ctx: Context, n: int = 1) -> timedelta:
    return n * ctx.late_by


@app.job
def returns_from_its_transaction(ctx: Context) -> str:
    with ctx.transaction() as conn:
        return ctx.complete(conn, "paid")


@app.job(isolation="process", memory="200MB", grace=5, resources={"gpu": 1}, requires=["eu"], pool="heavy")
def steers(ctx: Context, state: dict[str, int]) -> Receipt:
    ctx.log("started")
    ctx.progress(1, total=2, note="half")
    ctx.checkpoint(state)
    assert_type(ctx.id, str)
    assert_type(ctx.attempt, int)
    assert_type(ctx.fence, int)
    assert_type(ctx.headers, dict[str, str])
    assert_type(ctx.cancelled, bool)
    assert_type(ctx.enqueue(send, "a"), Handle[str])
    if ctx.restored:
        raise RetryIn("5m", "busy")
    if ctx.cancelled:
        raise Snooze(5)
    if ctx.catch_up:
        raise FailForGood("too late")
    return Receipt(1)


@app.job(retry=Fixed(attempts=3, delay="1s"), breaker="bank", affinity="n", affinity_wait="5s", pause_after=10)
def fixed(n: int) -> None: ...


@app.job(retry=Linear(step=1.5, cap=timedelta(minutes=1), never=KeyError), total_timeout="1h", progress_timeout=60)
def linear(n: int) -> None: ...


@app.job(retry=Custom(delay_for=lambda attempt, error: timedelta(seconds=attempt)), time_slice="10m", start_within="1d")
def custom(n: int) -> None: ...


report = app.command("report", ["report", "{month}"], environment={"TZ": "UTC"}, timeout="10m")
settle = app.http("settle", "https://bank.example/orders/{order}", method="POST", queue="mail")


def every_kind_of_job() -> None:
    assert_type(report, Job[..., Any, Any])
    assert_type(settle.enqueue(order=7), Handle[Any])
    assert_type(steers.enqueue({"a": 1}).result(), Receipt)
    assert_type(steers.handle("id"), Handle[Receipt])
    assert_type(fetch.handle("id").result(), bytes)


def an_execution(x: Handle[str]) -> None:
    assert_type(x.id, str)
    assert_type(x.created, bool)
    assert_type(x.attempts(), list[Attempt])
    info = x.info()
    assert_type(info, ExecutionDetail)
    assert_type(info.status, Status)
    assert_type(info.run_at, datetime)
    assert_type(info.completed_at, datetime | None)
    assert_type(info.late_by, timedelta | None)
    assert_type(info.timeout, timedelta | None)
    assert_type(info.tags, list[str] | None)
    assert_type(info.headers, dict[str, str] | None)
    assert_type(info.retry, dict[str, Any] | None)
    assert_type(info.attempt_count, int)
    assert_type(info.attempts, list[Attempt])
    assert_type(info.progress_detail, Progress | None)
    assert_type(info.why, Why | None)
    if info.why is not None:
        assert_type(info.why.text, str)
        assert_type(info.why.checks, list[WhyCheck])
        assert_type(info.why.checks[0].remedy, Remedy | None)
    for attempt in info.attempts:
        assert_type(attempt.started_at, datetime | None)
        assert_type(attempt.error_message, str | None)
        assert_type(attempt.usage, Usage | None)
        if attempt.usage is not None:
            assert_type(attempt.usage.cpu, timedelta)


def a_schedule(schedule: ScheduleHandle) -> None:
    info = schedule.info()
    assert_type(info, Schedule)
    assert_type(info.next_at, datetime | None)
    assert_type(info.every, timedelta | None)
    assert_type(info.window, timedelta)
    assert_type(info.at, list[datetime] | None)
    assert_type(info.paused, Paused | None)
    assert_type(info.last_tick, LastTick | None)
    assert_type(schedule.name, str)
    assert_type(schedule.pause("a note"), bool)
    assert_type(schedule.resume(), bool)
    assert_type(schedule.remove(), bool)
    for tick in schedule.ticks(start=datetime(2026, 1, 1, tzinfo=UTC), end=datetime.now(UTC), limit=10):
        assert_type(tick, Tick)
        assert_type(tick.at, datetime)
        assert_type(tick.status, Status | None)
        assert_type(tick.execution_id, str | None)


def dead_letters(page: str | None = None) -> None:
    letters = app.dead.list(job="send", queue="mail", reason="error", error="boom", since=datetime.now(UTC), limit=5)
    assert_type(app.dead.list(before=page), list[DeadLetter])
    assert_type(letters, list[DeadLetter])
    assert_type(letters[0].completed_at, datetime)
    assert_type(letters[0].error_message, str | None)
    assert_type(app.dead.replay(letter.execution_id for letter in letters), Iterator[Handle[Any]])
    assert_type(app.dead.discard([letters[0].execution_id]), int)


def errors(x: Handle[str]) -> None:
    try:
        x.result(timeout=timedelta(seconds=1))
    except (ExecutionFailed, ExecutionCancelled, ExecutionSkipped) as ended:
        assert_type(ended.id, str)
        assert_type(ended.job, str)
        assert_type(ended.reason, str)
        assert_type(ended.attempts, int)
        assert_type(ended.error_type, str | None)
        assert_type(ended.error_message, str | None)
    except QueueFull as full:
        assert_type(full.retry_after, timedelta)
    except NotUnique as taken:
        assert_type(taken.holder, str)
    except StoreUnavailable as lost:
        assert_type(lost.may_pass, bool)
    except (NotFinished, RotaError) as error:
        assert_type(error.code, str)


def tests() -> None:
    with harness(app, inline=True, start=datetime(2026, 1, 1, tzinfo=UTC), seed=1, schedules=False) as rota:
        assert_type(rota, Harness)
        assert_type(rota.now, datetime)
        assert_type(rota.run_until_idle(), int)
        assert_type(rota.advance("1h"), int)
        rota.skip(timedelta(days=1))


def sync_code() -> None:
    assert_type(by_itself.enqueue(2), Handle[timedelta])
    assert_type(app.schedule(by_itself, name="often", every="5m", arguments={"n": 2}), ScheduleHandle)
    assert_type(app.schedule("send", at=[datetime.now(UTC)], priority="high", queue="mail"), ScheduleHandle)
    assert_type(app.schedules(), list[ScheduleHandle])
    assert_type(app.unschedule("often"), bool)
    assert_type(send.within(object(), notify=True).enqueue("a"), Handle[str])
    assert_type(
        send.options(tags=["vip"], headers={"a": "b"}, timeout=5, retry=2, start_by=datetime.now(UTC)).name, str
    )
    assert_type(send.enqueue("a", subject="x"), Handle[str])
    assert_type(send.enqueue("a"), Handle[str])
    assert_type(send.enqueue("a").result(timeout=10), str)
    assert_type(send.enqueue("a").status(), Status)
    assert_type(send.enqueue("a").cancel(), Status)
    assert_type(send("a", subject="x"), str)
    assert_type(bare.enqueue(5), Handle[list[int]])
    assert_type(fetch.enqueue("u"), Handle[bytes])
    assert_type(bare_async.enqueue(1), Handle[int])
    assert_type(with_context.enqueue(1), Handle[float])
    assert_type(with_context(1), float)
    assert_type(bare_with_context.enqueue(1, loud=True), Handle[str])
    assert_type(custom_retry.enqueue(), Handle[None])
    assert_type(send.options(delay="1h", priority="high", key="k", unique=Unique()).enqueue("a"), Handle[str])
    assert_type(send.enqueue_many([("a",), {"to": "b"}, "c"]), list[Handle[str]])
    assert_type(app.handle("id"), Handle[Any])


async def async_code() -> None:
    direct: Coroutine[Any, Any, bytes] = fetch("u")
    assert_type(await direct, bytes)
    assert_type(await send.aenqueue("a"), Handle[str])
    assert_type(await (await fetch.aenqueue("u")).aresult(timeout=1.5), bytes)
    assert_type(await send.aenqueue_many(["a"]), list[Handle[str]])
    assert_type(await bare_async(1), int)
    x = send.handle("id")
    assert_type(await x.astatus(), Status)
    assert_type(await x.acancel(), Status)
    assert_type(await x.ainfo(), ExecutionDetail)
    assert_type(await x.aattempts(), list[Attempt])
    assert_type(await x.aresult("1m"), str)
