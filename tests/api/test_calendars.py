"""Calendars over HTTP."""

from __future__ import annotations

import asyncio

import httpx

from tests.api.defining import job
from tests.api.server import Server, code

DAYS = {"days": ["2030-12-25", "2030-12-24"]}


async def test_a_calendar_is_made_replaced_and_removed(client: httpx.AsyncClient) -> None:
    made = await client.put("/calendars/free", json=DAYS)
    assert (made.status_code, made.headers["location"], made.headers["etag"]) == (
        201,
        "/api/v1/calendars/free",
        '"r1"',
    )
    assert made.json()["days"] == ["2030-12-24", "2030-12-25"]
    again = await client.put("/calendars/free", json=made.json()["definition"])
    assert (again.status_code, again.headers["etag"], again.json()) == (200, '"r1"', made.json())
    changed = await client.put("/calendars/free", json={"days": []})
    assert (changed.status_code, changed.headers["etag"], changed.json()["dayCount"]) == (200, '"r2"', 0)
    assert (await client.get("/calendars/free", headers={"If-None-Match": '"r2"'})).status_code == 304
    assert (await client.get("/calendars")).json()["items"][0]["name"] == "free"
    assert (await client.delete("/calendars/free")).status_code == 204
    for answer in (await client.get("/calendars/free"), await client.delete("/calendars/free")):
        assert (answer.status_code, code(answer)) == (404, "not_found")
    trail = (await client.get("/audit?action=calendar&order=asc")).json()["items"]
    assert [one["action"] for one in trail] == ["calendar.set", "calendar.set", "calendar.remove"]


async def test_wrong_bodies_and_names(client: httpx.AsyncClient) -> None:
    for body, problem in [
        ({"days": ["24.12.2030"]}, "bad_field"),
        ({"days": ["2030-02-30"]}, "bad_field"),
        ({"days": "2030-12-24"}, "bad_field"),
        ({"days": [1]}, "bad_field"),
        ({"days": ["2030-01-01"] * 10_001}, "bad_field"),
        ({}, "missing_field"),
        ({**DAYS, "namespace": "x"}, "unknown_field"),
    ]:
        answer = await client.put("/calendars/free", json=body)
        assert (answer.status_code, code(answer)) == (422, problem), body
    for name in ("1st", "a~b", "x" * 129, "abcdef12-0000-7000-8000-000000000000"):
        assert (await client.put(f"/calendars/{name}", json=DAYS)).status_code == 400
    assert (await client.get("/calendars")).json()["items"] == []


async def test_a_calendar_in_use_cannot_be_removed(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    await client.put("/calendars/free", json=DAYS)
    await client.put("/calendars/freedom", json=DAYS)
    made = await client.post("/schedules", json={"job": "report", "cron": "0 3 * * *", "calendars": ["free"]})
    refused = await client.delete("/calendars/free")
    assert (refused.status_code, code(refused)) == (409, "in_use")
    id = made.json()["scheduleId"]
    assert refused.json()["existing"] == [{"scheduleId": id, "app": "shop", "name": "report"}]
    assert (await client.delete("/calendars/freedom")).status_code == 204
    assert (await client.patch(f"/schedules/{id}", json={"calendars": None})).status_code == 200
    assert (await client.delete("/calendars/free")).status_code == 204


async def test_a_schedule_and_the_removal_of_its_calendar_at_once(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    for number in range(5):
        await client.put("/calendars/free", json=DAYS)
        body = {"job": "report", "name": f"s{number}", "cron": "0 3 * * *", "calendars": ["free"]}
        made, removed = await asyncio.gather(client.post("/schedules", json=body), client.delete("/calendars/free"))
        assert (made.status_code, removed.status_code) in ((201, 409), (422, 204))
        await client.delete(f"/schedules/s{number}")


async def test_case_14_conditions_of_a_put(client: httpx.AsyncClient) -> None:
    only_new = {"If-None-Match": "*"}
    assert (await client.put("/calendars/free", json=DAYS, headers={"If-Match": "*"})).status_code == 412
    assert (await client.put("/calendars/free", json=DAYS, headers=only_new)).status_code == 201
    refused = await client.put("/calendars/free", json={"days": []}, headers=only_new)
    assert (refused.status_code, code(refused), refused.headers["etag"]) == (412, "precondition_failed", '"r1"')
    answers = await asyncio.gather(
        *(client.put("/calendars/free", json={"days": [f"2030-01-0{n}"]}, headers={"If-Match": '"r1"'}) for n in (1, 2))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 412]
    assert (await client.delete("/calendars/free", headers={"If-Match": '"r1"'})).status_code == 412


async def test_case_15_a_put_by_ten_at_once(client: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(client.put("/calendars/free", json=DAYS) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] * 9 + [201]
    assert (await client.get("/calendars/free")).headers["etag"] == '"r1"'


async def test_case_28_calendars_of_another_tenant(server: Server, client: httpx.AsyncClient) -> None:
    await client.put("/calendars/free", json=DAYS)
    job(server, namespace="b")
    async with server.client(server.token(namespaces=("b",))) as stranger:
        assert (await stranger.get("/calendars")).json()["items"] == []
        for method in ("GET", "DELETE"):
            assert (await stranger.request(method, "/calendars/free")).status_code == 404
        body = {"job": "report", "cron": "0 3 * * *", "calendars": ["free"]}
        assert (await stranger.post("/schedules", json=body)).status_code == 422
        assert (await stranger.put("/calendars/free", json={"days": []})).status_code == 201
    async with server.client(server.token()) as owner:
        assert (await owner.get("/calendars/free")).json()["dayCount"] == 2


async def test_a_dry_run_changes_nothing(client: httpx.AsyncClient) -> None:
    answer = await client.put("/calendars/free?dryRun=true", json=DAYS)
    assert (answer.status_code, answer.json()["would"]["dayCount"]) == (200, 2)
    await client.put("/calendars/free", json=DAYS)
    assert (await client.delete("/calendars/free?dryRun=true")).json() == {"dryRun": True, "would": {"name": "free"}}
    assert (await client.get("/calendars/free")).status_code == 200
