"""GET /changes: versions, pauses, drains, workers and settings in one list."""

from __future__ import annotations

import httpx
import pytest

from rota.domain.access import Role
from rota.domain.job import Definition
from rota.ops import control, define, fleet, job_pauses
from tests.api.server import Server, code
from tests.support.world import World

pytestmark = pytest.mark.usefixtures("clock")


async def texts(client: httpx.AsyncClient, query: str = "") -> list[str]:
    return [one["text"] for one in (await client.get(f"/changes?{query}")).raise_for_status().json()["items"]]


def changed(world: World) -> None:
    """One change of each kind, a minute apart."""
    world.clock.advance(7200)
    worker, other = world.join(name="w-1", lease_s=36_000), world.join(name="w-2", lease_s=36_000)
    world.enqueue_many(2)
    world.claim(other, 2)
    for step in (
        lambda: world.register(Definition(name="send", description="other")),
        lambda: world.store.transact(define.pause_queue, "default", "default", "oncall", "provider is down"),
        lambda: world.store.transact(define.resume_queue, "default", "default", "oncall"),
        lambda: world.store.transact(job_pauses.pause, "default", "shop", "send", "ops", ""),
        lambda: world.store.transact(fleet.ask_to_drain, "default", worker, "ops"),
        lambda: world.store.transact(fleet.declare_dead, other, "killed by signal 9"),
        lambda: world.store.transact(control.cancel, "default", world.enqueue(), "ops"),
    ):
        world.clock.advance(60)
        step()


EVERYTHING = [
    "worker w-2 lost, 2 executions moved",
    "worker w-1 asked to drain",
    "job send paused",
    "queue default resumed",
    "queue default paused",
    "send version 2 registered",
    "worker w-2 started",
    "worker w-1 started",
]


async def test_case_changes_are_merged_newest_first(client: httpx.AsyncClient, world: World) -> None:
    changed(world)
    found = (await client.get("/changes")).raise_for_status().json()["items"]
    shown = [one["text"] for one in found]
    assert shown == EVERYTHING
    paused = found[4]
    assert (paused["kind"], paused["actor"], paused["note"]) == ("pause", "oncall", "provider is down")
    assert (paused["action"], paused["subject"]["name"]) == ("queue.pause", "default")
    assert (found[0]["kind"], found[0]["note"]) == ("worker_lost", "killed by signal 9")
    assert (found[5]["kind"], found[5]["actor"]) == ("version", "deploy")
    assert await texts(client, "kind=version&kind=resume") == ["queue default resumed", "send version 2 registered"]
    assert (await texts(client, "from=24h"))[-1].endswith("version 1 registered")
    assert await texts(client, "from=3h&to=2h59m") == []
    assert (await texts(client, "order=asc"))[0] == "worker w-1 started"


async def test_case_changes_are_paged_both_ways(client: httpx.AsyncClient, world: World) -> None:
    changed(world)
    whole = await texts(client)
    seen, query = [], "limit=3"
    while True:
        page = (await client.get(f"/changes?{query}")).json()
        seen += [one["text"] for one in page["items"]]
        if page["nextCursor"] is None:
            break
        query = f"limit=3&cursor={page['nextCursor']}"
    assert seen == whole
    back = (await client.get(f"/changes?limit=3&cursor={page['previousCursor']}")).json()
    assert [one["text"] for one in back["items"]] == whole[3:6]
    refused = await client.get("/changes?limit=2&cursor=abc")
    assert (refused.status_code, code(refused)) == (400, "bad_cursor")


async def test_case_changes_of_another_namespace_are_not_seen(server: Server, world: World) -> None:
    changed(world)
    async with server.client(server.token(Role.VIEWER, namespaces=("other",))) as stranger:
        assert await texts(stranger, "from=30d") == []


async def test_case_a_change_that_registers_a_version_is_shown_once(client: httpx.AsyncClient, world: World) -> None:
    world.clock.advance(7200)
    for command in ("true", "false", "true"):
        world.clock.advance(60)
        (await client.put("/jobs/nightly", json={"command": command})).raise_for_status()
    assert await texts(client) == [
        "job nightly changed",
        "nightly version 2 registered",
        "nightly version 1 registered",
    ]
