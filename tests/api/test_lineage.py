"""Around one execution: lineage, neighbours in a list, forecasts; and what a form needs."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from rota.domain.instant import rfc3339
from rota.domain.job import Definition
from rota.domain.schedule import Spec
from rota.domain.trigger import Every
from rota.executors.signature import Signature
from rota.ops import define, firing, schedule
from rota.ops.upkeep import ALL_SHARDS
from tests.api.server import Server
from tests.support.world import World
from tests.workflow.stage import Stage, one_success

pytestmark = pytest.mark.usefixtures("clock")

SECOND = 10**6


async def get(client: httpx.AsyncClient, path: str) -> Any:
    return (await client.get(path)).raise_for_status().json()


def charge(order: str, cents: int, currency: str = "EUR") -> None:
    """Its parameters are not in the order of the alphabet."""


def run(world: World, job: str = "send", took_s: float = 10) -> str:
    id = world.enqueue(job)
    (attempt,) = world.claim(world.join(lease_s=3600), 1, jobs=[job])
    world.clock.advance(took_s)
    world.finish(attempt)
    return id


async def test_case_lineage_from_a_caller_to_children_and_replays(client: httpx.AsyncClient, world: World) -> None:
    parent = run(world)
    children = [world.enqueue("receive", parent=parent) for _ in range(2)]
    (await client.post(f"/executions/{parent}/replay")).raise_for_status()
    found = await get(client, f"/executions/{parent}/lineage")
    assert (found["origin"]["kind"], found["origin"]["name"]) == ("caller", "test")
    assert [one["executionId"] for one in found["children"]] == children[::-1]
    assert (found["childCount"], found["replayCount"]) == (2, 1)
    replay = found["replays"][0]
    assert (replay["job"], replay["status"]) == ("send", "queued")
    again = await get(client, f"/executions/{replay['executionId']}/lineage")
    assert (again["replayOf"]["executionId"], again["replayOf"]["status"]) == (parent, "success")
    child = await get(client, f"/executions/{children[0]}/lineage")
    assert (child["origin"]["kind"], child["origin"]["name"], child["parent"]["executionId"]) == (
        "execution",
        "send",
        parent,
    )


async def test_case_lineage_of_a_tick(client: httpx.AsyncClient, world: World) -> None:
    spec = Spec(job="send", trigger=Every(period=60 * SECOND))
    world.store.transact(schedule.put, "default", "shop", "minutely", spec, "test")
    world.clock.advance(60)
    world.store.transact(firing.fire, ALL_SHARDS, world.ids.many)
    (id,) = world.executions()
    origin = (await get(client, f"/executions/{id}/lineage"))["origin"]
    now = world.clock.now()
    assert (origin["kind"], origin["name"], origin["at"]) == (
        "schedule",
        "minutely",
        rfc3339(now - now % (60 * SECOND)),
    )
    assert origin["id"] == (await get(client, "/schedules/minutely"))["scheduleId"]


async def test_case_neighbours_walk_the_same_filter(client: httpx.AsyncClient, world: World) -> None:
    ids = [world.enqueue("send" if number % 2 else "receive") for number in range(6)]
    sends = ids[1::2]
    found = await get(client, f"/executions/{sends[1]}/neighbours?job=send&status=queued")
    assert (found["previousId"], found["nextId"]) == (sends[2], sends[0])
    last = await get(client, f"/executions/{sends[2]}/neighbours?job=send")
    assert (last["previousId"], last["nextId"]) == (None, sends[1])
    assert (await client.get(f"/executions/{ids[0]}/neighbours?jobb=send")).status_code == 400


async def test_case_forecasts_of_executions(client: httpx.AsyncClient, server: Server, world: World) -> None:
    for took_s in (10, 20, 30):
        run(world, took_s=took_s)
    ids = world.enqueue_many(11)
    found = await get(client, f"/executions/{ids[5]}/forecast")
    slots = found["slots"]
    now = world.clock.now()
    assert (found["place"], found["usualS"], found["heldBy"]) == (6, 20.0, None)
    assert found["startsAt"] == rfc3339(now + 5 * 20 * SECOND // slots)
    later = await get(client, f"/executions/{world.enqueue(delay_s=60)}/forecast")
    assert (later["startsAt"], later["place"], later["heldBy"]) == (rfc3339(now + 60 * SECOND), None, "due")
    (attempt,) = world.claim(world.join(lease_s=3600), 1)
    world.clock.advance(5)
    runs = await get(client, f"/executions/{attempt.id}/forecast")
    assert (runs["status"], runs["endsAt"]) == ("running", rfc3339(now + 20 * SECOND))
    server.store.transact(define.pause_queue, "default", "default", "ops", "")
    held = await get(client, f"/executions/{ids[5]}/forecast")
    assert (held["startsAt"], held["heldBy"]) == (None, "queue_paused")


async def test_case_the_forecast_of_a_run(client: httpx.AsyncClient, world: World) -> None:
    stage = Stage(world)
    stage.bodies["send"] = one_success
    steps = {"id": "first", "job": "send"}, {"id": "second", "job": "receive", "after": ["first"]}
    stage.workflow("two", *steps)
    run(world, "send", took_s=10)
    run(world, "receive", took_s=20)
    id = stage.start("two")
    open_worker = world.join(lease_s=3600)
    world.claim(open_worker, 10)
    world.claim(open_worker, 10)
    world.clock.advance(4)
    found = await get(client, f"/runs/{id}/forecast")
    assert [(one["step"], one["usualS"]) for one in found["steps"]] == [("first", 10.0), ("second", 20.0)]
    assert found["endsAt"] == rfc3339(world.clock.now() + (6 + 20) * SECOND)


async def test_case_a_form_has_the_schema_and_the_last_arguments(client: httpx.AsyncClient, world: World) -> None:
    takes = {"to": {"type": "str", "required": True}, "copies": {"type": "int", "required": False}}
    world.register(Definition(name="mail", parameters=takes))
    empty = await get(client, "/jobs/mail/parameters")
    assert (empty["schema"]["required"], empty["lastArguments"]) == (["to"], None)
    id = world.enqueue("mail", {"to": "a@b.c"})
    found = await get(client, "/jobs/mail/parameters")
    assert (found["lastExecutionId"], found["lastArguments"]) == (id, {"to": "a@b.c"})
    assert found["schema"]["properties"] == {"to": {"type": "string"}, "copies": {"type": "integer"}}
    world.register(Definition(name="charge", parameters=Signature(charge, "charge").parameters()))
    form = await get(client, "/jobs/charge/parameters")
    assert list(form["schema"]["properties"]) == ["order", "cents", "currency"]
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    await client.put("/jobs/nightly", json={"command": "true", "parameters": schema, "arguments": {"n": 1}})
    given = await get(client, "/jobs/nightly/parameters")
    assert (given["schema"], given["arguments"]) == (schema, {"n": 1})


async def test_case_me_names_the_database(client: httpx.AsyncClient, server: Server) -> None:
    found = await get(client, "/me")
    kind = "PostgreSQL" if server.settings.url.startswith("postgres") else "SQLite"
    assert found["database"].startswith(f"{kind} ")
