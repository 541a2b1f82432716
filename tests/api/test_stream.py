"""The stream of live changes: resumed, reset, ended with its token."""

from __future__ import annotations

import asyncio
import contextlib

import httpx
import pytest

from rota.api import feed
from rota.api.outcome_rates import OutcomeRates
from rota.api.resources import stream as stream_module
from rota.clock import ManualClock
from rota.domain import payload
from rota.domain.access import Grant, Role
from rota.domain.job import Definition
from rota.domain.outcome import Failed
from rota.ops import define, enqueue
from rota.ops.submission import Header, Item
from rota.store.feed_reader import OutcomeCount
from tests.api.server import Server, code
from tests.api.streaming import streaming
from tests.api.working import work


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "EVERY_S", 0.02)


def place(server: Server, count: int = 1, namespace: str = "default") -> list[str]:
    ids = server.services.ids.many(count)
    server.store.transact(define.register, namespace, "shop", [Definition(name="mail")], [])
    header = Header(namespace=namespace, app="shop", job="mail", queue="default", actor="test")
    server.store.transact(enqueue.enqueue, header, [Item(id, "{}") for id in ids])
    return ids


async def test_pulse_changes_and_what_is_watched(server: Server) -> None:
    (id,) = place(server)
    async with streaming(server, f"watch=executions:{id}") as stream, server.client() as client:
        assert (await stream.event())["name"] == "hello"
        assert (await stream.event("pulse"))["queues"] == [{"name": "default", "queued": 1, "running": 0}]
        shown = await stream.event("execution")
        assert (shown["executionId"], shown["status"], shown["progress"]) == (id, "queued", None)
        await client.post("/tokens", json={"name": "t", "role": "viewer"})
        # The first token turns authentication on, which ends streams without one.
        change = await stream.event("change")
        assert (change["kind"], change["action"], change["id"], change["by"]) == ("token", "create", "t", "local")
        assert await stream.event("bye") == {"name": "bye", "id": None, "reason": "revoked"}


async def test_case_28_nothing_of_another_tenant_is_sent(server: Server) -> None:
    (id,) = place(server, namespace="b")
    mine = server.token(Role.ADMIN, namespaces=("a",))
    query = f"watch=executions:{id}"
    async with streaming(server, query, Authorization=f"Bearer {mine}") as stream, server.client(mine) as client:
        await stream.event("hello")
        assert (await stream.event("pulse"))["queues"] == []
        place(server, 3, namespace="b")
        server.token(Role.VIEWER, namespaces=("b",), name="theirs")
        await client.post("/tokens", json={"name": "own", "role": "viewer"})
        event = await stream.event()
        assert (event["name"], event["id"] is not None) == ("change", True)
        assert "own" in str(event)


async def test_case_38_a_stream_resumes_or_is_reset(server: Server) -> None:
    place(server)
    async with streaming(server, "topics=pulse") as first, streaming(server, "topics=pulse") as other:
        last = await first.event("pulse")
        await other.event("pulse")
        place(server)
        while (await other.event("pulse"))["queues"][0]["queued"] < 2:
            pass  # A stream that opens gets the state, and so do the others.
        headers = {"Last-Event-ID": last["id"]}
        async with streaming(server, "topics=pulse", **headers) as again:
            await again.event("hello")
            while (event := await again.event())["name"] != "pulse" or event["queues"][0]["queued"] < 2:
                assert event["name"] != "reset"
        for forged, reason in {"ffff-1": "restart", f"{last['id']}9999": "gap", "x": "restart"}.items():
            async with streaming(server, "topics=pulse", **{"Last-Event-ID": forged}) as strange:
                await strange.event("hello")
                assert await strange.event("reset") == {"name": "reset", "id": None, "reason": reason}


async def test_case_38_a_slow_reader_is_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "MOST_BUFFERED", 100)
    opened = feed.OpenStream("default", frozenset({"pulse"}), "me")
    for number in range(5):
        opened.offer(feed.Event(number, 0.0, "default", "pulse", "pulse", b"x" * 40))
    assert opened.reset == "slow"
    assert [event.number for event in await opened.take(0.1)] == [4]


