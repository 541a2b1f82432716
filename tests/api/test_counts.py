"""Counts up to a bound, and the search by names and ids."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from rota.domain.outcome import Error, Failed
from rota.views import count
from tests.api.server import Server, code
from tests.support.world import World


async def groups(client: httpx.AsyncClient, query: str) -> dict[str, int]:
    found = (await client.get(f"/counts?{query}")).raise_for_status().json()
    return {one["value"]: one["count"] for one in found["groups"]}


def filled(world: World) -> None:
    worker = world.join()
    world.enqueue_many(4, "send")
    for number, attempt in enumerate(world.claim(worker)):
        if number < 3:
            kind = "KeyError" if number else "ValueError"
            world.finish(attempt, Failed(Error(kind, f"no {number}", "")))
        else:
            world.finish(attempt)
    world.enqueue_many(2, "receive", queue="slow")
    world.enqueue("receive", delay_s=3600)


async def test_counts_by_every_group(client: httpx.AsyncClient, world: World) -> None:
    filled(world)
    everything = (await client.get("/counts")).json()
    assert (everything["of"], everything["count"], everything["isCapped"], everything["groups"]) == (
        "executions",
        7,
        False,
        [],
    )
    assert await groups(client, "by=status") == {"failed": 3, "queued": 2, "success": 1, "scheduled": 1}
    assert await groups(client, "by=job") == {"send": 4, "receive": 3}
    assert await groups(client, "by=job&status=queued") == {"receive": 2}
    assert await groups(client, "by=queue&status=queued&status=scheduled") == {"slow": 2, "default": 1}
    assert await groups(client, "by=reason&status=failed") == {"error": 3}
    assert await groups(client, "by=errorType&status=failed") == {"KeyError": 2, "ValueError": 1}
    assert sum((await groups(client, "by=day")).values()) == 7
    assert (await client.get("/counts?job=send&status=failed")).json()["count"] == 3
    assert await groups(client, "by=status&job=nosuch") == {}


async def test_dead_letters_are_grouped_by_their_error_with_a_sample(client: httpx.AsyncClient, world: World) -> None:
    filled(world)
    found = (await client.get("/counts?dead=true")).json()
    assert (found["by"], found["count"]) == ("fingerprint", 3)
    first = found["groups"][0]
    assert (first["count"], first["errorMessage"].startswith("KeyError: no")) == (2, True)
    assert (await client.get(f"/executions/{first['sampleId']}")).json()["status"] == "failed"


async def test_counts_are_capped(client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(world)
    monkeypatch.setattr(count, "MOST", 2)
    found = (await client.get("/counts")).json()
    assert (found["count"], found["isCapped"]) == (2, True)
    by_job = (await client.get("/counts?by=job")).json()
    assert [(one["count"], one["isCapped"]) for one in by_job["groups"]] == [(2, True), (2, True)]


async def test_runs_and_events(client: httpx.AsyncClient, world: World) -> None:
    filled(world)
    assert (await client.get("/counts?of=runs")).json()["count"] == 0
    for query in ("of=events", "of=events&name=order.paid", "of=events&by=day"):
        assert (await client.get(f"/counts?{query}")).json()["count"] == 0
    for query in ("of=events&status=failed", "name=x", "of=events&by=job", "by=fingerprint", "of=jobs", "by=size"):
        refused = await client.get(f"/counts?{query}")
        assert (refused.status_code, code(refused)) == (400, "bad_parameter"), query


async def test_search_finds_names_and_the_start_of_ids(server: Server, world: World) -> None:
    id = world.enqueue()
    world.join(name="worker-of-sends")
    async with server.client() as client, server.client(**{"Rota-Namespace": "other"}) as stranger:

        async def hits(text: str, caller: httpx.AsyncClient = client) -> list[tuple[Any, ...]]:
            found = (await caller.get("/search", params={"q": text})).raise_for_status().json()["items"]
            return [(one["kind"], one["name"]) for one in found]

        assert await hits("SEND") == [("job", "send"), ("worker", "worker-of-sends")]
        assert await hits("defau") == [("queue", "default")]
        found = (await client.get("/search", params={"q": id[:13]})).json()["items"]
        assert [(one["kind"], one["id"], one["path"]) for one in found] == [
            ("execution", id, f"/api/v1/executions/{id}")
        ]
        assert await hits(id) == [("execution", None)]
        assert await hits("' OR 1=1--") == []
        assert await hits("send", stranger) == []
        assert await hits(id, stranger) == []
        assert (await client.get("/search")).status_code == 400
