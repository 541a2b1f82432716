"""Enqueueing from Python: one, many, sync, async, with options, and the handle that comes back."""

from __future__ import annotations

import asyncio
import itertools
import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from rota import App, ArgumentsError, DefinitionError, Fixed, KeyConflict, NotUnique, QueueFull, Status, Unique
from rota.domain import rank
from rota.ids import FIRST_ID, LAST_ID
from rota.ops import enqueue, submission
from rota.sdk.app import registry_of
from rota.store import reader
from rota.testing import harness


def count(app: App) -> int:
    store = registry_of(app).connection.store()
    return len(store.read(reader.ids_between, "default", FIRST_ID, LAST_ID, 1_000_000))


def test_an_accepted_execution_is_stored_with_its_arguments(app: App) -> None:
    @app.job(queue="mail")
    def send(to: str, *, subject: str = "hi") -> str:
        return to

    x = send.enqueue("a@b.c", subject="yo")
    info = x.info()
    assert (info.execution_id, info.job, info.queue, info.app, info.actor) == (x.id, "send", "mail", "shop", "sdk")
    assert info.arguments == {"to": "a@b.c", "subject": "yo"}
    assert x.status() is Status.QUEUED
    assert x.created
    assert repr(x) == f"Handle({x.id!r})"
    assert app.handle(x.id) == x
    assert len({x, app.handle(x.id)}) == 1


async def test_async_code_enqueues_without_blocking_the_loop(app: App) -> None:
    @app.job
    async def send(to: str) -> str:
        return to

    handles = await asyncio.gather(*(send.aenqueue(f"{number}@b.c") for number in range(50)))
    assert len({handle.id for handle in handles}) == 50
    assert await handles[0].astatus() is Status.QUEUED
    assert await handles[0].acancel() is Status.CANCELLED
    assert len(await send.aenqueue_many(["a", "b"])) == 2


@pytest.mark.prove
def test_twenty_thousand_are_accepted_at_once(app: App) -> None:
    @app.job
    def send(to: str) -> None: ...

    handles = send.enqueue_many(f"{number}@b.c" for number in range(20_000))
    assert len({handle.id for handle in handles}) == 20_000
    assert [handle.id for handle in handles] == sorted(handle.id for handle in handles)
    assert count(app) == 20_000
    assert handles[19_999].info().arguments == {"to": "19999@b.c"}


