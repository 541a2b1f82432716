"""Idempotency-Key: the same request twice has one effect, and its answer twice."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import msgspec
import psycopg
import pytest

from rota.api import services
from rota.api.answer import Answer
from rota.api.call import Call
from rota.api.routes import ROUTES
from rota.domain.access import LOCAL, Role
from rota.ids import FIRST_ID
from rota.ops import keys, request_keys
from rota.ops.request_keys import Kept, RequestKey
from rota.store.port import Tx, View
from rota.store.postgres import writer as postgres_writer
from tests.api.jobs import FREE, SEND, add_jobs
from tests.api.process import server_process
from tests.api.server import Server, code, serving
from tests.support import postgres
from tests.support.databases import fresh_database
from tests.support.proxy import Proxy, When
from tests.support.waiting import eventually

BODY = {"job": "send", "arguments": {"to": "a@b.c"}}


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    add_jobs(server.store, SEND, FREE)
    async with server.client() as client:
        yield client


def executions(server: Server) -> int:
    return int(server.store.read(lambda view: view.rows("namespace_depth", namespace="default", most=10_000))[0][0])


async def test_case_16_fifty_at_once_have_one_effect(client: httpx.AsyncClient, server: Server) -> None:
    key = {"Idempotency-Key": "k1"}
    answers = await asyncio.gather(*(client.post("/executions", json=BODY, headers=key) for _ in range(50)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    accepted = [answer for answer in answers if answer.status_code == 201]
    assert len({answer.json()["executionId"] for answer in accepted}) == 1
    assert sum("idempotency-replayed" in answer.headers for answer in accepted) == len(accepted) - 1
    assert executions(server) == 1


async def test_case_16_fifty_operations_at_once(server: Server) -> None:
    """Routes other than enqueues: the key and the effect are in one transaction."""
    effects: list[int] = []

    def effect(tx: Tx) -> tuple[str, Kept]:
        effects.append(1)
        tx.run("add_namespace", namespace="made-once")
        return "new", Kept("", 201, "{}", "{}")

    request = RequestKey("default", "local", "POST /api/v1/x", "k", "digest")
    futures = [server.store.submit(request_keys.once, request, effect) for _ in range(50)]
    found = [await asyncio.wrap_future(future) for future in futures]
    assert sum(one == "new" for one in found) == 1
    assert all(one == "new" or one == Kept("digest", 201, "{}", "{}") for one in found)


async def test_case_17_a_key_with_another_request(server: Server) -> None:
    add_jobs(server.store, SEND, FREE)
    first, second = server.token(Role.PRODUCER, name="a"), server.token(Role.PRODUCER, name="b")
    key = {"Idempotency-Key": '"quoted"'}
    async with server.client(first, **key) as one, server.client(second, **key) as other:
        made = await one.post("/executions", json=BODY)
        assert made.status_code == 201
        for body in (BODY | {"priority": 1}, {"job": "free"}):
            refused = await one.post("/executions", json=body)
            assert (refused.status_code, code(refused)) == (422, "key_reused")
        refused = await one.post("/executions?wait=0s", json=BODY)
        assert (refused.status_code, code(refused)) == (422, "key_reused")
        bare = await one.post("/executions", json=BODY, headers={"Idempotency-Key": "quoted"})
        assert bare.json()["executionId"] == made.json()["executionId"]
        elsewhere = await other.post("/executions", json=BODY)
        assert elsewhere.json()["executionId"] != made.json()["executionId"]
        triggered = await one.post("/jobs/free/trigger")
        assert (triggered.status_code, triggered.json()["created"]) == (201, True), "another path has other keys"
    assert executions(server) == 3


async def test_case_17_a_key_after_a_refusal(client: httpx.AsyncClient, server: Server) -> None:
    key = {"Idempotency-Key": "k"}
    refused = await client.post("/executions", json={"job": "send"}, headers=key)
    assert refused.status_code == 422
    assert (await client.post("/executions", json=BODY, headers=key)).status_code == 201
    assert executions(server) == 1


async def test_case_17_a_key_after_a_503(
    client: httpx.AsyncClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = {"Idempotency-Key": "k"}
    with monkeypatch.context() as broken:
        broken.setattr(server.store, "submit", lambda *_: (_ for _ in ()).throw(server.store.too_busy()))
        answer = await client.post("/executions", json=BODY, headers=key)
        assert (answer.status_code, code(answer), answer.headers["retry-after"]) == (503, "store_unavailable", "1")
    assert (await client.post("/executions", json=BODY, headers=key)).status_code == 201
    assert executions(server) == 1


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("path", "body"), [("/executions", BODY), ("/jobs", {"name": "one", "command": ["true"]})])
async def test_case_19_the_connection_is_cut_during_the_commit(
    path: str, body: dict[str, object], when: When, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the commit reaches the database, or after it and before its answer: the server cannot know which, and
    while the database cannot be reached it cannot look.
    """
    monkeypatch.setattr(postgres_writer, "LAST_LOOK_S", 1)
    key = {"Idempotency-Key": "k"}
    with Proxy(postgres.shared().port) as proxy, serving(proxy.through(fresh_database()), busy_s=1) as server:
        add_jobs(server.store, SEND)
        async with server.client() as client:
            assert (await client.post("/executions", json=BODY)).status_code == 201

            async def cut() -> httpx.Response:
                proxy.drop_commits(when, count=1)
                proxy.refuse()
                answer = await client.post(path, json=body, headers=key)
                proxy.heal()
                return answer

            answer = await cut()
            if code(answer) == "store_unavailable":  # A busy server has tried to open another connection.
                answer = await cut()
            assert (answer.status_code, code(answer)) == (503, "commit_unknown")
            assert "Idempotency-Key" in answer.json()["detail"]
            again = await client.post(path, json=body, headers=key)
            assert again.status_code == 201
            assert again.headers.get("idempotency-replayed") == (None if when == "before" else "true")
            assert len((await client.get(path)).json()["items"]) == 2


