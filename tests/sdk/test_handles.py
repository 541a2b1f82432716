"""A handle on an execution: its status, its result, its end."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota import (
    App,
    DefinitionError,
    ExecutionCancelled,
    ExecutionFailed,
    ExecutionSkipped,
    Handle,
    NotFinished,
    Status,
    UnknownExecution,
)
from rota.domain.outcome import Outcome, Succeeded
from rota.domain.served import Served
from rota.ops import claim, finish, fleet
from rota.sdk.app import registry_of
from rota.store.postgres.bus import PostgresBus
from rota.testing import harness
from tests.support.newcomers import newcomer
from tests.support.waiting import eventually


@dataclass
class Receipt:
    id: uuid.UUID
    at: datetime


def work(app: App, outcome: Outcome) -> None:
    """What a worker would do: claim one execution, and end it."""
    joining = newcomer(app.name, jobs=[*app.jobs], concurrency=1)
    store = registry_of(app).connection.store()
    worker = store.transact(fleet.join, joining, 60.0)
    (attempt,) = store.transact(claim.claim, worker, Served.one("default", app.name, None, [*app.jobs]), 1).claims
    assert store.transact(finish.finish, [finish.Finished(attempt.id, attempt.fence, outcome)]) == []


def is_waited_for(app: App) -> Callable[[], bool]:
    bus = registry_of(app).connection.store().bus
    if isinstance(bus, PostgresBus):
        return lambda: bool(bus._listeners)
    folder = Path(registry_of(app).settings.url.removeprefix("sqlite:///") + "-hints")
    return lambda: folder.is_dir() and any(folder.iterdir())


def test_a_result_comes_back_as_the_function_announced_it(app: App) -> None:
    @app.job
    def buy(n: int) -> Receipt:
        return Receipt(uuid.UUID(int=n), datetime(2026, 1, 1, tzinfo=UTC))

    with harness(app) as rota:
        x = buy.enqueue(5)
        rota.run_until_idle()
        receipt = Receipt(uuid.UUID(int=5), datetime(2026, 1, 1, tzinfo=UTC))
        assert [one.result() for one in (x, buy.handle(x.id), app.handle(x.id))] == [receipt] * 3


def test_the_result_of_a_job_that_the_app_does_not_have_is_plain_json(app: App) -> None:
    @app.job
    def buy(n: int) -> Receipt:
        return Receipt(uuid.UUID(int=n), datetime(2026, 1, 1, tzinfo=UTC))

    url = registry_of(app).settings.url
    others = [App("shop", url=url), App("other", url=url)]

    @others[1].job(name="buy")
    def of_the_same_name() -> Receipt:
        raise NotImplementedError

    x = buy.enqueue(5)
    work(app, Succeeded('{"id":"00000000-0000-0000-0000-000000000005","at":"2026-01-01T00:00:00Z"}'))
    assert isinstance(app.handle(x.id).result(), Receipt)
    for other in others:
        assert other.handle(x.id).result()["at"] == "2026-01-01T00:00:00Z"
        other.close()


def test_a_result_that_is_not_what_was_announced_is_still_given(app: App) -> None:
    @app.job
    def lie() -> int:
        return "not a number"  # type: ignore[return-value]

    with harness(app) as rota:
        x = lie.enqueue()
        rota.run_until_idle()
        result: object = x.result()
        assert result == "not a number"


def test_a_function_that_returns_nothing_has_the_result_none(app: App) -> None:
    @app.job
    def nothing() -> None: ...

    with harness(app, inline=True):
        assert nothing.enqueue().result() is None


def test_a_failure_is_raised_with_its_reason_and_error(app: App) -> None:
    @app.job(retry=None)
    def fail() -> None:
        raise ValueError("no such customer")

    with harness(app, inline=True):
        x = fail.enqueue()
        with pytest.raises(ExecutionFailed, match=r"failed \(error\): ValueError: no such customer") as caught:
            x.result()
        assert x.status() is Status.FAILED
    failed = caught.value
    assert (failed.id, failed.job, failed.reason, failed.attempts) == (x.id, "fail", "error", 1)
    assert (failed.error_type, failed.error_message) == ("ValueError", "ValueError: no such customer")


def test_a_cancel_and_a_skip_are_raised_as_such(app: App) -> None:
    @app.job
    def send() -> None: ...

    with harness(app) as rota:
        x, y = send.enqueue(), send.options(start_within="1s").enqueue()
        assert x.cancel() is Status.CANCELLED
        rota.skip(5)
        rota.run_until_idle()
        with pytest.raises(ExecutionCancelled, match="cancelled"):
            x.result()
        with pytest.raises(ExecutionSkipped, match="start_deadline") as caught:
            y.result()
    skipped = caught.value
    assert (skipped.id, skipped.job, skipped.reason, skipped.attempts) == (y.id, "send", "start_deadline", 0)
    assert (skipped.error_type, skipped.error_message) == (None, None)


def test_who_waits_for_a_result_is_woken_by_its_end(app: App) -> None:
    @app.job
    def send() -> str:
        return ""

    x = send.enqueue()
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(x.result, 60)
        eventually(is_waited_for(app), what="a listener")
        work(app, Succeeded('"done"'))
        assert waiting.result(60) == "done"
    assert not is_waited_for(app)()


async def test_async_code_waits_without_blocking_the_loop(app: App) -> None:
    @app.job
    async def send() -> str:
        return ""

    x = await send.aenqueue()
    waiting = asyncio.create_task(x.aresult(timeout=60))
    await asyncio.to_thread(eventually, is_waited_for(app), what="a listener")
    assert not waiting.done()
    await asyncio.to_thread(work, app, Succeeded('"done"'))
    assert await waiting == "done"
    assert await x.aresult() == "done"


def test_many_wait_at_once(app: App) -> None:
    @app.job
    def send() -> int:
        return 1

    x = send.enqueue()
    with ThreadPoolExecutor(20) as threads:
        waiting = [threads.submit(x.result, 60) for _ in range(20)]
        eventually(is_waited_for(app), what="a listener")
        work(app, Succeeded("7"))
        assert {future.result(60) for future in waiting} == {7}


def test_a_wait_that_takes_too_long_says_what_the_execution_does(app: App) -> None:
    @app.job
    def send() -> None: ...

    x = send.enqueue()
    with pytest.raises(NotFinished, match=r"is queued after 0\.05 s; it continues"):
        x.result(timeout="50ms")
    with pytest.raises(TimeoutError):
        x.result(timeout=timedelta(0))
    with pytest.raises(DefinitionError, match="timeout must be"):
        x.result(timeout=-1)
    assert x.status() is Status.QUEUED
    assert not is_waited_for(app)()


async def test_an_async_wait_that_takes_too_long_says_so_too(app: App) -> None:
    @app.job
    def send() -> None: ...

    x = await send.aenqueue()
    with pytest.raises(NotFinished, match="is queued"):
        await x.aresult(timeout=timedelta(milliseconds=50))
    with pytest.raises(NotFinished):
        await x.aresult(timeout=0)


async def test_a_wait_that_is_cancelled_leaves_nothing_behind(app: App) -> None:
    @app.job
    def send() -> None: ...

    x = await send.aenqueue()
    waiting = asyncio.create_task(x.aresult())
    await asyncio.to_thread(eventually, is_waited_for(app), what="a listener")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not is_waited_for(app)()


def test_in_memory_a_wait_gives_up_too(app: App) -> None:
    @app.job
    def send() -> None: ...

    with harness(app), pytest.raises(NotFinished):
        send.enqueue().result(timeout=0)


async def test_everything_about_an_execution_is_given_as_python_has_it(app: App) -> None:
    @app.job(retry=1)
    def send(to: str, at: datetime) -> str:
        raise ValueError(to)

    with harness(app) as rota:
        start = rota.now
        urgent = send.options(tags=["vip"], headers={"tenant": "a"}, timeout="90s", retry=2, start_within="1h")
        x = urgent.enqueue("a", start)
        due = x.info()
        assert (due.run_at, due.start_by) == (start, start + timedelta(hours=1))
        assert due.timeout == timedelta(seconds=90)
        assert due.retry == {"policy": "Exponential", "attempts": 2}
        assert (due.tags, due.headers) == (["vip"], {"tenant": "a"})
        assert due.arguments == {"to": "a", "at": start.isoformat().replace("+00:00", "Z")}
        assert due.why is not None
        assert due.why.checks[0].code == "due"
        await rota.aadvance("1h")
        (attempt, last), over = await x.aattempts(), await x.ainfo()
        assert (attempt.started_at, attempt.error_message, attempt.is_final) == (start, "ValueError: a", False)
        assert last.error["message"] == over.error["message"] == "a"
        assert over.attempts == [attempt, last]
        assert (over.status, over.why, over.completed_at) == (Status.FAILED, None, last.completed_at)


async def test_what_a_tick_started_says_how_late_it_was(app: App) -> None:
    @app.job(every="1h")
    def tidy() -> None: ...

    with harness(app, start=datetime(2026, 1, 1, 0, 30, tzinfo=UTC)) as rota:
        (schedule,) = app.schedules()
        one = schedule.info()
        assert (one.every, one.next_at) == (timedelta(hours=1), datetime(2026, 1, 1, 1, tzinfo=UTC))
        rota.skip("31m")
        await rota.arun_until_idle()
        (tick,) = schedule.ticks()
        assert tick.execution_id is not None
        info = app.handle(tick.execution_id).info()
        assert (info.schedule, info.tick, info.late_by) == ("tidy", tick.at, timedelta(minutes=1))
        last = schedule.info().last_tick
        assert last is not None
        assert (last.at, last.late_by, last.status) == (tick.at, timedelta(minutes=1), Status.SUCCESS)
        assert schedule.ticks(start=tick.at, end=rota.now, limit=1) == [tick]
        assert schedule.ticks(end=tick.at - timedelta(seconds=1)) == []
        with pytest.raises(DefinitionError, match="start needs a time zone"):
            schedule.ticks(start=datetime(2026, 1, 1))  # noqa: DTZ001


def test_an_unknown_id_is_said_to_be_unknown(app: App) -> None:
    x: Handle[object] = app.handle("0190a0a0-0000-7000-8000-000000000000")
    calls: list[Callable[[], object]] = [x.status, x.info, x.cancel, x.result, x.attempts]
    for call in calls:
        with pytest.raises(UnknownExecution, match=x.id):
            call()
    with pytest.raises(DefinitionError, match="is a text, not 3"):
        app.handle(3)  # type: ignore[arg-type]


def test_a_handle_of_another_namespace_finds_nothing(app: App) -> None:
    @app.job(retry=None)
    def send() -> str:
        return "secret"

    x = send.enqueue()
    work(app, Succeeded('"secret"'))
    assert x.result() == "secret"
    other = App("shop", url=registry_of(app).settings.url, namespace="tenant")
    try:
        foreign = other.handle(x.id)
        for call in (foreign.status, foreign.info, foreign.cancel, foreign.result, foreign.attempts):
            with pytest.raises(UnknownExecution):
                call()
    finally:
        other.close()


async def test_a_handle_of_a_job_refuses_executions_of_another_job(app: App) -> None:
    @app.job
    def send() -> str:
        return "sent"

    @app.job
    def count() -> int:
        return 1

    with harness(app, inline=True):
        sent = send.enqueue()
        assert (send.handle(sent.id).result(), send.handle(sent.id).info().job) == ("sent", "send")
        wrong = count.handle(sent.id)
        for call in (wrong.result, wrong.info):
            with pytest.raises(UnknownExecution, match=f"{sent.id} is an execution of shop.send, not of shop.count"):
                call()
        for acall in (wrong.aresult, wrong.ainfo):
            with pytest.raises(UnknownExecution, match=r"of shop\.send, not of shop\.count"):
                await acall()
        assert app.handle(sent.id).result() == "sent"


def test_every_attempt_can_be_seen(app: App) -> None:
    @app.job(retry=2)
    def fail() -> None:
        raise ValueError("boom")

    with harness(app) as rota:
        x = fail.enqueue()
        rota.advance("1h")
        assert [(attempt.attempt, attempt.status, attempt.is_final) for attempt in x.attempts()] == [
            (1, "failed", False),
            (2, "failed", True),
        ]
        assert [attempt.error_message for attempt in x.attempts()] == ["ValueError: boom"] * 2


def test_waiting_from_many_threads_while_others_enqueue(app: App) -> None:
    @app.job
    def send(n: int) -> int:
        return n

    stop = threading.Event()

    def noise() -> None:
        number = 0
        while not stop.is_set():
            send.options(queue="noise", delay="1h").enqueue(number)
            number += 1

    x = send.enqueue(1)
    thread = threading.Thread(target=noise)
    thread.start()
    try:
        with ThreadPoolExecutor() as threads:
            waiting = threads.submit(x.result, 60)
            eventually(is_waited_for(app), what="a listener")
            work(app, Succeeded("1"))
            assert waiting.result(60) == 1
    finally:
        stop.set()
        thread.join()
