"""Actions on many executions, runs, events, schedules and jobs at once."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from rota.api.resources import actions
from rota.domain.access import Role
from rota.domain.instant import MICROSECONDS, rfc3339
from rota.domain.job import Definition
from rota.domain.schedule import Spec
from rota.domain.trigger import Every
from rota.ops import actions as ops
from rota.ops import control, define, enqueue, schedule
from rota.ops.submission import Header, Item
from rota.store import reader
from tests.api.server import Server, code
from tests.support.world import World

UNKNOWN = "01a1eb52-ba8b-7000-9fc2-e6d4c6f6a277"
HEADER = Header(namespace="default", app="shop", job="mail", queue="default", actor="test")


@pytest.fixture(autouse=True)
def jobs(server: Server) -> None:
    server.store.transact(define.register, "default", "shop", [Definition(name="mail")], [])


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server does not work on actions itself, as if it had died after its answer."""

    async def nothing(call: object) -> None:
        return None

    monkeypatch.setattr(actions, "_work", nothing)


def place(server: Server, count: int, **about: Any) -> list[str]:
    ids = server.services.ids.many(count)
    header = Header(
        **{"namespace": "default", "app": "shop", "job": "mail", "queue": "default", "actor": "test", **about}
    )
    server.store.transact(enqueue.enqueue, header, [Item(id, "{}") for id in ids])
    return ids


def statuses(server: Server, ids: list[str]) -> list[str]:
    return [server.store.read(reader.status, "default", id).value for id in ids]


def work(server: Server, chunks: int = 1000) -> int:
    done = 0
    while done < chunks and server.store.transact(ops.work_on_actions):
        done += 1
    return done


