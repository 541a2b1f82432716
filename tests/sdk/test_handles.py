"""A handle on an execution: its status, its result, its end."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
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
from tests.support.waiting import eventually


@dataclass
class Receipt:
    id: uuid.UUID
    at: datetime


def work(app: App, outcome: Outcome) -> None:
    """What a worker would do: claim one execution, and end it."""
    newcomer = fleet.Newcomer(
        namespace="default",
        app=app.name,
        name="w",
        host="h",
        pid=1,
        version="0",
        queues=None,
        jobs=[*app.jobs],
        concurrency=1,
    )
    store = registry_of(app).connection.store()
    worker = store.transact(fleet.join, newcomer, 60.0)
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
        assert x.result() == Receipt(uuid.UUID(int=5), datetime(2026, 1, 1, tzinfo=UTC))
        assert app.handle(x.id).result() == {
            "id": "00000000-0000-0000-0000-000000000005",
            "at": "2026-01-01T00:00:00Z",
        }


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
        with pytest.raises(ExecutionFailed, match=r"failed \(error\): ValueError: no such customer"):
            x.result()
        assert x.status() is Status.FAILED


def test_a_cancel_and_a_skip_are_raised_as_such(app: App) -> None:
    @app.job
    def send() -> None: ...

    with harness(app) as rota:
        x, y = send.enqueue(), send.options(start_within="1s").enqueue()
        assert x.cancel() is Status.CANCELLED
        rota.advance(5, worker=False)
        rota.run_until_idle()
        with pytest.raises(ExecutionCancelled, match="cancelled"):
            x.result()
        with pytest.raises(ExecutionSkipped, match="start_deadline"):
            y.result()


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
        x.result(timeout=0.05)
    with pytest.raises(TimeoutError):
        x.result(timeout=0)
    assert x.status() is Status.QUEUED
    assert not is_waited_for(app)()


async def test_an_async_wait_that_takes_too_long_says_so_too(app: App) -> None:
    @app.job
    def send() -> None: ...

    x = await send.aenqueue()
    with pytest.raises(NotFinished, match="is queued"):
        await x.aresult(timeout=0.05)
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


def test_every_attempt_can_be_seen(app: App) -> None:
    @app.job(retry=2)
    def fail() -> None:
        raise ValueError("boom")

    with harness(app) as rota:
        x = fail.enqueue()
        rota.advance("1h")
        assert [(attempt.fence, attempt.status, attempt.final) for attempt in x.attempts()] == [
            (1, "failed", 0),
            (2, "failed", 1),
        ]
        assert all("boom" in (attempt.error or "") for attempt in x.attempts())


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
