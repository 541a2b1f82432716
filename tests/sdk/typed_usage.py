"""What a type checker must make of a user's code. mypy checks this file like any other; nothing here is run."""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, assert_type

from rota import App, Context, Exponential, Handle, Schedule, Status, Unique

app = App("typed", url="sqlite://:memory:")


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


def sync_code() -> None:
    assert_type(by_itself.enqueue(2), Handle[timedelta])
    assert_type(app.schedule(by_itself, name="often", every="5m", arguments={"n": 2}), Schedule)
    assert_type(app.schedules(), list[Schedule])
    assert_type(app.schedules()[0].pause("a note"), bool)
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