async def post(client: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await client.post("/actions", json=body)


CANCEL = {"action": "cancel", "on": "executions"}


async def test_ids_are_acted_on_at_once_with_one_result_each(server: Server, client: httpx.AsyncClient) -> None:
    first, second = place(server, 2)
    server.store.transact(control.cancel, "default", first, "test")
    answer = await post(client, **CANCEL, ids=[first, second, "01a1eb52-ba8b-7000-9fc2-e6d4c6f6a277"])
    assert answer.status_code == 200
    found = answer.json()["items"]
    assert [one["changed"] for one in found] == [False, True, False]
    assert found[2]["code"] == "unknown_execution"
    assert statuses(server, [first, second]) == ["cancelled", "cancelled"]


async def test_only_dead_letters_are_replayed_if_that_is_asked(server: Server, client: httpx.AsyncClient) -> None:
    (ended,) = place(server, 1)
    server.store.transact(control.cancel, "default", ended, "test")
    (dead,) = World(server.store).fail(1, "mail", app="shop")
    replay = {"action": "replay", "on": "executions", "ids": [dead, ended], "options": {"onlyDead": True}}
    first, second = (await post(client, **replay)).json()["items"], (await post(client, **replay)).json()["items"]
    assert [(one["changed"], "createdId" in one) for one in first] == [(True, True), (False, False)]
    assert [one["changed"] for one in second] == [False, False]
    for wrong in ({"onlyDead": 1}, {"dead": True}):
        refused = await post(client, **{**replay, "options": wrong})
        assert (refused.status_code, code(refused)) == (422, "bad_field")


async def test_a_filter_is_acted_on_in_the_background(server: Server, client: httpx.AsyncClient) -> None:
    ids = place(server, 1200)
    answer = await post(client, **CANCEL, filter={"job": "mail"}, atMost=5000, note="clean up")
    assert answer.status_code == 202, answer.text
    found = (await client.get(f"{answer.headers['location'].removeprefix('/api/v1')}?wait=30s")).json()
    assert (found["status"], found["done"], found["failed"], found["total"]) == ("done", 1200, 0, 1200)
    assert set(statuses(server, ids[::100])) == {"cancelled"}
    assert (await client.get("/actions")).json()["items"] == [found]
    trail = (await client.get("/audit")).json()["items"]
    assert [one["action"] for one in trail] == ["action.end", "action.cancel"]


async def test_case_36_an_empty_filter_and_too_many(server: Server, client: httpx.AsyncClient) -> None:
    ids = place(server, 3)
    refused = await post(client, **CANCEL, filter={}, atMost=10)
    assert (refused.status_code, code(refused)) == (422, "empty_filter")
    refused = await post(client, **CANCEL, filter={"job": "mail"})
    assert (refused.status_code, code(refused)) == (422, "missing_field")
    refused = await post(client, **CANCEL, filter={"job": "mail"}, atMost=2)
    assert (refused.status_code, code(refused)) == (409, "too_many")
    assert set(statuses(server, ids)) == {"queued"}
    assert (await client.get("/actions")).json()["items"] == []


@pytest.mark.usefixtures("by_hand")
async def test_case_36_a_server_that_dies_half_way(server: Server, client: httpx.AsyncClient) -> None:
    ids = place(server, 1100)
    replay = {"action": "replay", "on": "executions", "filter": {"status": "cancelled"}, "atMost": 5000}
    server.store.transact(lambda tx: [control.cancel(tx, "default", id, "test") for id in ids])
    headers = {"Idempotency-Key": "once"}
    first = await client.post("/actions", json=replay, headers=headers)
    again = await client.post("/actions", json=replay, headers=headers)
    assert first.json()["actionId"] == again.json()["actionId"]
    assert work(server, 1) == 1  # One chunk; then another process continues.
    place(server, 5)
    work(server)
    found = (await client.get(f"/actions/{first.json()['actionId']}")).json()
    assert (found["status"], found["done"], found["total"]) == ("done", 1100, 1100)
    rows = server.store.read(lambda view: view.rows("queue_depth", namespace="default", queue="default", most=10_000))
    assert rows[0][0] == 1105


@pytest.mark.usefixtures("by_hand")
async def test_case_36_what_is_created_later_is_not_touched(server: Server, client: httpx.AsyncClient) -> None:
    place(server, 2)
    answer = await post(client, **CANCEL, filter={"job": "mail"}, atMost=100)
    late = place(server, 2)
    work(server)
    assert set(statuses(server, late)) == {"queued"}
    assert (await client.get(f"/actions/{answer.json()['actionId']}")).json()["total"] == 2


@pytest.mark.usefixtures("by_hand")
async def test_a_rate_paces_an_action_and_a_cancel_stops_it(server: Server, client: httpx.AsyncClient) -> None:
    ids = place(server, 50)
    answer = await post(client, **CANCEL, filter={"job": "mail"}, atMost=100, rate=0.001)
    url = f"/actions/{answer.json()['actionId']}"
    work(server)
    assert (await client.get(url)).json()["done"] == 1
    assert (await client.post(f"{url}/cancel")).json() == {"changed": True}
    assert (await client.post(f"{url}/cancel")).json() == {"changed": False}
    work(server)
    found = (await client.get(url)).json()
    assert (found["status"], found["done"]) == ("cancelled", 1)
    assert statuses(server, ids).count("cancelled") == 1


async def test_a_preview_does_nothing(server: Server, client: httpx.AsyncClient) -> None:
    ids = place(server, 12)
    answer = await client.post("/actions?dryRun=true", json={**CANCEL, "filter": {"job": "mail"}, "atMost": 5})
    assert answer.status_code == 200
    assert answer.json()["would"] == {"count": 6, "isCapped": True, "sample": ids[:-7:-1]}
    assert set(statuses(server, ids)) == {"queued"}


async def test_schedules_and_jobs(server: Server, client: httpx.AsyncClient) -> None:
    spec = Spec(job="mail", queue="default", trigger=Every(3600 * MICROSECONDS, 0))
    server.store.transact(schedule.put, "default", "shop", "hourly", spec, "test")
    for target, subject in {"schedules": "hourly", "jobs": "mail"}.items():
        for verb, changed in (("pause", True), ("pause", False), ("resume", True)):
            answer = await post(client, action=verb, on=target, ids=[f"shop/{subject}"], note="holiday")
            assert answer.json()["items"] == [{"id": f"shop/{subject}", "changed": changed}], (target, verb)


async def test_schedules_and_jobs_by_id_and_name(server: Server, client: httpx.AsyncClient) -> None:
    spec = Spec(job="mail", queue="default", trigger=Every(3600 * MICROSECONDS, 0))
    server.store.transact(schedule.put, "default", "shop", "hourly", spec, "test")
    (known,) = (await client.get("/schedules")).json()["items"]
    job = (await client.get("/jobs/mail")).json()["jobId"]
    for target, references in {"schedules": [known["scheduleId"], "hourly"], "jobs": [job, "mail"]}.items():
        for reference in references:
            for verb in ("pause", "resume"):
                answer = await post(client, action=verb, on=target, ids=[reference])
                assert answer.json()["items"] == [{"id": reference, "changed": True}], answer.text
        answer = await post(client, action="pause", on=target, ids=["nosuch", "99999", UNKNOWN])
        codes = {one["code"] for one in answer.json()["items"]}
        assert codes == {"unknown_schedule" if target == "schedules" else "unknown_job"}
    dry = await client.post("/actions?dryRun=true", json={"action": "pause", "on": "jobs", "ids": ["mail"]})
    assert dry.json() == {"dryRun": True, "would": {"items": [{"id": "mail", "changed": True}]}}
    assert (await client.get("/jobs/mail")).json()["state"] == "active"


@pytest.mark.parametrize(
    ("target", "verb", "given", "count"),
    [
        ("jobs", "pause", {"name": "ma"}, 1),
        ("jobs", "pause", {"state": "active", "origin": ["api", "code"]}, 2),
        ("jobs", "pause", {"tag": "red"}, 1),
        ("jobs", "pause", {"tag": ["red", "blue"]}, 0),
        ("jobs", "pause", {"queue": "slow"}, 1),
        ("jobs", "resume", {"state": ["paused"]}, 0),
        ("schedules", "pause", {"job": "mail"}, 1),
        ("schedules", "pause", {"name": "hour", "state": "active"}, 1),
        ("schedules", "pause", {"origin": "api"}, 1),
        ("schedules", "pause", {"origin": "code"}, 0),
        ("executions", "cancel", {"createdFrom": "2h"}, 2),
        ("executions", "cancel", {"createdTo": "2h"}, 0),
        ("events", "replay", {"name": "paid", "from": "2h", "to": "0s"}, 1),
        ("events", "replay", {"name": "paid", "to": "1h"}, 0),
        ("runs", "cancel", {"createdTo": "1h"}, 0),
        ("runs", "cancel", {"parent": "01a1eb52-ba8b-7000-9fc2-e6d4c6f6a277"}, 0),
    ],
)
async def test_a_filter_has_the_members_of_the_list(
    server: Server, client: httpx.AsyncClient, target: str, verb: str, given: dict[str, Any], count: int
) -> None:
    place(server, 2)
    spec = Spec(job="mail", queue="default", trigger=Every(3600 * MICROSECONDS, 0))
    server.store.transact(schedule.put, "default", "shop", "hourly", spec, "test")
    tagged = {"name": "red", "command": ["a"], "tags": ["red"], "queue": "slow", "schedule": "0 0 * * *"}
    assert (await client.post("/jobs", json=tagged)).status_code == 201
    assert (await client.post("/events", json={"name": "paid"})).status_code == 201
    body = {"action": verb, "on": target, "filter": given, "atMost": 100}
    answer = await client.post("/actions?dryRun=true", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["would"]["count"] == count
    for wrong in ({"state": "x"}, {"origin": "x"}) if target in ("jobs", "schedules") else ({"x": "y"},):
        refused = await client.post("/actions", json={**body, "filter": wrong})
        assert refused.status_code == 422


async def test_a_wait_for_an_action_has_bounds(client: httpx.AsyncClient) -> None:
    for wait in ("x", "61s", "-1"):
        refused = await client.get(f"/actions/{UNKNOWN}?wait={wait}")
        assert (refused.status_code, code(refused)) == (400, "bad_parameter")


async def test_a_backfill_says_how_many_ticks_it_starts_both_ends_included(
    server: Server, client: httpx.AsyncClient
) -> None:
    hour = 3600 * MICROSECONDS
    spec = Spec(job="mail", queue="default", trigger=Every(hour, 0))
    server.store.transact(schedule.put, "default", "shop", "hourly", spec, "test")
    last = server.services.clock.now() // hour * hour
    between = {"from": rfc3339(last - 3 * hour), "to": rfc3339(last)}
    body = {"action": "backfill", "on": "schedules", "ids": ["shop/hourly"], "options": between}
    for query, started in (("?dryRun=true", 4), ("", 4), ("", 0)):
        answer = await client.post(f"/actions{query}", json=body)
        found = answer.json()["would"] if query else answer.json()
        assert found["items"] == [{"id": "shop/hourly", "changed": started > 0, "started": started}]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"action": "cancel", "on": "planets", "ids": ["x"]}, "bad_field"),
        ({"action": "explode", "on": "executions", "ids": ["x"]}, "bad_field"),
        ({**CANCEL}, "bad_field"),
        ({**CANCEL, "ids": []}, "bad_field"),
        ({**CANCEL, "ids": ["x"], "filter": {"job": "a"}}, "bad_field"),
        ({**CANCEL, "filter": {"jop": "a"}, "atMost": 1}, "unknown_field"),
        ({**CANCEL, "filter": {"status": "x"}, "atMost": 1}, "bad_field"),
        ({**CANCEL, "filter": {"createdFrom": "yesterday"}, "atMost": 1}, "bad_field"),
        ({**CANCEL, "filter": {"job": 3}, "atMost": 1}, "bad_field"),
        ({"action": "update", "on": "executions", "ids": ["x"], "options": {"set": {"fence": 1}}}, "bad_field"),
        ({"action": "update", "on": "executions", "ids": ["x"], "options": {"set": {"priority": "x"}}}, "bad_field"),
    ],
)
async def test_bad_actions_are_refused(client: httpx.AsyncClient, body: dict[str, Any], wanted: str) -> None:
    answer = await client.post("/actions", json=body)
    assert (answer.status_code, code(answer)) == (422, wanted), answer.text


async def test_case_28_an_action_touches_nothing_of_another_tenant(server: Server) -> None:
    (id,) = place(server, 1)
    async with server.client(server.token(Role.OPERATOR, namespaces=("b",))) as client:
        answer = await post(client, **CANCEL, ids=[id])
        assert answer.json()["items"][0]["code"] == "unknown_execution"
        await post(client, **CANCEL, filter={"job": "mail"}, atMost=10)
    work(server)
    assert statuses(server, [id]) == ["queued"]