async def test_case_38_the_21st_stream_of_a_caller(server: Server) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(feed.MOST_OF_TOKEN):
            stream = await stack.enter_async_context(streaming(server))
            await stream.event("hello")
        async with server.client() as client:
            answer = await client.get("/stream")
            assert (answer.status_code, code(answer)) == (429, "too_many_streams")


async def test_case_30_a_stream_ends_with_its_token(server: Server) -> None:
    admin, text = server.token(Role.ADMIN), server.token(Role.VIEWER, name="v")
    async with server.client(admin) as client, streaming(server, "", Authorization=f"Bearer {text}") as stream:
        await stream.event("hello")
        listed = (await client.get("/tokens")).json()["items"]
        (id,) = [one["tokenId"] for one in listed if one["name"] == "v"]
        await client.delete(f"/tokens/{id}")
        assert (await stream.event("bye"))["reason"] == "revoked"


async def test_a_stream_outlasts_an_outage_of_the_database(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "LOOK_S", 0.02)
    asked = 0

    async def away(*_: object) -> Grant:
        nonlocal asked
        asked += 1
        raise server.store.too_busy()

    async with streaming(server, "topics=pulse") as stream:
        await stream.event("hello")
        monkeypatch.setattr(server.services, "grant_of", away)
        async with asyncio.timeout(10):
            while asked < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.01)  # sleep: until the token was to be checked
        monkeypatch.undo()
        place(server)
        while not (await stream.event("pulse"))["queues"]:
            pass


async def test_a_stopping_server_says_bye(server: Server) -> None:
    async with streaming(server) as stream:
        await stream.event("hello")
        server.services.is_draining = True
        assert (await stream.event("bye"))["reason"] == "draining"


@pytest.mark.parametrize("query", ["topics=news", "watch=jobs:1", "watch=executions:x", "topic=pulse"])
async def test_bad_subscriptions_are_refused(client: httpx.AsyncClient, query: str) -> None:
    answer = await client.get(f"/stream?{query}")
    assert answer.status_code == 400


async def test_nothing_is_read_without_a_stream(server: Server) -> None:
    async with streaming(server) as stream:
        await stream.event("pulse")
    task = server.services.feed._task
    assert task is not None
    await asyncio.wait_for(task, 10)


async def test_a_pulse_has_the_rate_of_each_outcome(server: Server) -> None:
    place(server, 5, namespace="other")
    async with streaming(server, "topics=pulse") as stream:
        place(server, 5)
        first = (await stream.event("pulse"))["outcomes"]
        assert first == dict.fromkeys(("success", "failed", "cancelled", "skipped", "retries"), 0)
        work(server.store, "mail", count=4)
        while not (seen := (await stream.event("pulse"))["outcomes"])["success"]:
            pass
        assert {name for name, rate in seen.items() if rate} == {"success"}
        work(server.store, "mail", Failed(payload.error("E", "no"), permanent=True))
        while not (await stream.event("pulse"))["outcomes"]["failed"]:
            pass
        while any((await stream.event("pulse"))["outcomes"].values()):
            pass  # The rates are those since the last look.


def test_rates_are_of_what_was_counted_since_the_last_look() -> None:
    clock = ManualClock()
    rates = OutcomeRates(clock)
    minute = rates.since()
    assert rates.measure(["a"], [OutcomeCount("a", minute, 7, 0, 0, 0, 0)])["a"]["success"] == 0
    clock.advance(2)
    after = [OutcomeCount("a", minute, 9, 0, 0, 0, 0), OutcomeCount("a", minute + 60_000_000, 6, 1, 0, 0, 0)]
    assert rates.measure(["a"], after)["a"] == {"success": 4, "failed": 0.5, "cancelled": 0, "skipped": 0, "retries": 0}
    clock.advance(1)
    assert not any(rates.measure(["a"], after[1:])["a"].values())


async def test_a_head_of_the_stream_leaves_no_reader(server: Server, client: httpx.AsyncClient) -> None:
    for _ in range(feed.MOST_OF_TOKEN + 1):
        answer = await client.head("/stream")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
    async with streaming(server, "") as stream:
        assert (await stream.event())["name"] == "hello"