@pytest.mark.parametrize("when", ["before", "after"])
async def test_case_19_an_outcome_that_can_be_looked_up_is_known(when: When) -> None:
    with Proxy(postgres.shared().port) as proxy, serving(proxy.through(fresh_database())) as server:
        add_jobs(server.store, SEND)
        async with server.client() as client:
            proxy.drop_commits(when, count=1)
            answer = await client.post("/executions", json=BODY, headers={"Idempotency-Key": "k"})
        assert answer.status_code == 201
        assert proxy.counts.dropped_before + proxy.counts.dropped_after == 1
        assert executions(server) == 1


async def test_the_items_of_an_array_have_keys_of_their_own(client: httpx.AsyncClient, server: Server) -> None:
    key = {"Idempotency-Key": "k"}
    items = [BODY, {"job": "free"}, BODY]
    first, again = [await client.post("/executions", json=items, headers=key) for _ in range(2)]
    ids = [[one["executionId"] for one in answer.json()["items"]] for answer in (first, again)]
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 3
    assert again.headers["idempotency-replayed"] == "true"
    changed = await client.post("/executions", json=[BODY, BODY], headers=key)
    assert (changed.status_code, code(changed)) == (422, "key_reused")
    assert executions(server) == 3


async def test_a_replay_shows_the_execution_as_it_stands(client: httpx.AsyncClient, server: Server) -> None:
    """A request that was answered with an existing execution is answered so again."""
    body = BODY | {"key": "order"}
    made = await client.post("/executions", json=body)
    known = [await client.post("/executions", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert [(one.status_code, one.json()["created"]) for one in known] == [(200, False)] * 2
    assert {one.json()["executionId"] for one in known} == {made.json()["executionId"]}
    assert "idempotency-replayed" not in known[0].headers
    assert known[1].headers["idempotency-replayed"] == "true"


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 256])
async def test_a_malformed_key_is_refused(client: httpx.AsyncClient, key: str) -> None:
    answer = await client.post("/executions", json=BODY, headers={b"Idempotency-Key": key.encode()})
    assert (answer.status_code, code(answer)) == (400, "bad_header")


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
async def test_a_request_whose_key_is_held_for_long(
    client: httpx.AsyncClient, server: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "KEY_PATIENCE_S", 0.3)
    lock = "SELECT pg_advisory_xact_lock(hashtextextended('rota default request local POST /api/v1/executions k', 0))"
    with psycopg.connect(url) as other:
        other.execute(lock)
        answer = await client.post("/executions", json=BODY, headers={"Idempotency-Key": "k"})
        assert (answer.status_code, code(answer)) == (409, "request_in_progress")
        assert answer.headers["retry-after"] == "1"
    again = await client.post("/executions", json=BODY, headers={"Idempotency-Key": "k"})
    assert again.status_code == 201
    assert executions(server) == 1


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
async def test_an_operation_whose_key_is_held_for_long(server: Server, url: str) -> None:
    """It is postponed, and blocks no connection of the server meanwhile."""
    request = RequestKey("default", "local", "POST /x", "k", "digest")
    with psycopg.connect(url) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended('rota default request local POST /x k', 0))")
        futures = [
            server.store.submit(request_keys.once, request, lambda tx: ("new", Kept("", 200, "{}", "")))
            for _ in range(10)
        ]
        add_jobs(server.store, FREE)
        assert not any(future.done() for future in futures)
    found = [await asyncio.wrap_future(future) for future in futures]
    assert sum(one == "new" for one in found) == 1


