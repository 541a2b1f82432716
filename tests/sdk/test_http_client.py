"""One client port, two ways to reach it: the same calls on a database and over HTTP, with a worker for the jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rota import (
    App,
    ArgumentsError,
    Conflict,
    DefinitionError,
    ExecutionCancelled,
    ExecutionFailed,
    Fixed,
    KeyConflict,
    NotFinished,
    NotUnique,
    Run,
    Status,
    Unique,
    UnknownEvent,
    UnknownExecution,
    UnknownSchedule,
    UsageError,
)
from rota.sdk.app import registry_of
from rota.sdk.http_client import HttpClient
from rota.sdk.store_client import StoreClient
from tests.api.listening import listening
from tests.api.server import serving
from tests.sdk import remote_jobs
from tests.support.databases import fresh_database
from tests.support.proving import proof
from tests.support.waiting import eventually
from tests.support.workers import Site

pytestmark = pytest.mark.xdist_group("http client")
NOWHERE = "0197a3c2-0000-7000-8000-000000000000"


class Place:
    """A database with a worker, a server, and the ways to reach it, by name."""

    def __init__(self, folder: Path, database: str, server: str) -> None:
        self.folder = folder
        self.urls = {"store": database, "http": server}


def place(folder: Path, database: str) -> Iterator[Place]:
    with Site(folder, database) as site, serving(database) as server, listening(server) as url:
        site.worker(app="tests.sdk.remote_jobs:app")
        yield Place(folder, site.url, url)


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("remote")
    yield from place(folder, f"sqlite:///{folder}/rota.db")


@pytest.fixture(scope="module")
def on_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    yield from place(tmp_path_factory.mktemp("remote"), fresh_database())


@pytest.fixture(params=[proof("sqlite-store"), "sqlite-http", proof("postgres-http")])
def app(request: pytest.FixtureRequest) -> Iterator[App]:
    kind, _, way = request.param.partition("-")
    found: Place = request.getfixturevalue(f"on_{kind}")
    app = App(remote_jobs.NAME, url=found.urls[way])
    assert isinstance(registry_of(app).client, StoreClient if way == "store" else HttpClient)
    yield app
    app.close()


@pytest.fixture
def jobs(app: App) -> SimpleNamespace:
    return remote_jobs.declare(app)


@pytest.fixture
def over_http(on_sqlite: Place) -> Iterator[App]:
    app = App(remote_jobs.NAME, url=on_sqlite.urls["http"])
    yield app
    app.close()


# --- Enqueueing and handles ---------------------------------------------------------------------------------------


def test_a_result(jobs: SimpleNamespace) -> None:
    x = jobs.add.enqueue(1, b=2)
    assert (x.created, x.result(60), x.status()) == (True, 3, Status.SUCCESS)
    assert [y.result(60) for y in jobs.add.enqueue_many([(1, 2), {"a": 3}, 4])] == [3, 4, 5]
    assert jobs.add.handle(x.id).result() == 3


async def test_async_calls(jobs: SimpleNamespace, app: App) -> None:
    x = await jobs.add.aenqueue(5, 6)
    assert await x.aresult(60) == 11
    assert await x.astatus() is Status.SUCCESS
    assert (await x.ainfo()).arguments == {"a": 5, "b": 6}
    many = await jobs.add.aenqueue_many([1, 2, 3])
    assert await asyncio.gather(*(y.aresult(60) for y in many)) == [2, 3, 4]
    event = await app.aemit("nothing.listens", {"a": 1})
    assert event.created


async def test_many_async_waits_leave_room_for_other_calls(jobs: SimpleNamespace) -> None:
    """A thread for each wait would use up the threads of the loop."""
    late = await jobs.add.options(delay="1h").aenqueue(1)
    waits = [asyncio.create_task(late.aresult(120)) for _ in range(40)]
    assert await asyncio.wait_for(asyncio.create_task((await jobs.add.aenqueue(1)).aresult(30)), 30) == 2
    await late.acancel()
    ends = await asyncio.wait_for(asyncio.gather(*waits, return_exceptions=True), 60)
    assert all(isinstance(end, ExecutionCancelled) for end in ends)


def test_everything_about_an_execution(jobs: SimpleNamespace) -> None:
    options: dict[str, Any] = {"tags": ["vip"], "headers": {"tenant": "a"}, "timeout": "90s", "priority": "high"}
    x = jobs.who.options(**options, retry=Fixed(attempts=3, delay=7), start_within="1h").enqueue()
    assert x.result(60) == {"id": x.id, "headers": {"tenant": "a"}}
    found = x.info()
    assert (found.job, found.app, found.tags, found.headers) == ("who", "remote", ["vip"], {"tenant": "a"})
    assert (found.timeout, found.priority) == (timedelta(seconds=90), 10)
    assert found.retry == {"policy": "Fixed", "attempts": 3, "delay": 7.0}
    assert found.start_by is not None
    assert found.start_by - found.created_at == timedelta(hours=1)
    assert (found.attempts, found.why) == (x.attempts(), None)
    assert found.started_at is not None
    assert found.completed_at is not None
    assert found.started_at.tzinfo is UTC or found.started_at.utcoffset() == timedelta(0)


def test_a_failure(jobs: SimpleNamespace) -> None:
    x = jobs.fail.enqueue("ann")
    with pytest.raises(ExecutionFailed, match=r"failed \(error\): ValueError: no such customer: ann") as caught:
        x.result(60)
    failed = caught.value
    assert (failed.id, failed.job, failed.reason, failed.attempts) == (x.id, "fail", "error", 1)
    assert (failed.error_type, failed.error_message) == ("ValueError", "ValueError: no such customer: ann")
    with pytest.raises(UnknownExecution, match=r"is an execution of remote\.fail"):
        jobs.add.handle(x.id).result()


def test_every_attempt(jobs: SimpleNamespace) -> None:
    x = jobs.twice.enqueue()
    with pytest.raises(ExecutionFailed):
        x.result(60)
    attempts = x.attempts()
    assert [one.fence for one in attempts] == [1, 2]
    assert [one.error_message for one in attempts] == ["OSError: down"] * 2
    assert x.info().attempts == attempts


def test_times_delays_and_cancels(jobs: SimpleNamespace) -> None:
    at = datetime(2101, 1, 31, 8, 0, 0, 123456, tzinfo=UTC)
    x, y = jobs.add.options(at=at).enqueue(1), jobs.add.options(delay="1h", start_by=at).enqueue(1)
    assert (x.status(), x.info().run_at, y.info().start_by) == (Status.SCHEDULED, at, at)
    why = x.info().why
    assert why is not None
    assert why.checks
    with pytest.raises(NotFinished, match=r"is scheduled after 0\.05 s; it continues"):
        x.result("50ms")
    assert x.cancel() is Status.CANCELLED
    assert y.cancel() is Status.CANCELLED
    with pytest.raises(ExecutionCancelled):
        x.result(30)


def test_keys(jobs: SimpleNamespace) -> None:
    key = f"order-{jobs.add.enqueue(1).id}"
    x, again = (jobs.add.options(key=key, delay="1h").enqueue(7) for _ in range(2))
    assert (again.id, x.created, again.created) == (x.id, True, False)
    with pytest.raises(KeyConflict):
        jobs.add.options(key=key).enqueue(8)
    once = jobs.add.options(unique=Unique(key=key, scope="10m", on_conflict="reject"), delay="1h")
    held = once.enqueue(1)
    with pytest.raises(NotUnique) as caught:
        once.enqueue(1)
    assert caught.value.holder == held.id
    for one in (x, held):
        one.cancel()


def test_what_is_not_there(app: App) -> None:
    for call in (app.handle(NOWHERE).status, app.handle(NOWHERE).result, app.handle("..").info):
        with pytest.raises(UnknownExecution, match="there is no execution"):
            call()
    registry = registry_of(app)
    with pytest.raises(UnknownExecution):
        registry.client.cancel(NOWHERE)
    with pytest.raises(UnknownExecution):
        registry.client.run(NOWHERE)
    with pytest.raises(UnknownEvent):
        registry.client.event(NOWHERE)
    with pytest.raises(UnknownSchedule, match="schedule"):
        registry.client.schedule("nothing")
    with pytest.raises(UnknownSchedule):
        registry.client.pause_schedule("..", "")
    assert (registry.client.ticks("nothing", 0, 2**62, 10), app.unschedule("nothing")) == ([], False)


# --- Events --------------------------------------------------------------------------------------------------------


def test_events(app: App, jobs: SimpleNamespace) -> None:
    key = f"paid-{jobs.add.enqueue(1).id}"
    event = app.emit("order.paid", {"id": "A-17"}, subject="A-17", key=key)
    again = app.emit("order.paid", {"id": "A-17"}, subject="A-17", key=key)
    assert (event.created, again.id, again.created) == (True, event.id, False)
    (started,) = eventually(lambda: event.info().started, what="a delivery")
    assert app.handle(started.execution_id).result(60) == "A-17 is shipped"
    found = event.info()
    assert (found.name, found.subject, found.payload, found.key) == ("order.paid", "A-17", {"id": "A-17"}, key)
    assert event.replay() == 0
    with pytest.raises(KeyConflict):
        app.emit("order.paid", {"id": "B"}, key=key)
    many = app.emit_many(["month.ended", {"name": "month.ended", "payload": [1]}])
    assert [one.info().payload for one in many] == [None, [1]]


# --- Dead letters --------------------------------------------------------------------------------------------------


def test_dead_letters(app: App, jobs: SimpleNamespace) -> None:
    word = jobs.add.enqueue(1).id
    before = datetime.now(UTC) - timedelta(minutes=5)
    made = [jobs.fail.enqueue(word) for _ in range(3)]
    for x in made:
        with pytest.raises(ExecutionFailed):
            x.result(60)
    first, second, third = (x.id for x in made)
    found = app.dead.list(job="fail", error=word, reason="error", since=before)
    assert [one.execution_id for one in found] == [third, second, first]
    assert found[0].error_message == f"ValueError: no such customer: {word}"
    assert found[0].error["type"] == "ValueError"
    assert app.dead.list(error=word, since=datetime.now(UTC) + timedelta(hours=1)) == []
    (newest,) = app.dead.list(error=word, limit=1)
    (next_,) = app.dead.list(error=word, limit=1, before=newest.execution_id)
    assert (newest.execution_id, next_.execution_id) == (third, second)

    (again,) = app.dead.replay([first, word, NOWHERE])
    with pytest.raises(ExecutionFailed):
        again.result(60)
    assert again.info().replay_of == first
    assert list(app.dead.replay([first])) == []
    assert (app.dead.discard([second, third]), app.dead.discard([second, third])) == (2, 0)
    assert [one.execution_id for one in app.dead.list(error=word)] == [again.id]
    app.dead.discard([again.id])


# --- Runs ----------------------------------------------------------------------------------------------------------


def asked(run: Run[Any]) -> None:
    eventually(lambda: run.step("approve").status == "running" or run.detail().questions, what="a question")


def test_a_run_with_an_approval(jobs: SimpleNamespace) -> None:
    run = jobs.release.start(7)
    asked(run)
    assert run.detail().questions == ["Release 8?"]
    with pytest.raises(UsageError, match="'nothing'"):
        run.approve("nothing")
    with pytest.raises((UsageError, Conflict)):
        run.approve("check")
    run.approve(note="checked")
    assert run.result(60) == 8
    with pytest.raises(Conflict, match="approve"):
        run.reject("approve")
    with pytest.raises(Conflict, match="waits for no answer"):
        run.approve()
    detail = run.detail()
    assert [one.step for one in detail.steps] == ["add", "approve", "check"]
    assert (detail.status, detail.result, detail.undos, detail.workflow) == (Status.SUCCESS, 8, [], "release")
    assert detail.critical_path is not None
    assert detail.duration is not None


async def test_a_run_that_is_paused_and_rejected(jobs: SimpleNamespace) -> None:
    run = await jobs.release.astart(1)
    await asyncio.to_thread(asked, run)
    assert (await run.apause("wait"), await run.apause("wait"), run.detail().paused is not None) == (True, False, True)
    assert (await run.aresume(), await run.aresume()) == (True, False)
    await run.areject(note="no")
    with pytest.raises(ExecutionFailed):
        await run.aresult(60)
    assert (await run.adetail()).failed_step == "approve"


def test_a_retry_keeps_what_has_succeeded(jobs: SimpleNamespace) -> None:
    run = jobs.risky.start(-1)
    with pytest.raises(ExecutionFailed):
        run.result(60)
    detail = run.detail()
    assert detail.retry is not None
    assert (detail.failed_step, detail.retry.again) == ("check", ["check", "add_2"])
    again = run.retry(step_arguments={"check": {"x": 5}})
    assert again.result(60) == 15
    assert again.detail().replay_of == run.id
    assert [one.is_kept for one in again.steps()] == [True, False, False]
    other = run.retry("start", arguments={"x": 4}, version="latest")
    assert other.result(60) == 14
    with pytest.raises((Conflict, UsageError)):
        again.retry("nowhere")


# --- Schedules -----------------------------------------------------------------------------------------------------


def test_schedules(app: App, jobs: SimpleNamespace) -> None:
    app.calendar("holidays", ["2101-12-24"])
    nightly = app.schedule(
        jobs.add,
        name="nightly",
        cron="0 3 * * *",
        tz="Europe/Berlin",
        arguments={"a": 1},
        calendars=["holidays"],
        catch_up="all",
        jitter="30s",
        priority="high",
    )
    found = nightly.info()
    assert (found.name, found.job, found.cron, found.tz, found.arguments) == (
        "nightly",
        "add",
        "0 3 * * *",
        "Europe/Berlin",
        {"a": 1},
    )
    assert (found.calendars, found.catch_up, found.jitter, found.priority) == (
        ["holidays"],
        "all",
        timedelta(seconds=30),
        10,
    )
    assert (found.origin, found.next_at is not None, found.held) == ("run_time", True, [])
    assert [one.name for one in app.schedules()] == ["nightly"]

    changed = app.schedule(jobs.add, name="nightly", every="90m", phase="5m", arguments={"a": 2}).info()
    assert (changed.cron, changed.every, changed.phase) == (None, timedelta(minutes=90), timedelta(minutes=5))
    assert (changed.tz, changed.calendars, changed.arguments, changed.priority) == ("UTC", [], {"a": 2}, 0)
    assert changed.schedule_id == found.schedule_id

    assert (nightly.pause("disk is full"), nightly.pause()) == (True, False)
    paused = nightly.info().paused
    assert paused is not None
    assert paused.note == "disk is full"
    assert (nightly.resume(), nightly.resume()) == (True, False)
    with pytest.raises(DefinitionError, match="past"):
        app.schedule(jobs.add, name="never", at=datetime(2001, 1, 1, tzinfo=UTC), arguments={"a": 1})
    with pytest.raises(DefinitionError, match="calendar"):
        app.schedule(jobs.add, name="never", cron="0 0 * * *", arguments={"a": 1}, calendars=["nothing"])
    assert (nightly.remove(), nightly.remove(), app.schedules()) == (True, False, [])


def test_ticks(app: App, jobs: SimpleNamespace) -> None:
    often = app.schedule(jobs.add, name="often", every="1s", arguments={"a": 1}, overlap="allow")
    try:
        ticks = eventually(lambda: (found := often.ticks())[:1] and len(found) >= 2 and found, what="two ticks")
        assert isinstance(ticks, list)
    finally:
        often.remove()
    ticks = often.ticks()
    assert [one.at for one in ticks] == sorted((one.at for one in ticks), reverse=True)
    oldest, newest = ticks[-1], ticks[0]
    assert (oldest.outcome, app.handle(oldest.execution_id or "").result(60)) == ("fired", 2)
    assert often.ticks(oldest.at, oldest.at) == [often.ticks()[-1]]
    assert len(often.ticks(limit=1)) == 1
    assert often.ticks(newest.until + timedelta(seconds=1)) == []


# --- Only over HTTP ------------------------------------------------------------------------------------------------


def test_a_transaction_needs_the_database(over_http: App) -> None:
    jobs = remote_jobs.declare(over_http)
    for call in (
        lambda: jobs.add.within(object()).enqueue(1),
        lambda: over_http.within(object()).emit("a"),
        lambda: over_http.declare(),
    ):
        with pytest.raises(UsageError, match=r"HTTP.* give (the app|it) the URL of the database"):
            call()
    with pytest.raises(UsageError, match="version="):
        jobs.risky.options(version=1).start(x=1)
    with pytest.raises(UsageError, match="by="):
        over_http.workflows["risky"].handle(NOWHERE).approve(by="ann")


def test_one_request_takes_a_thousand(over_http: App) -> None:
    jobs = remote_jobs.declare(over_http)
    with pytest.raises(ArgumentsError, match="at most 1,000 executions"):
        jobs.add.enqueue_many([1] * 1001)
    with pytest.raises(ArgumentsError, match="at most 1,000 events"):
        over_http.emit_many(["a"] * 1001)