@pytest.mark.parametrize("options", [{}, {"unique": True}], ids=["plain", "unique"])
def test_a_bulk_past_the_limit_is_refused_before_any_work(
    app: App, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(submission, "MOST_ITEMS", 1000)

    @app.job
    def send(to: int) -> None: ...

    send = send.options(**options)
    with pytest.raises(ArgumentsError, match=r"at most 1,000 executions.*nothing was accepted. Split it into calls of"):
        send.enqueue_many(itertools.count())  # It has no end.
    header, items = send._header, send._items(range(1000))
    with pytest.raises(ArgumentsError, match="at most 1,000 executions"):
        registry_of(app).connection.store().transact(enqueue.enqueue, header, items + items[:1])
    assert count(app) == 0
    assert len(send.enqueue_many(range(1000))) == 1000


def test_a_bulk_with_too_many_bytes_is_refused(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission, "MOST_BYTES", 1000)

    @app.job
    def send(to: str) -> None: ...

    with pytest.raises(
        ArgumentsError, match=r"at most 1,000 bytes of arguments, not 1,018: nothing was accepted. Split"
    ):
        send.enqueue_many(["ä" * 250, "ä" * 250])
    assert count(app) == 0
    send.enqueue_many(["ä" * 250])


def test_calls_of_a_bulk_may_be_dicts_tuples_or_single_arguments(app: App) -> None:
    @app.job
    def add(a: int, b: int = 2) -> int:
        return a + b

    with harness(app) as rota:
        handles = add.enqueue_many([{"a": 1, "b": 1}, (2, 3), 4])
        rota.run_until_idle()
        assert [handle.result() for handle in handles] == [2, 5, 6]
        assert add.enqueue_many([]) == []


def test_if_one_call_of_a_bulk_is_wrong_none_is_accepted(app: App) -> None:
    @app.job
    def add(a: int) -> int:
        return a

    calls: list[Any] = [1, 2, "three"]
    with pytest.raises(ArgumentsError, match="argument 'a'"):
        add.enqueue_many(calls)
    assert count(app) == 0


def test_threads_of_one_process_share_an_app(app: App) -> None:
    @app.job
    def send(n: int) -> None: ...

    def enqueue(thread: int) -> None:
        for number in range(50):
            send.enqueue(thread * 100 + number)

    threads = [threading.Thread(target=enqueue, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count(app) == 400


def test_a_job_declared_after_the_first_enqueue_is_registered_in_time(app: App) -> None:
    @app.job
    def first() -> None: ...

    first.enqueue()

    @app.job
    def second() -> None: ...

    assert second.enqueue().status() is Status.QUEUED


def test_a_closed_app_opens_again_when_it_is_used(app: App) -> None:
    @app.job
    def send() -> None: ...

    x = send.enqueue()
    app.close()
    app.close()
    assert x.status() is Status.QUEUED


def test_delay_and_at_say_when(app: App) -> None:
    @app.job
    def send() -> None: ...

    with harness(app) as rota:
        start = rota.now
        later = start.astimezone(ZoneInfo("Asia/Tokyo")) + timedelta(hours=2)
        runs = [
            send.options(delay="1h").enqueue(),
            send.options(delay=timedelta(minutes=90)).enqueue(),
            send.options(at=later).enqueue(),
            send.options(at=datetime(2000, 1, 1, tzinfo=UTC)).enqueue(),
        ]
        assert [(run.info().run_at - start) / timedelta(minutes=1) for run in runs] == [60, 90, 120, 0]
        assert runs[0].status() is Status.SCHEDULED
        assert runs[3].status() is Status.QUEUED


def test_priority_orders_and_can_be_named_or_numbered(app: App) -> None:
    ran: list[str] = []

    @app.job(priority="low")
    def note(name: str) -> None:
        ran.append(name)

    with harness(app) as rota:
        default = note.enqueue("low")
        note.options(priority="normal").enqueue("normal")
        note.options(priority=50).enqueue("fifty")
        note.options(priority="high").enqueue("high")
        rota.run_until_idle()
        assert ran == ["fifty", "high", "normal", "low"]
        assert default.info().priority == rank.LEVELS["low"]


def test_options_are_laid_over_each_other_and_leave_the_job_alone(app: App) -> None:
    @app.job(queue="mail")
    def send() -> None: ...

    urgent = send.options(priority="high").options(queue="express", tags=["vip"])
    x, y = urgent.enqueue(), send.enqueue()
    assert (x.info().priority, x.info().queue, x.info().tags) == (10, "express", ["vip"])
    assert (y.info().priority, y.info().queue, y.info().tags) == (0, "mail", None)


def test_a_key_returns_the_same_execution(app: App) -> None:
    @app.job
    def send(to: str) -> None: ...

    first = send.options(key="order-42").enqueue("a")
    again = send.options(key="order-42").enqueue("a")
    assert (again.id, again.created, first.created) == (first.id, False, True)
    with pytest.raises(KeyConflict, match="order-42"):
        send.options(key="order-42").enqueue("b")
    with pytest.raises(DefinitionError, match="key= names one execution"):
        send.options(key="order-42").enqueue_many(["a"])


def test_unique_may_be_a_flag_a_key_or_a_rule(app: App) -> None:
    @app.job
    def send(to: str) -> None: ...

    assert send.options(unique=True).enqueue("a") == send.options(unique=True).enqueue("a")
    assert send.options(unique=True).enqueue("a") != send.options(unique=True).enqueue("b")
    assert send.options(unique="inbox").enqueue("a") == send.options(unique="inbox").enqueue("b")
    rule = Unique(key="strict", on_conflict="reject")
    holder = send.options(unique=rule).enqueue("a")
    with pytest.raises(NotUnique) as refusal:
        send.options(unique=rule).enqueue("a")
    assert refusal.value.holder == holder.id


def test_equal_calls_of_a_bulk_are_one_execution_if_they_are_unique(app: App) -> None:
    @app.job
    def send(to: str) -> None: ...

    handles = send.options(unique=True).enqueue_many(["a", "b", "a"])
    assert handles[0] == handles[2] != handles[1]
    assert [handle.created for handle in handles] == [True, True, False]


def test_a_full_queue_says_when_to_come_back(app: App) -> None:
    app.queue("small", max_depth=2)

    @app.job(queue="small")
    def send() -> None: ...

    send.enqueue_many([{}, {}])
    with pytest.raises(QueueFull, match="retry after") as refusal:
        send.enqueue()
    assert refusal.value.retry_after > timedelta(0)
    assert count(app) == 2


def test_start_deadlines_come_from_the_job_or_the_call(app: App) -> None:
    @app.job(start_within="10m")
    def send() -> None: ...

    with harness(app) as rota:
        by = rota.now + timedelta(minutes=1)
        ten, one = send.enqueue(), send.options(start_by=by).enqueue()
        rota.skip("2m")
        rota.run_until_idle()
        assert (ten.status(), one.status()) == (Status.SUCCESS, Status.SKIPPED)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delay": "1h", "at": datetime(2030, 1, 1, tzinfo=UTC)}, "delay= or at="),
        ({"start_by": datetime(2030, 1, 1, tzinfo=UTC), "start_within": "1h"}, "start_by= or start_within="),
        ({"at": datetime(2030, 1, 1)}, "time zone"),  # noqa: DTZ001
        ({"at": "tomorrow"}, "must be a datetime"),
        ({"delay": "soon"}, "delay must be"),
        ({"delay": -1}, "delay must be"),
        ({"priority": "urgent"}, "priority must be"),
        ({"priority": 1000}, "priority must be"),
        ({"queue": "no spaces"}, "queue's name"),
        ({"key": ""}, "key must be"),
        ({"key": "a\x00"}, "key must be"),
        ({"unique": 5}, "unique must be"),
        ({"unique": ""}, "unique key must be"),
        ({"start_within": 0}, "longer than zero"),
        ({"tags": ["a\x00"]}, "tag"),
        ({"tags": ["\ud800"]}, "tag"),
        ({"tags": [5]}, "tag"),
        ({"tags": ["x" * 1000]}, "tag"),
        ({"tags": [f"t{number}" for number in range(1000)]}, "tag"),
        ({"tags": "vip"}, "tag"),
        ({"timeout": 0}, "longer than zero"),
        ({"timeout": "soon"}, "timeout must be"),
        ({"retry": 0}, "attempts must be"),
        ({"retry": "often"}, "retry must be"),
        ({"retry": lambda attempt, error: 1}, "not a callable"),
        ({"retry": Fixed(only=OSError)}, "only= and never="),
        ({"headers": "a"}, "headers must be"),
        ({"headers": {"a": 1}}, "header 'a' must be a text"),
        ({"headers": {"a": "\ud800"}}, "header 'a' must be a text"),
        ({"headers": {"a": "\x00"}}, "header 'a' must be a text"),
        ({"headers": {"": "x"}}, "a header's name"),
        ({"headers": {5: "x"}}, "a header's name"),
        ({"headers": {"a": "x" * 16 * 1024}}, "headers take at most 16,384 bytes"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(app: App, options: dict[str, Any], message: str) -> None:
    @app.job
    def send() -> None: ...

    with pytest.raises(DefinitionError, match=message):
        send.options(**options)
