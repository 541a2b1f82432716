"""Changes of one execution over HTTP: its place in line, cancel, replay, discard."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from rota.domain.access import Role
from rota.domain.job import Definition, Queue
from tests.api.server import Server, code
from tests.support.world import World


async def test_case_35_cancel_of_what_just_ended_and_twice(client: httpx.AsyncClient, world: World) -> None:
    (failed,) = world.fail()
    answer = await client.post(f"/executions/{failed}/cancel")
    assert (answer.status_code, answer.json()["status"], answer.json()["changed"]) == (200, "failed", False)
    queued = world.enqueue()
    first = (await client.post(f"/executions/{queued}/cancel", json={"note": "wrong"})).json()
    assert first == {"executionId": queued, "status": "cancelled", "changed": True, "children": 0}
    second = await client.post(f"/executions/{queued}/cancel")
    assert (second.status_code, second.json()["status"], second.json()["changed"]) == (200, "cancelled", False)


async def test_case_35_cancel_of_a_running_one_is_asked_once(client: httpx.AsyncClient, world: World) -> None:
    _, attempt = world.start()
    answers = [(await client.post(f"/executions/{attempt.id}/cancel")).json() for _ in range(2)]
    assert [(one["status"], one["changed"]) for one in answers] == [("running", True), ("running", False)]
    shown = (await client.get(f"/executions/{attempt.id}")).json()
    assert shown["cancelRequestedAt"] is not None
    assert shown["why"]["checks"][1]["code"] == "cancel_requested"


async def test_case_35_replay_of_a_running_one_and_discard_of_a_success(
    client: httpx.AsyncClient, world: World
) -> None:
    _, attempt = world.start()
    refused = await client.post(f"/executions/{attempt.id}/replay")
    assert (refused.status_code, code(refused)) == (409, "not_ended")
    world.finish(attempt)
    kept = await client.post(f"/executions/{attempt.id}/discard")
    assert (kept.status_code, kept.json()["status"], kept.json()["changed"]) == (200, "success", False)


async def test_cancel_with_children_reaches_all_below(client: httpx.AsyncClient, world: World) -> None:
    _, attempt = world.start()
    child = world.enqueue("receive", parent=attempt.id)
    grandchild = world.enqueue("receive", parent=child)
    world.finish(attempt)
    answer = (await client.post(f"/executions/{attempt.id}/cancel", json={"children": True})).json()
    assert (answer["status"], answer["changed"], answer["children"]) == ("success", True, 2)
    assert {world.status(child), world.status(grandchild)} == {"cancelled"}


async def test_a_replay_takes_other_arguments_and_places(client: httpx.AsyncClient, world: World) -> None:
    world.register(Definition(name="send", parameters={"n": {"type": "float", "required": False}}))
    (dead,) = world.fail()
    body = {"arguments": {"n": 1.10}, "queue": "slow", "priority": 7, "delay": "1h"}
    answer = await client.post(f"/executions/{dead}/replay", json=body)
    made = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (201, f"/api/v1/executions/{made['executionId']}")
    assert (made["replayOf"], made["status"], made["queue"], made["priority"]) == (dead, "scheduled", "slow", 7)
    assert made["arguments"] == {"n": 1.1}
    assert (await client.get(f"/executions/{dead}")).json()["replayedBy"] == made["executionId"]
    assert (await client.get("/executions?dead=true")).json()["items"] == []
    for bad, problem in (
        ({"arguments": [1]}, "bad_arguments"),
        ({"arguments": {"x": 1}}, "bad_arguments"),
        ({"delay": "soon"}, "bad_definition"),
        ({"queue": "a/b"}, "bad_definition"),
        ({"priority": "higher"}, "bad_field"),
        ({"priority": 101}, "bad_field"),
        ({"status": "queued"}, "unknown_field"),
    ):
        refused = await client.post(f"/executions/{dead}/replay", json=bad)
        assert (refused.status_code, code(refused)) == (422, problem), bad


async def test_a_replay_with_an_idempotency_key_is_made_once(client: httpx.AsyncClient, world: World) -> None:
    (dead,) = world.fail()
    answers = [await client.post(f"/executions/{dead}/replay", headers={"Idempotency-Key": "k1"}) for _ in range(2)]
    assert [one.status_code for one in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    assert answers[1].headers["idempotency-replayed"] == "true"


async def test_case_37_a_replay_into_a_full_queue_is_refused(client: httpx.AsyncClient, world: World) -> None:
    (dead,) = world.fail()
    world.register("send", queues=[Queue(name="small", max_depth=1)])
    world.enqueue(queue="small")
    refused = await client.post(f"/executions/{dead}/replay", json={"queue": "small"})
    assert (refused.status_code, code(refused)) == (429, "queue_full")
    moved = world.enqueue()
    refused = await client.patch(f"/executions/{moved}", json={"queue": "small"})
    assert (refused.status_code, code(refused)) == (429, "queue_full")


async def test_discard_takes_it_off_the_dead_letters(client: httpx.AsyncClient, world: World) -> None:
    (dead,) = world.fail()
    answers = [(await client.post(f"/executions/{dead}/discard")).json() for _ in range(2)]
    assert [(one["status"], one["changed"]) for one in answers] == [("failed", True), ("failed", False)]
    assert world.dead() == []


async def test_a_scheduled_execution_starts_now(client: httpx.AsyncClient, world: World) -> None:
    id = world.enqueue(delay_s=3600)
    answer = await client.patch(f"/executions/{id}", json={"runAt": "now", "priority": 5})
    assert (answer.status_code, answer.json()["status"], answer.json()["priority"]) == (200, "queued", 5)
    assert [one.id for one in world.claim(world.join())] == [id]


async def test_a_queued_execution_is_postponed(client: httpx.AsyncClient, world: World) -> None:
    id = world.enqueue()
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=2)
    later = (await client.patch(f"/executions/{id}", json={"runAt": at.isoformat()})).json()
    assert (later["status"], later["runAt"]) == ("scheduled", at.isoformat().replace("+00:00", "Z"))
    sooner = at - timedelta(days=1)
    moved = (await client.patch(f"/executions/{id}", json={"runAt": sooner.isoformat()})).json()
    assert moved["runAt"] == sooner.isoformat().replace("+00:00", "Z")
    assert world.claim(world.join()) == []


async def test_priority_and_queue_of_a_queued_execution(client: httpx.AsyncClient, world: World) -> None:
    first, second = world.enqueue(), world.enqueue()
    await client.patch(f"/executions/{second}", json={"priority": 1})
    assert [one.id for one in world.claim(world.join(), 1)] == [second]
    named = (await client.patch(f"/executions/{first}", json={"priority": "high"})).json()
    assert named["priority"] == 10
    moved = (await client.patch(f"/executions/{first}", json={"queue": "slow"})).json()
    assert (moved["queue"], moved["status"]) == ("slow", "queued")
    assert world.claim(world.join(), queues=["default"]) == []
    assert [one.id for one in world.claim(world.join(), queues=["slow"])] == [first]


@pytest.mark.parametrize("state", ["running", "ended"])
async def test_what_is_not_pending_is_not_changed(client: httpx.AsyncClient, world: World, state: str) -> None:
    _, attempt = world.start()
    if state == "ended":
        world.finish(attempt)
    refused = await client.patch(f"/executions/{attempt.id}", json={"priority": 1})
    assert (refused.status_code, code(refused)) == (409, "not_pending")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"runAt": "tomorrow"}, "bad_field"),
        ({"runAt": "2030-01-01T00:00:00"}, "bad_field"),
        ({"priority": "3"}, "bad_field"),
        ({"priority": 101}, "bad_field"),
        ({"status": "success"}, "unknown_field"),
        ({"queue": "a b"}, "bad_definition"),
    ],
)
async def test_changes_that_are_wrong(
    client: httpx.AsyncClient, world: World, body: dict[str, Any], problem: str
) -> None:
    refused = await client.patch(f"/executions/{world.enqueue()}", json=body)
    assert (refused.status_code, code(refused)) == (422, problem)


async def test_problems_name_no_types_of_python(client: httpx.AsyncClient, world: World) -> None:
    refused = await client.patch(f"/executions/{world.enqueue()}", json={"queue": 3, "runAt": [], "priority": 1.5})
    said = [flaw["detail"] for flaw in refused.json()["errors"]]
    assert said == [
        "/queue: expected text, got whole number",
        "/runAt: expected text, got list",
        "/priority: expected whole number or text, got number",
    ]


async def test_nothing_to_change_is_no_change(client: httpx.AsyncClient, world: World) -> None:
    id = world.enqueue()
    for body in ({}, {"priority": None}, {"priority": 0, "queue": "default", "runAt": "now"}):
        assert (await client.patch(f"/executions/{id}", json=body)).json()["status"] == "queued"


async def test_a_limited_token_replays_and_moves_only_what_it_may_enqueue(server: Server, world: World) -> None:
    (mine,), (other,) = world.fail(), world.fail(job="receive")
    waiting = world.enqueue()
    async with server.client(server.token(Role.OPERATOR, jobs=("send",), queues=("default",))) as client:
        assert (await client.post(f"/executions/{mine}/replay")).status_code == 201
        for refused in (
            await client.post(f"/executions/{other}/replay"),
            await client.post(f"/executions/{mine}/replay", json={"queue": "vip"}),
            await client.patch(f"/executions/{waiting}", json={"queue": "vip"}),
            await client.post("/actions", json={"action": "replay", "on": "executions", "ids": [other]}),
            await client.post(f"/events/{other}/replay"),
            await client.post(f"/runs/{other}/retry"),
        ):
            assert (refused.status_code, code(refused)) == (403, "wrong_scope")
        assert (await client.patch(f"/executions/{waiting}", json={"priority": 3})).status_code == 200
        cancelled = await client.post("/actions", json={"action": "cancel", "on": "executions", "ids": [waiting]})
        assert cancelled.json()["items"] == [{"id": waiting, "changed": True}]
