"""Quotas of namespaces: rate and depth of enqueues, sizes, counts; and the memory of a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from rota.api import room
from rota.api.problem import Problem
from rota.api.quotas import QuotaKeeper
from rota.domain.errors import QuotaExceeded
from rota.domain.quota import Bucket, Quotas
from rota.ops import quotas as ops
from rota.store import quota_reader
from tests.api.jobs import FREE, SEND, add_jobs
from tests.api.server import Server, code
from tests.api.streaming import streaming

NDJSON = {"Content-Type": "application/x-ndjson"}
BODY = {"job": "free"}


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    add_jobs(server.store, SEND, FREE)
    async with server.client() as client:
        yield client


def limit(server: Server, **quotas: Any) -> None:
    server.store.transact(ops.set_quotas, "default", Quotas(**quotas), "test")


async def test_a_rate_is_kept_and_told(client: httpx.AsyncClient, server: Server) -> None:
    limit(server, executions_per_s=1, burst=5)
    answers = [await client.post("/executions", json=BODY) for _ in range(6)]
    assert [answer.status_code for answer in answers] == [201] * 5 + [429]
    assert answers[0].headers["ratelimit-policy"] == '"enqueue";q=1;w=1'
    assert answers[0].headers["ratelimit"].startswith('"enqueue";r=4;')
    assert (code(answers[5]), answers[5].headers["retry-after"]) == ("quota_exceeded", "1")
    assert answers[5].headers["ratelimit"].startswith('"enqueue";r=0;')
    many = await client.post("/executions", json=[BODY] * 6)
    assert (many.status_code, code(many)) == (429, "quota_exceeded")
    assert "burst" in many.json()["detail"]


async def test_a_stream_is_stopped_where_the_quota_is_spent(client: httpx.AsyncClient, server: Server) -> None:
    limit(server, executions_per_s=1, burst=100)
    lines = b"\n".join([json.dumps(BODY).encode()] * 150)
    answer = await client.post("/executions", content=lines, headers=NDJSON)
    found = [json.loads(line) for line in answer.text.splitlines()]
    assert found[0]["committed"] == {"from": 1, "to": 100}
    assert (found[-1]["stopped"]["line"], found[-1]["stopped"]["problem"]["code"]) == (101, "quota_exceeded")
    assert found[-1]["stopped"]["retryAfter"] > 0


async def test_the_depth_of_a_namespace_is_bounded(client: httpx.AsyncClient, server: Server) -> None:
    limit(server, max_depth=3)
    answers = [await client.post("/executions", json=BODY) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [201, 201, 201, 429]
    assert code(answers[3]) == "namespace_full"
    assert answers[3].headers["retry-after"] == "1"


async def test_every_request_that_enqueues_is_counted(client: httpx.AsyncClient, server: Server) -> None:
    made = (await client.post("/executions", json=BODY)).json()["executionId"]
    await client.post(f"/executions/{made}/cancel")
    job = {"name": "one", "command": ["true"], "schedule": "0 0 * * *"}
    assert (await client.post("/jobs", json=job)).status_code == 201
    flow = {"name": "flow", "steps": [{"id": "a", "job": "one"}]}
    assert (await client.post("/workflows", json=flow)).status_code == 201
    requests: list[tuple[str, dict[str, Any]]] = [
        ("/executions", BODY),
        ("/jobs/one/trigger", {}),
        ("/schedules/one/trigger", {}),
        ("/workflows/flow/trigger", {}),
        (f"/executions/{made}/replay", {}),
        ("/actions", {"action": "replay", "on": "executions", "ids": [made]}),
    ]

    async def post(path: str, body: dict[str, Any]) -> httpx.Response:
        server.services.part(QuotaKeeper)._known.clear()
        return await client.post(path, json=body or None)

    for path, body in requests:
        answer = await post(path, body)
        assert answer.status_code < 300, (path, answer.text)
    limit(server, max_depth=0)
    for path, body in requests:
        answer = await post(path, body)
        assert (answer.status_code, code(answer)) == (429, "namespace_full"), path
    assert (await post("/workflows/flow/trigger?dryRun=true", {})).status_code == 200


async def test_other_namespaces_have_no_limit(server: Server) -> None:
    add_jobs(server.store, FREE, namespace="b")
    limit(server, max_depth=0)
    async with server.client(server.token(namespaces=("b",))) as client:
        assert (await client.post("/executions", json=BODY)).status_code == 201


async def test_the_size_of_arguments_is_bounded(client: httpx.AsyncClient, server: Server) -> None:
    limit(server, max_payload_bytes=100)
    answer = await client.post("/executions", json=BODY | {"arguments": {"x": "y" * 200}})
    assert (answer.status_code, code(answer)) == (422, "bad_arguments")


async def test_quotas_are_remembered_for_a_few_seconds(
    client: httpx.AsyncClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    quotas = quota_reader.quotas

    def counted(view: object, namespace: str) -> Quotas:
        reads.append(namespace)
        return quotas(view, namespace)  # type: ignore[arg-type]

    monkeypatch.setattr(quota_reader, "quotas", counted)
    for _ in range(5):
        await client.post("/executions", json=BODY)
    assert reads == ["default"]


async def test_servers_share_a_rate(server: Server) -> None:
    limit(server, executions_per_s=10, burst=10)
    one, other = server.services.part(QuotaKeeper), QuotaKeeper(server.services)
    await one.admit("default", 1)
    await other.admit("default", 5)
    with pytest.raises(Problem):
        await other.admit("default", 1)


async def test_counts_are_checked_in_the_transaction_that_adds(server: Server) -> None:
    add_jobs(server.store, SEND)
    limit(server, max_jobs=2, max_tokens=0)
    server.store.transact(ops.check_quota, "default", "max_jobs")
    with pytest.raises(QuotaExceeded) as refused:
        server.store.transact(ops.check_quota, "default", "max_jobs", 2)
    assert (refused.value.quota, refused.value.limit, refused.value.use) == ("maxJobs", 2, 1)
    with pytest.raises(QuotaExceeded, match="tokens"):
        server.store.transact(ops.check_quota, "default", "max_tokens")
    server.store.transact(ops.check_quota, "default", "max_schedules")
    assert server.store.read(quota_reader.use, "default").jobs == 1


async def test_tokens_schedules_and_jobs_are_bounded(client: httpx.AsyncClient, server: Server) -> None:
    limit(server, max_jobs=3, max_schedules=1, max_tokens=0)
    job = {"name": "one", "command": ["true"], "schedule": "0 3 * * *"}
    assert (await client.post("/jobs", json=job)).status_code == 201
    for path, body, quota, use in (
        ("/jobs", {"name": "two", "command": ["true"]}, "maxJobs", 3),
        ("/schedules", {"name": "more", "job": "one", "cron": "0 4 * * *"}, "maxSchedules", 1),
        ("/tokens", {"name": "t", "role": "viewer"}, "maxTokens", 0),
    ):
        refused = await client.post(path, json=body)
        assert (refused.status_code, code(refused)) == (409, "quota_exceeded"), refused.text
        assert refused.json()["existing"] == {"quota": quota, "limit": use, "use": use}
    assert (await client.put("/jobs/one", json=job | {"command": ["false"]})).status_code == 200, "nothing is added"
    assert (await client.delete("/jobs/one")).status_code == 204
    again = await client.post("/jobs", json={"name": "two", "command": ["true"]})
    assert again.status_code == 201, "a deleted job does not count"


async def test_code_cannot_add_more_jobs_than_its_namespace_may_have(server: Server) -> None:
    add_jobs(server.store, SEND)
    limit(server, max_jobs=1)
    add_jobs(server.store, SEND)
    with pytest.raises(QuotaExceeded) as refused:
        add_jobs(server.store, SEND, FREE)
    assert (refused.value.limit, refused.value.use) == (1, 1)
    assert server.store.read(quota_reader.use, "default").jobs == 1


async def test_the_streams_of_a_namespace_are_bounded(client: httpx.AsyncClient, server: Server) -> None:
    limit(server, max_streams=1)
    async with streaming(server, "") as stream:
        await stream.event("hello")
        refused = await client.get("/stream")
        assert (refused.status_code, code(refused)) == (429, "too_many_streams")
        assert refused.json()["existing"] == {"quota": "maxStreams", "limit": 1, "use": 1}


async def test_quotas_are_kept_by_trigger(client: httpx.AsyncClient, server: Server) -> None:
    limit(server, executions_per_s=1, burst=2)
    answers = [await client.post("/jobs/free/trigger") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 201, 429]
    assert "ratelimit" in answers[0].headers
    assert code(answers[2]) == "quota_exceeded"


async def test_quotas_are_audited(server: Server) -> None:
    assert server.store.transact(ops.set_quotas, "default", Quotas(max_jobs=2), "test")
    assert not server.store.transact(ops.set_quotas, "default", Quotas(max_jobs=2), "test")
    assert server.store.read(quota_reader.quotas, "default") == Quotas(max_jobs=2)


@pytest.mark.parametrize("partly", [False, True])
def test_a_bucket_never_admits_more_than_its_rate(partly: bool) -> None:
    bucket, admitted, now = Bucket(), 0, 1000.0
    for step in range(2_000):
        now += 0.003
        found = bucket.admit(now, 1 + step % 3, 100.0, 10.0, partly=partly)
        admitted += found.admitted
        assert found.admitted in ((0, 1 + step % 3) if not partly else range(4))
        if not found.admitted:
            assert 0 < found.retry_after_s <= 0.1
    assert admitted <= 100 * 6 + 10
    assert admitted >= 590


async def test_a_server_holds_no_more_requests_than_it_may(
    client: httpx.AsyncClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The requests that wait for the database are bounded; the others are refused, and nothing is queued."""
    monkeypatch.setattr(room, "MOST_REQUESTS", 3)
    held = asyncio.Event()
    answer_of = server.services.answer_of

    async def slow(future: object, **about: object) -> object:
        await held.wait()
        return await answer_of(future, **about)  # type: ignore[arg-type]

    monkeypatch.setattr(server.services, "answer_of", slow)
    asking = [asyncio.create_task(client.post("/executions", json=BODY)) for _ in range(5)]
    async with asyncio.timeout(10):
        while sum(task.done() for task in asking) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # sleep: the other requests wait for this test
    held.set()
    answers = await asyncio.gather(*asking)
    assert sorted(answer.status_code for answer in answers) == [201] * 3 + [503] * 2
    assert server.services.room.requests == 0


async def test_a_server_holds_no_more_bytes_than_it_may(
    client: httpx.AsyncClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MOST_BYTES", 1_000)
    answer = await client.post("/executions", json=BODY | {"arguments": {"x": "y" * 2_000}})
    assert (answer.status_code, code(answer)) == (503, "store_unavailable")
    assert (await client.post("/executions", json=BODY)).status_code == 201
    assert server.services.room.bytes == 0
