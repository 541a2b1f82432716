"""`?wait=10s`: the answer comes at the end of the execution, or when the time is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import httpx
import pytest

from rota.api import waiting
from rota.api.waiting import Waits
from rota.domain.access import Role
from rota.store import reader
from rota.store.hints import Hint
from tests.api.jobs import FREE, add_jobs
from tests.api.server import Server, code
from tests.api.working import work
from tests.support.proving import proof


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    add_jobs(server.store, FREE)
    async with server.client() as client:
        yield client


async def worked(server: Server, count: int = 1) -> None:
    """A worker takes what is queued, as soon as it is."""
    done = 0
    async with asyncio.timeout(20):
        while done < count:
            done += len(await asyncio.to_thread(work, server.store, "free"))
            await asyncio.sleep(0.005)  # sleep: a worker that looks for work


async def test_the_answer_comes_at_the_end(client: httpx.AsyncClient, server: Server) -> None:
    working = asyncio.create_task(worked(server))
    answer = await client.post("/executions?wait=20s", json={"job": "free"})
    await working
    assert answer.status_code == 201, answer.text
    found = answer.json()
    assert (found["status"], found["result"], found["created"]) == ("success", "done", True)


async def test_the_answer_comes_when_the_time_is_over(client: httpx.AsyncClient) -> None:
    answer = await client.post("/executions?wait=0.05", json={"job": "free"})
    assert (answer.status_code, answer.json()["status"]) == (201, "queued")


async def test_an_end_without_a_hint_is_found_by_the_next_look(
    client: httpx.AsyncClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LOOK_S", 0.05)
    monkeypatch.setattr(Waits, "_hear", lambda self: self._listener.take() and None)
    working = asyncio.create_task(worked(server))
    answer = await client.post("/executions?wait=20s", json={"job": "free"})
    await working
    assert answer.json()["status"] == "success"


async def test_an_existing_execution_is_waited_for(client: httpx.AsyncClient, server: Server) -> None:
    body = {"job": "free", "key": "k"}
    made = await client.post("/executions", json=body)
    working = asyncio.create_task(worked(server))
    answer = await client.post("/executions?wait=20s", json=body)
    await working
    assert (answer.status_code, answer.json()["status"]) == (200, "success")
    assert answer.json()["executionId"] == made.json()["executionId"]
    ended = await client.post("/executions?wait=20s", json=body)
    assert ended.json()["status"] == "success"


async def test_a_read_waits_for_the_end(client: httpx.AsyncClient, server: Server) -> None:
    path = (await client.post("/executions", json={"job": "free"})).headers["location"].removeprefix("/api/v1")
    early = await client.get(path, params={"wait": "0.05", "fields": "status"})
    assert (early.status_code, early.json()) == (200, {"status": "queued"})
    waits = server.services.part(Waits)
    reading = asyncio.create_task(client.get(path, params={"wait": "20s"}))
    async with asyncio.timeout(20):
        while not waits.count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # sleep: until the request waits
    await worked(server)
    assert ((await reading).json()["status"], waits.count) == ("success", 0)
    assert (await client.get(path, params={"wait": "20s"})).json()["result"] == "done"
    refused = await client.get(path, params={"wait": "61s"})
    assert (refused.status_code, refused.json()["code"]) == (400, "bad_parameter")


async def test_a_server_that_stops_answers_its_waits(
    client: httpx.AsyncClient, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LOOK_S", 0.05)
    asking = asyncio.create_task(client.post("/executions?wait=60s", json={"job": "free"}))
    async with asyncio.timeout(10):
        while not server.services.part(Waits).count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # sleep: until the request waits
    server.services.is_draining = True
    answer = await asyncio.wait_for(asking, 10)
    assert (answer.status_code, answer.json()["status"]) == (201, "queued")


@pytest.mark.parametrize("count", [200, proof(5_000)])
async def test_many_waits_share_one_look(server: Server, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many requests wait, one statement per second looks for all of them, and one hint announces many."""
    add_jobs(server.store, FREE)
    monkeypatch.setattr(waiting, "LOOK_S", 0.2)
    looks: list[int] = []
    sent: list[Hint] = []
    ended, send = reader.ended, server.store.bus.send

    def counted(view: object, waited: list[tuple[str, str]]) -> set[tuple[str, str]]:
        looks.append(len(waited))
        return ended(view, waited)  # type: ignore[arg-type]

    monkeypatch.setattr(reader, "ended", counted)

    def noted(hints: Sequence[Hint]) -> None:
        sent.extend(hints)
        send(hints)

    monkeypatch.setattr(server.store.bus, "send", noted)
    waits = server.services.part(Waits)
    ids = server.services.ids.many(count)

    async def wait(id: str) -> bool:
        with waits.on("default", id) as one:
            return await one.ended(20)

    # None of them exists, so the first look ends all waits.
    assert all(await asyncio.gather(*(wait(id) for id in ids)))
    assert looks == [count]
    assert len(sent) <= 2
    await asyncio.sleep(0.5)  # sleep: longer than the time between two looks
    assert looks == [count], "without waits nothing is read"


