"""Executions over HTTP: lists with filters and cursors, one execution, and who may see it."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from rota.api import services as services_module
from rota.domain import overrides
from rota.domain.access import Role
from rota.domain.lifecycle import Rules
from rota.domain.note import State
from rota.domain.outcome import Error, Failed
from rota.domain.retry import Fixed
from rota.ops import upkeep
from rota.store import execution_reader
from rota.store.port import View
from rota.store.scan import Budget
from tests.api.server import Server, code
from tests.notes.telling import write
from tests.support.proving import proof
from tests.support.world import World


async def every(client: httpx.AsyncClient, path: str, **params: Any) -> list[dict[str, Any]]:
    """All items of a list, page by page."""
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        query = {**params, **({"cursor": cursor} if cursor else {})}
        page = (await client.get(path, params=query)).raise_for_status().json()
        found += page["items"]
        cursor = page["nextCursor"]
        if cursor is None:
            return found


async def test_a_list_has_the_summary_newest_first(client: httpx.AsyncClient, world: World) -> None:
    ids = [world.enqueue("send", {"to": "a"}, tags='["x"]') for _ in range(3)]
    body = (await client.get("/executions")).json()
    assert [one["executionId"] for one in body["items"]] == ids[::-1]
    assert (body["nextCursor"], body["previousCursor"]) == (None, None)
    first = body["items"][0]
    assert list(first)[:3] == ["executionId", "status", "jobId"]
    assert (first["status"], first["job"], first["tags"], first["completedAt"]) == ("queued", "send", ["x"], None)
    assert "arguments" not in first


async def test_fields_choose_members_and_only_these_are_read(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = world.enqueue("send", {"to": "a"})
    asked = await client.get("/executions?fields=status,arguments,why")
    assert asked.json()["items"] == [{"status": "queued", "arguments": {"to": "a"}, "why": "worker"}]
    read: list[dict[str, bool]] = []
    rows: Any = execution_reader.rows

    def counted(*args: Any, **about: bool) -> Any:
        read.append(about)
        return rows(*args, **about)

    monkeypatch.setattr(execution_reader, "rows", counted)
    assert (await client.get("/executions?fields=executionId")).json()["items"] == [{"executionId": id}]
    assert read == []
    await client.get("/executions?fields=status")
    assert read == [{"arguments": False, "error": False, "headers": False, "result": False}]


async def test_rows_have_the_limit_of_attempts_and_the_progress(client: httpx.AsyncClient, world: World) -> None:
    failed = world.enqueue("send")
    worker = world.join()
    for _ in range(2):
        (attempt,) = world.claim(worker)
        world.finish(attempt, Failed(Error("ValueError", "again", "")), Rules(retry=Fixed(attempts=2, delay=1)))
        world.store.transact(upkeep.promote_early, failed)
    world.set_rules(failed, Rules(retry=Fixed(attempts=3)))
    own = world.enqueue("send", overrides=overrides.encode(None, Fixed(attempts=7)))
    running = world.enqueue("send")
    claims = {one.id: one for one in world.claim(worker, 2)}
    write(world, states=[State(running, claims[running].fence, 0, done=71, total=100)])
    listed = await client.get("/executions?fields=executionId,attemptCount,maxAttempts,progress")
    assert {one["executionId"]: list(one.values())[1:] for one in listed.json()["items"]} == {
        failed: [2, 2, None],
        own: [1, 7, None],
        running: [1, 3, 71],
    }


async def test_a_page_with_large_arguments_ends_early(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.api.resources.executions.MOST_BYTES", 50_000)
    ids = [world.enqueue("send", {"to": "x" * 10_000}) for _ in range(23)]
    chosen = "/executions?fields=executionId,arguments&limit=20"
    pages = [(await client.get(chosen)).json()]
    while (cursor := pages[-1]["nextCursor"]) is not None:
        pages.append((await client.get(f"{chosen}&cursor={cursor}")).json())
    assert [one["executionId"] for page in pages for one in page["items"]] == ids[::-1]
    assert {len(page["items"]) for page in pages[:-1]} == {5}
    back = (await client.get(f"{chosen}&cursor={pages[2]['previousCursor']}")).json()
    assert back["items"] == pages[1]["items"]
    by_rank = (await client.get(f"{chosen}&status=queued&queue=default&order=rank")).json()
    assert [one["executionId"] for one in by_rank["items"]] == ids[:5]
    next_by_rank = f"{chosen}&status=queued&queue=default&order=rank&cursor={by_rank['nextCursor']}"
    assert [one["executionId"] for one in (await client.get(next_by_rank)).json()["items"]] == ids[5:10]
    assert len((await client.get("/executions?limit=20")).json()["items"]) == 20


@pytest.mark.parametrize(
    ("query", "status", "problem", "words"),
    [
        ("staus=failed", 400, "unknown_parameter", "status"),
        ("status=x';--", 400, "bad_parameter", "queued"),
        ("order=name desc", 400, "bad_parameter", "order"),
        ("fields=password", 400, "bad_parameter", "executionId"),
        ("order=rank", 400, "bad_parameter", "status=queued"),
        ("dead=yes", 400, "bad_parameter", "true"),
    ],
)
async def test_case_7_filters_that_are_wrong(
    client: httpx.AsyncClient, query: str, status: int, problem: str, words: str
) -> None:
    answer = await client.get(f"/executions?{query}")
    assert (answer.status_code, code(answer)) == (status, problem)
    assert words in answer.json()["detail"]


async def test_case_7_text_in_a_filter_is_text(client: httpx.AsyncClient, world: World) -> None:
    world.fail()
    assert (await client.get("/executions", params={"error": "' OR 1=1--"})).json()["items"] == []
    assert len((await client.get("/executions", params={"error": "BOOM"})).json()["items"]) == 1


@pytest.mark.parametrize("limit", ["limit=0", "limit=1001", "limit=1e3", "limit=٣", "limit=1&limit=2", "limit="])
async def test_case_8_limits_out_of_bounds(client: httpx.AsyncClient, limit: str) -> None:
    answer = await client.get(f"/executions?{limit}")
    assert (answer.status_code, code(answer)) == (400, "bad_parameter")
    (flaw,) = answer.json()["errors"]
    assert flaw["parameter"] == "limit"
    assert "from 1 to 1,000" in flaw["detail"]


async def test_case_9_cursors_that_are_not_of_this_list(server: Server, world: World) -> None:
    world.enqueue_many(5)
    async with server.client() as client, server.client(**{"Rota-Namespace": "other"}) as stranger:
        cursor = (await client.get("/executions?limit=2")).json()["nextCursor"]
        assert len((await client.get(f"/executions?limit=3&cursor={cursor}")).json()["items"]) == 3
        altered = cursor[:20] + ("A" if cursor[20] != "A" else "B") + cursor[21:]
        for query in (f"cursor={cursor[:-3]}", f"cursor={altered}", f"cursor={cursor}&job=send", "cursor=abc"):
            answer = await client.get(f"/executions?{query}")
            assert (answer.status_code, code(answer)) == (400, "bad_cursor"), query
        foreign = await stranger.get(f"/executions?cursor={cursor}")
        assert (foreign.status_code, code(foreign)) == (400, "bad_cursor")


async def test_cursors_lead_back_to_the_same_pages(client: httpx.AsyncClient, world: World) -> None:
    ids = world.enqueue_many(7)[::-1]
    first = (await client.get("/executions?limit=3")).json()
    second = (await client.get(f"/executions?limit=3&cursor={first['nextCursor']}")).json()
    third = (await client.get(f"/executions?limit=3&cursor={second['nextCursor']}")).json()
    pages = [[one["executionId"] for one in page["items"]] for page in (first, second, third)]
    assert pages == [ids[:3], ids[3:6], ids[6:]]
    assert third["nextCursor"] is None
    back = (await client.get(f"/executions?limit=3&cursor={third['previousCursor']}")).json()
    assert back["items"] == second["items"]
    start = (await client.get(f"/executions?limit=3&cursor={back['previousCursor']}")).json()
    assert (start["items"], start["previousCursor"]) == (first["items"], None)
    again = (await client.get(f"/executions?limit=3&cursor={start['nextCursor']}")).json()
    assert again["items"] == second["items"]
    assert [one["executionId"] for one in await every(client, "/executions", limit=2, order="asc")] == ids[::-1]


@pytest.mark.parametrize("count", [300, proof(10_000)])
async def test_case_10_every_old_row_comes_once_whatever_is_inserted(server: Server, world: World, count: int) -> None:
    old = world.enqueue_many(count)
    worker = world.join()
    seen: list[str] = []
    async with server.client() as client:
        cursor, pages = None, 0
        while pages == 0 or cursor is not None:
            answer = await client.get(
                "/executions", params={"limit": count // 20, **({"cursor": cursor} if cursor else {})}
            )
            page = answer.json()
            seen += [one["executionId"] for one in page["items"]]
            cursor, pages = page["nextCursor"], pages + 1
            world.enqueue_many(count // 20, "receive")
            for attempt in world.claim(worker, count // 40, jobs=["send"]):
                world.finish(attempt)
    assert sorted(id for id in seen if id in set(old)) == sorted(old)


async def test_case_11_a_filter_that_matches_nothing_ends_within_the_budget(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.enqueue_many(300)
    monkeypatch.setattr("rota.api.resources.executions.Budget", lambda: Budget(rows=100))
    first = (await client.get("/executions?actor=nobody")).json()
    assert (first["items"], first["nextCursor"] is not None) == ([], True)
    assert await every(client, "/executions", actor="nobody") == []


async def test_case_12_a_read_is_stopped_when_its_client_leaves(
    server: Server, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, ended = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(view: View, *_: object) -> Any:
        loop.call_soon_threadsafe(started.set)
        try:
            while True:
                view.rows("clock")
                _endless(view)
        finally:
            loop.call_soon_threadsafe(ended.set)

    monkeypatch.setattr("rota.api.resources.executions._page", slow)
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    messages.put_nowait({"type": "http.request", "body": b"", "more_body": False})
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    request = asyncio.ensure_future(server.api(_scope("/api/v1/executions"), messages.get, send))
    await started.wait()
    assert not request.done()
    messages.put_nowait({"type": "http.disconnect"})
    async with asyncio.timeout(1):
        await ended.wait()
        await request
    assert sent == []


async def test_case_12_the_ninth_heavy_read_waits_and_is_then_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services_module, "TURN_S", 0.05)
    monkeypatch.setattr(services_module, "HEAVY_S", 0.5)
    monkeypatch.setattr("rota.api.resources.executions._page", lambda view, *_: _endless(view))
    async with server.client() as client:
        answers = await asyncio.gather(*(client.get("/executions") for _ in range(9)), client.get("/me"))
    assert [one.status_code for one in answers] == [503] * 9 + [200]
    assert {code(one) for one in answers[:9]} == {"read_budget"}
    assert all(one.headers["retry-after"] == "1" for one in answers[:9])


@pytest.mark.parametrize(
    ("time", "words"),
    [
        ("2026-01-01T00:00:00+02:00", "%2B"),
        ("2026-01-01T00:00:00", "zone"),
        ("0000-01-01T00:00:00Z", "years 1 and 9999"),
        ("10000-01-01T00:00:00Z", "no time"),
        ("2016-12-31T23:59:60Z", "no time"),
    ],
)
async def test_case_13_times_that_are_none(client: httpx.AsyncClient, time: str, words: str) -> None:
    answer = await client.get(f"/executions?createdFrom={time}")
    assert (answer.status_code, code(answer)) == (400, "bad_parameter")
    assert words in answer.json()["detail"]


async def test_times_may_be_durations(client: httpx.AsyncClient, world: World) -> None:
    id = world.enqueue()
    assert [one["executionId"] for one in await every(client, "/executions", createdFrom="2h")] == [id]
    assert await every(client, "/executions", createdTo="2h") == []


async def test_filters_by_ids_and_states(client: httpx.AsyncClient, world: World) -> None:
    (dead,) = world.fail()
    queued, other = world.enqueue(), world.enqueue("receive")
    job = (await client.get(f"/executions/{other}")).json()["jobId"]

    async def ids(**params: Any) -> list[str]:
        return sorted(one["executionId"] for one in await every(client, "/executions", **params))

    assert await ids(id=[queued, other, "nosuch"]) == sorted([queued, other])
    assert await ids(job=job) == [other]
    assert await ids(dead="true") == [dead]
    assert await ids(errorType="ValueError", status="failed") == [dead]
    assert await ids(worker="w") == [dead]
    assert await ids(status=["queued", "failed"], job=["send"]) == sorted([queued, dead])
    answer = await client.get("/executions", params={"id": ["x"] * 101})
    assert (answer.status_code, code(answer)) == (400, "bad_parameter")


async def test_queued_executions_by_rank(client: httpx.AsyncClient, world: World) -> None:
    low, high, middle = world.enqueue(priority=-5), world.enqueue(priority=9), world.enqueue("receive")
    found = await every(client, "/executions", status="queued", queue="default", order="rank", limit=1)
    assert [one["executionId"] for one in found] == [high, middle, low]
    page = (await client.get("/executions?status=queued&queue=default&order=rank&limit=2")).json()
    last = (
        await client.get(f"/executions?status=queued&queue=default&order=rank&limit=2&cursor={page['nextCursor']}")
    ).json()
    back = (
        await client.get(f"/executions?status=queued&queue=default&order=rank&limit=2&cursor={last['previousCursor']}")
    ).json()
    assert (back["items"], back["previousCursor"]) == (page["items"], None)


async def test_one_execution_in_full(client: httpx.AsyncClient, world: World) -> None:
    (id,) = world.fail()
    body = (await client.get(f"/executions/{id}")).json()
    assert (body["status"], body["error"]["type"], body["errorMessage"]) == ("failed", "ValueError", "ValueError: boom")
    assert (len(body["attempts"]), body["replayedBy"], body["scheduleId"], body["why"]) == (1, None, None, None)
    assert (await client.get(f"/executions/{id}?fields=status")).json() == {"status": "failed"}
    waiting = (await client.get(f"/executions/{world.enqueue(delay_s=3600)}")).json()["why"]
    due = waiting["checks"][0]
    assert (due["code"], due["holds"], due["remedy"]["method"]) == ("due", False, "PATCH")
    assert {"subject", "evidence", "until", "text"} <= due.keys()


async def test_attempts_page_by_page(client: httpx.AsyncClient, world: World) -> None:
    id = world.enqueue()
    worker = world.join()
    for _ in range(5):
        (attempt,) = world.claim(worker)
        world.finish(attempt, Failed(Error("ValueError", "again", "")), Rules(retry=Fixed(attempts=9, delay=1)))
        world.store.transact(upkeep.promote_early, id)
    found = await every(client, f"/executions/{id}/attempts", limit=2)
    assert [(one["fence"], one["attempt"]) for one in found] == [(5, 5), (4, 4), (3, 3), (2, 2), (1, 1)]
    rising = await every(client, f"/executions/{id}/attempts", limit=2, order="asc")
    assert rising == found[::-1]
    assert found[0]["workerId"] == str(worker)
    bare = await client.get("/executions/0190a0b0-0000-7000-8000-000000000000/attempts")
    assert (bare.status_code, code(bare)) == (404, "not_found")


async def test_children(client: httpx.AsyncClient, world: World) -> None:
    parent = world.enqueue()
    below = [world.enqueue("receive", parent=parent) for _ in range(3)]
    found = await every(client, f"/executions/{parent}/children", limit=2)
    assert [one["executionId"] for one in found] == below[::-1]
    assert (await client.get("/executions/nosuch/children")).status_code == 404


async def test_case_28_executions_of_another_tenant_are_not_there(server: Server, world: World) -> None:
    world.register("send", namespace="b")
    theirs = world.enqueue(namespace="b", tags='["x"]')
    async with server.client(server.token(namespaces=("a",))) as a:
        for method, path in (
            ("GET", ""),
            ("GET", "/attempts"),
            ("GET", "/children"),
            ("PATCH", ""),
            ("POST", "/cancel"),
            ("POST", "/replay"),
            ("POST", "/discard"),
        ):
            body: dict[str, Any] = {"json": {"priority": 1}} if method == "PATCH" else {}
            found = await a.request(method, f"/executions/{theirs}{path}", **body)
            missing = await a.request(method, f"/executions/0190a0b0-0000-7000-8000-000000000000{path}", **body)
            assert (found.status_code, code(found)) == (404, "not_found"), path
            assert found.json()["detail"].replace(theirs, "") == missing.json()["detail"].replace(
                "0190a0b0-0000-7000-8000-000000000000", ""
            )
        for query in (f"id={theirs}", f"parent={theirs}", f"run={theirs}", "tag=x", "status=queued", "job=send"):
            assert (await a.get(f"/executions?{query}")).json()["items"] == [], query
        assert (await a.get("/executions", headers={"Rota-Namespace": "b"})).status_code == 404


async def test_a_producer_sees_and_cancels_only_what_it_has_made(server: Server, world: World) -> None:
    token = server.token(Role.PRODUCER, name="shop")
    own, foreign = world.enqueue(actor="token:shop"), world.enqueue(actor="token:other")
    viewer = server.token(Role.VIEWER)
    async with server.client(token) as producer, server.client(viewer) as reader:
        assert (await producer.get(f"/executions/{own}")).status_code == 200
        assert (await producer.get(f"/executions/{own}/attempts")).status_code == 200
        assert (await producer.get(f"/executions/{foreign}")).status_code == 404
        assert (await producer.post(f"/executions/{foreign}/cancel")).status_code == 404
        assert (await producer.post(f"/executions/{own}/cancel")).json()["status"] == "cancelled"
        assert (await producer.get("/executions")).status_code == 403
        assert (await producer.post(f"/executions/{own}/replay")).status_code == 403
        assert (await reader.get(f"/executions/{foreign}")).status_code == 200
        assert (await reader.post(f"/executions/{foreign}/cancel")).status_code == 403


def _scope(path: str) -> dict[str, Any]:
    return {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1),
    }


def _endless(view: Any) -> Any:
    """A statement that takes minutes."""
    if hasattr(view, "_connection"):
        view._connection.execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT max(i) FROM n"
        ).fetchall()
    else:
        view._say(b"SELECT pg_sleep(60)")
