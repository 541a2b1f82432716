"""Dead letters grouped by error, and what is known of the cause."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from rota.domain.job import Definition
from rota.domain.outcome import Error, Failed
from rota.ops import fleet
from tests.api.server import Server, code
from tests.support.world import World

pytestmark = pytest.mark.usefixtures("clock")

TRACEBACK = 'Traceback:\n  File "/srv/shop/payments.py", line 88, in charge\n    raise\n'


@pytest.fixture
def world(world: World) -> World:
    world.register(Definition(name="charge", description="first"))
    return world


def fail(world: World, count: int, job: str = "charge", message: str = "reset by peer after {} s") -> list[str]:
    ids = world.enqueue_many(count, job)
    worker = world.join(lease_s=3600)
    for number, attempt in enumerate(world.claim(worker, count)):
        world.clock.advance(1)
        world.finish(attempt, Failed(Error("ConnectionError", message.format(number), TRACEBACK)))
    return ids


def succeed(world: World, job: str = "charge") -> str:
    id = world.enqueue(job)
    worker = world.join(lease_s=3600)
    for attempt in world.claim(worker, 1):
        world.finish(attempt)
    return id


async def get(client: httpx.AsyncClient, path: str) -> Any:
    return (await client.get(path)).raise_for_status().json()


async def test_case_letters_are_grouped_with_their_cause(client: httpx.AsyncClient, world: World) -> None:
    good = succeed(world)
    world.register(Definition(name="charge", description="second"))
    ids = fail(world, 4)
    other = fail(world, 1, "send", "row {}: no price")
    found = await get(client, "/errors")
    assert (found["count"], found["groupCount"], found["isCapped"]) == (5, 2, False)
    first, second = found["items"]
    assert (first["type"], first["message"], first["place"]) == (
        "ConnectionError",
        "reset by peer after ? s",
        "payments.py:charge",
    )
    assert (first["count"], first["jobs"], first["isNew"]) == (4, [{"app": "shop", "job": "charge", "count": 4}], True)
    assert (first["firstId"], first["sampleId"], first["firstVersion"], first["lastVersion"]) == (ids[0], ids[3], 2, 2)
    assert (len(first["trend"]["points"]), sum(first["trend"]["points"])) == (12, 4)
    assert (second["count"], second["sampleId"]) == (1, other[0])
    detail = await get(client, f"/errors/{first['fingerprint']}")
    assert {name: detail[name] for name in first} == first
    assert [(one["version"], one["count"]) for one in detail["versions"]] == [(2, 4)]
    assert (detail["without"]["version"], detail["lastSuccessId"]) == (1, good)
    assert (detail["lastMinute"], detail["newest"]) == (4, ids[::-1])
    like = await get(client, f"/executions/{ids[1]}/similar")
    assert (like["fingerprint"], like["more"], like["group"]["count"]) == (first["fingerprint"], 3, 4)
    none = await get(client, f"/executions/{good}/similar")
    assert (none["fingerprint"], none["more"], none["group"]) == (None, 0, None)


async def test_case_groups_are_filtered(client: httpx.AsyncClient, world: World) -> None:
    fail(world, 2)
    world.clock.advance(7200)
    fail(world, 1, "send", "row {}: no price")

    async def jobs(query: str) -> list[str]:
        return [one["jobs"][0]["job"] for one in (await get(client, f"/errors?{query}"))["items"]]

    assert await jobs("job=send") == ["send"]
    assert await jobs("app=other") == []
    assert await jobs("q=No+Price") == ["send"]
    assert await jobs("since=1h") == ["send"]
    assert await jobs("limit=1") == ["charge"]
    assert await jobs("reason=error") == ["charge", "send"]
    missing = await client.get("/errors/0000000000000000")
    assert (missing.status_code, code(missing)) == (404, "not_found")


async def test_case_the_fingerprint_is_a_filter_of_lists_counts_and_actions(
    client: httpx.AsyncClient, world: World
) -> None:
    ids, others = fail(world, 3), fail(world, 2, "send", "row {}: no price")
    group = (await get(client, "/errors?job=charge"))["items"][0]["fingerprint"]
    listed = await get(client, f"/executions?fingerprint={group}")
    assert [one["executionId"] for one in listed["items"]] == ids[::-1]
    assert [
        one["executionId"] for one in (await get(client, f"/executions?fingerprint={group}&job=send"))["items"]
    ] == []
    assert (await get(client, f"/executions?fingerprint={group}&id={others[0]}"))["items"] == []
    assert (await get(client, f"/counts?fingerprint={group}"))["count"] == 3
    body = {"action": "discard", "on": "executions", "filter": {"fingerprint": group}, "atMost": 10}
    begun = (await client.post("/actions", json=body)).raise_for_status().json()
    ended = await get(client, f"/actions/{begun['actionId']}?wait=10s")
    assert (ended["status"], ended["done"]) == ("done", 3)
    assert [one["jobs"][0]["job"] for one in (await get(client, "/errors"))["items"]] == ["send"]


async def test_case_letters_without_an_error_are_a_group_of_their_own(client: httpx.AsyncClient, world: World) -> None:
    world.enqueue("charge")
    for _ in range(4):
        worker = world.join(lease_s=3600)
        if not world.claim(worker, 1):
            break
        world.store.transact(fleet.declare_dead, worker, "killed by signal 11")
        world.clock.advance(3600)
        world.promote()
    (one,) = (await get(client, "/errors"))["items"]
    assert (one["count"], one["jobs"][0]["job"]) == (1, "charge")


async def test_case_groups_of_another_namespace_are_not_seen(server: Server, world: World) -> None:
    fail(world, 1)
    async with server.client(**{"Rota-Namespace": "other"}) as stranger, server.client() as client:
        group = (await get(client, "/errors"))["items"][0]["fingerprint"]
        assert (await get(stranger, "/errors"))["items"] == []
        assert (await stranger.get(f"/errors/{group}")).status_code == 404
        assert (await get(stranger, f"/executions?fingerprint={group}"))["items"] == []