async def test_case_many_requests_that_wait_read_little(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until its answer, a request shares the reads of its first look and of its token with other requests."""
    add_jobs(server.store, FREE)
    monkeypatch.setattr(waiting, "LOOK_S", 0.2)
    text, count = server.token(Role.OPERATOR), 100
    reads: list[str] = []
    read = server.store.read

    def counted(query: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        reads.append(query.__name__)
        return read(query, *args, **kwargs)

    async with server.client(text) as client:
        body = [{"job": "free"}] * count
        ids = [one["executionId"] for one in (await client.post("/executions", json=body)).json()["items"]]
        monkeypatch.setattr(server.store, "read", counted)
        asking = [asyncio.create_task(client.get(f"/executions/{id}?wait=60s")) for id in ids]
        async with asyncio.timeout(20):
            while server.services.part(Waits).count < count:  # noqa: ASYNC110
                await asyncio.sleep(0.01)  # sleep: until all requests wait
        await asyncio.sleep(0.5)  # sleep: two more looks
        assert "_one" not in reads
        assert len(reads) < count / 4, reads
        await worked(server, count)
        answers = await asyncio.gather(*asking)
    assert {answer.json()["status"] for answer in answers} == {"success"}
    assert reads.count("_one") == count


async def test_case_28_a_wait_for_what_another_tenant_has(server: Server) -> None:
    """Such a wait is refused at once, and does not end that of the owner."""
    add_jobs(server.store, FREE)
    own, foreign = server.token(Role.OPERATOR), server.token(Role.OPERATOR, namespaces=("other",))
    async with server.client(own) as owner, server.client(foreign) as stranger:
        id = (await owner.post("/executions", json={"job": "free"})).json()["executionId"]
        asking = asyncio.create_task(owner.get(f"/executions/{id}?wait=30s"))
        async with asyncio.timeout(20):
            while not server.services.part(Waits).count:  # noqa: ASYNC110
                await asyncio.sleep(0.005)  # sleep: until the request waits
            refused = await stranger.get(f"/executions/{id}?wait=30s")
            missing = await stranger.get(f"/executions/{server.services.ids.new()}?wait=30s")
            malformed = await stranger.get("/executions/1?wait=30s")
        assert [code(one) for one in (refused, missing, malformed)] == ["not_found"] * 3
        assert not asking.done()
        await worked(server)
        assert (await asking).json()["status"] == "success"


async def test_one_execution_is_waited_for(client: httpx.AsyncClient, server: Server) -> None:
    made = (await client.post("/executions", json={"job": "free"})).json()["executionId"]
    early = await client.get(f"/executions/{made}?wait=0.05")
    assert (early.status_code, early.json()["status"]) == (200, "queued")
    working = asyncio.create_task(worked(server))
    answer = await client.get(f"/executions/{made}?wait=20s")
    await working
    assert (answer.json()["status"], answer.json()["result"]) == ("success", "done")
    assert (await client.get(f"/executions/{made}?wait=20s")).json()["status"] == "success"
    for refused in ("61s", "x", "-1"):
        assert (await client.get(f"/executions/{made}?wait={refused}")).status_code == 400


async def test_a_trigger_waits(client: httpx.AsyncClient, server: Server) -> None:
    working = asyncio.create_task(worked(server))
    answer = await client.post("/jobs/free/trigger?wait=20s")
    await working
    assert (answer.status_code, answer.json()["status"], answer.json()["created"]) == (201, "success", True)


@pytest.mark.parametrize("path", ["/executions/{id}?wait=30s", "/executions?wait=30s", "/jobs/free/trigger?wait=30s"])
async def test_case_30_a_revoked_token_ends_its_wait(server: Server, path: str) -> None:
    add_jobs(server.store, FREE)
    admin, text = server.token(Role.ADMIN), server.token(Role.OPERATOR, name="waits")
    async with server.client(admin) as other, server.client(text) as client:
        id = (await other.post("/executions", json={"job": "free"})).json()["executionId"]
        if "{id}" in path:
            asking = asyncio.create_task(client.get(path.format(id=id)))
        else:
            asking = asyncio.create_task(client.post(path, json={"job": "free"} if "trigger" not in path else {}))
        async with asyncio.timeout(10):
            while not server.services.part(Waits).count:  # noqa: ASYNC110
                await asyncio.sleep(0.005)  # sleep: a request that begins to wait
        listed = (await other.get("/tokens")).json()["items"]
        (token,) = [one["tokenId"] for one in listed if one["name"] == "waits"]
        await other.delete(f"/tokens/{token}")
        async with asyncio.timeout(5):
            answer = await asking
    assert (answer.status_code, code(answer)) == (401, "revoked_token")