async def test_request_keys_outlive_a_short_retention(client: httpx.AsyncClient, server: Server) -> None:
    """The key of a request is kept for its time, even if the execution was deleted before."""
    made = await client.post("/executions", json=BODY, headers={"Idempotency-Key": "k"})
    id = made.json()["executionId"]
    server.store.transact(lambda tx: tx.run("drop_history", ids=[id], lowest=id, highest=id))

    def goes(view: View, requests_until: int) -> list[int]:
        about = {"bound": 2**62, "cutoffs": [("default", 2**62)], "kept": "unique:forever", "request": keys.REQUEST}
        rows = view.rows("keys_page", taken_at=0, holder=FIRST_ID, requests_until=requests_until, most=10, **about)
        return [row[-1] for row in rows]

    assert server.store.read(goes, 0) == [0]
    assert server.store.read(goes, 2**62) == [1]


def test_case_18_a_server_killed_between_commit_and_answer(url: str, tmp_path: Path) -> None:
    """The process is killed once the execution is in the database; its answer is never read."""
    with serving(url) as server:
        add_jobs(server.store, SEND)
        data = msgspec.json.encode(BODY)
        with server_process(tmp_path, url) as first:
            address = httpx.URL(first.url)
            lines = ["POST /api/v1/executions HTTP/1.1", f"Host: {address.netloc.decode()}", "Idempotency-Key: k"]
            lines += ["Content-Type: application/json", f"Content-Length: {len(data)}", "", ""]
            with socket.create_connection((address.host, address.port or 0)) as line:
                line.sendall("\r\n".join(lines).encode() + data)
                eventually(lambda: executions(server) == 1)
                first.process.kill()
                first.process.wait()
        with server_process(tmp_path, url) as second, httpx.Client(base_url=f"{second.url}/api/v1") as client:
            again = client.post(
                "/executions", content=data, headers={"Idempotency-Key": "k", "Content-Type": "application/json"}
            )
            assert (again.status_code, again.headers["idempotency-replayed"]) == (201, "true")
        assert executions(server) == 1


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        (Answer(status=204), b""),
        (Answer(status=201, body=b'{"a": 1}'), b'{"a": 1}'),
        (Answer(status=201, body=b'"%s"' % (b"x" * 20_000)), request_keys.TOO_LONG.encode()),
    ],
    ids=["empty", "short", "long"],
)
async def test_what_is_kept_of_an_answer(server: Server, answer: Answer, again: bytes) -> None:
    route = next(route for route in ROUTES if route.method == "POST" and route.path == "/executions")

    async def repeated() -> Answer:
        headers = {"idempotency-key": "k"}
        call = Call(server.services, route, LOCAL, "default", {}, b"", headers, nothing, "request", "here", "/x")
        return await call.act(lambda tx, _: answer, lambda tx: None)

    assert (await repeated()).body == answer.body
    found = await repeated()
    assert (found.status, found.body or b"") == (answer.status, again)
    assert found.headers["Idempotency-Replayed"] == "true"


async def nothing() -> dict[str, object]:
    return {"type": "http.disconnect"}


async def test_a_dry_run_refuses_a_malformed_key(client: httpx.AsyncClient) -> None:
    headers = {"Idempotency-Key": "two words"}
    answer = await client.post("/executions", json=BODY, params={"dryRun": "true"}, headers=headers)
    assert (answer.status_code, code(answer)) == (400, "bad_header")
