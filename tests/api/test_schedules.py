"""Schedules over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import msgspec
import pytest

from rota.domain import cron, cron_field
from rota.domain.access import Role
from rota.domain.cron import LONGEST
from rota.domain.schedule import Spec, check
from rota.domain.trigger import Cron
from rota.ops import schedule as ops
from rota.ops.job_definitions import API
from tests.api.defining import coded_schedule, job, worker
from tests.api.server import Server, code

NIGHTLY = {"job": "report", "name": "nightly", "cron": "0 3 * * *", "tz": "Europe/Berlin"}


async def made(client: httpx.AsyncClient, **about: Any) -> dict[str, Any]:
    answer = await client.post("/schedules", json={**NIGHTLY, **about})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_schedule_is_made_read_changed_and_removed(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    answer = await client.post("/schedules", json={**NIGHTLY, "arguments": {"month": "May"}, "catchUp": 3})
    body = answer.json()
    assert (answer.status_code, answer.headers["etag"]) == (201, '"r1"')
    assert answer.headers["location"] == f"/api/v1/schedules/{body['scheduleId']}"
    assert (body["name"], body["app"], body["origin"], body["catchUp"]) == ("nightly", "shop", "run_time", 3)
    assert body["words"]
    assert body["nextAt"].endswith("Z")
    assert body["paused"] is None
    for thing in ("nightly", body["scheduleId"]):
        again = await client.get(f"/schedules/{thing}")
        assert again.json() == body
        assert again.headers["etag"] == '"r1"'
    changed = await client.patch("/schedules/nightly", json={"cron": "30 4 * * *", "catchUp": None})
    assert (changed.status_code, changed.headers["etag"]) == (200, '"r2"')
    assert (changed.json()["cron"], changed.json()["catchUp"], changed.json()["tz"]) == (
        "30 4 * * *",
        "last",
        "Europe/Berlin",
    )
    assert changed.json()["arguments"] == {"month": "May"}
    same = await client.patch("/schedules/nightly", json={"cron": "30 4 * * *"})
    assert same.headers["etag"] == '"r2"'
    assert (await client.delete("/schedules/nightly")).status_code == 204
    assert (await client.get("/schedules/nightly")).status_code == 404
    trail = (await client.get("/audit?action=schedule&order=asc")).json()["items"]
    assert [one["action"] for one in trail] == ["schedule.put", "schedule.put", "schedule.remove"]


async def test_what_get_shows_as_definition_makes_the_same_schedule(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    given: list[dict[str, Any]] = [
        {"cron": "0 3 * * *", "tz": "Europe/Berlin", "dstGap": "skip", "dstOverlap": "both", "catchUp": "none"},
        {"every": "90s", "phase": 30, "jitter": "5s", "overlap": "queue_one", "catchUp": 0},
        {"after": 60, "start": "2030-01-01T00:00:00+02:00", "end": "2040-01-01T00:00:00Z", "window": "2h"},
        {"at": ["2031-01-01T00:00:00Z", "2030-01-01T00:00:00.5Z"], "queue": "slow", "priority": "high"},
        {"cron": "0 3 * * *", "exclude": ["2030-12-24"], "calendars": ["free"], "arguments": {"month": "May"}},
    ]
    assert (await client.put("/calendars/free", json={"days": ["2030-12-25"]})).status_code == 201
    for number, options in enumerate(given):
        first = await client.post("/schedules", json={"job": "report", "name": f"s{number}", **options})
        assert first.status_code == 201, first.text
        wanted = {**first.json()["definition"], "name": f"again{number}"}
        second = await client.post("/schedules", json=wanted)
        assert second.status_code == 201, second.text
        assert second.json()["definition"] == wanted
        unchanged = await client.patch(f"/schedules/s{number}", json={"overlap": first.json()["overlap"]})
        assert unchanged.headers["etag"] == '"r1"', options


async def test_a_patch_may_change_the_trigger_and_the_job(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    job(server, "other")
    await made(client)
    two = await client.patch("/schedules/nightly", json={"every": 60})
    assert (two.status_code, code(two)) == (422, "bad_field")
    assert two.json()["errors"][0]["pointer"] == "/every"
    answer = await client.patch("/schedules/nightly", json={"cron": None, "every": 60, "job": "other"})
    assert (answer.json()["cron"], answer.json()["every"], answer.json()["job"]) == (None, 60, "other")
    none = await client.patch("/schedules/nightly", json={"job": None})
    assert (none.status_code, code(none), none.json()["errors"][0]["pointer"]) == (422, "missing_field", "/job")


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"cron": "*/0 * * * *"}, "bad_cron", "/cron"),
    ({"cron": "0 0 31 2 *"}, "bad_cron", "/cron"),
    ({"cron": "@every 5m"}, "bad_cron", "/cron"),
    ({"cron": None}, "missing_field", "/cron"),
    ({"cron": 5}, "bad_field", "/cron"),
    ({"every": 60}, "bad_field", "/every"),
    ({"tz": "Mars/Base"}, "bad_field", "/tz"),
    ({"dstGap": "sideways"}, "bad_field", "/dstGap"),
    ({"phase": 5}, "bad_field", "/phase"),
    ({"overlap": "maybe"}, "bad_field", "/overlap"),
    ({"catchUp": 5000}, "bad_field", "/catchUp"),
    ({"catchUp": 1.5}, "bad_field", "/catchUp"),
    ({"window": "soon"}, "bad_field", "/window"),
    ({"jitter": -1}, "bad_field", "/jitter"),
    ({"start": "2030-01-01T00:00:00"}, "bad_field", "/start"),
    ({"end": "2001-01-01T00:00:00Z"}, "bad_field", "/end"),
    ({"exclude": ["2030-13-01"]}, "bad_field", "/exclude"),
    ({"calendars": ["gone"]}, "bad_field", "/calendars"),
    ({"arguments": {"moth": 1}}, "bad_arguments", "/arguments"),
    ({"arguments": [1]}, "bad_arguments", "/arguments"),
    ({"priority": "vital"}, "bad_field", "/priority"),
    ({"queue": "a b"}, "bad_field", "/queue"),
    ({"name": "a/b"}, "bad_field", "/name"),
    ({"name": "abcdef12-0000-7000-8000-000000000000"}, "bad_field", "/name"),
    ({"job": "gone"}, "unknown_job", "/job"),
    ({"app": "gone"}, "unknown_job", "/job"),
]


async def test_a_wrong_member_is_pointed_at(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    for options, problem, pointer in WRONG:
        answer = await client.post("/schedules", json={**NIGHTLY, **options})
        assert (answer.status_code, code(answer)) == (422, problem), (options, answer.text)
        assert answer.json()["errors"][0]["pointer"] == pointer
    assert (await client.get("/schedules")).json()["items"] == []


HOSTILE = ["*/0 * * * *", "x" * 1_000_000, f"{','.join(['1-5'] * 10_000)} * * * *"]


async def test_hostile_cron_text_is_refused_before_it_is_parsed(
    server: Server, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work is bounded by the longest text that is looked at, not by what a caller sends."""
    job(server)
    looked_at: list[str] = []
    parse = cron_field.parse

    def counted(text: str, *about: Any) -> object:
        looked_at.append(text)
        return parse(text, *about)

    monkeypatch.setattr(cron, "parse_field", counted)
    for text in HOSTILE:
        content = msgspec.json.encode({**NIGHTLY, "cron": text})
        answer = await client.post("/schedules", content=content, headers={"Content-Type": "application/json"})
        assert (answer.status_code, code(answer)) == (422, "bad_cron")
        assert len(answer.content) < 1000 + LONGEST
        assert sum(map(len, looked_at)) <= len(text) <= LONGEST or looked_at == []
        looked_at.clear()


async def test_case_27_members_that_only_the_server_decides(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    for member in ("namespace", "status", "scheduleId", "revision", "actor", "origin", "nextAt"):
        for answer in (
            await client.post("/schedules", json={**NIGHTLY, member: "x"}),
            await client.patch("/schedules/nightly", json={member: "x"}),
            await client.post("/schedules/nightly/pause", json={member: "x"}),
        ):
            assert (answer.status_code, code(answer)) == (422, "unknown_field")


async def test_case_14_two_patches_with_one_etag(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    await made(client)
    tag = {"If-Match": '"r1"'}
    answers = await asyncio.gather(
        *(client.patch("/schedules/nightly", json={"jitter": n}, headers=tag) for n in (5, 6))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 412]
    refused = next(answer for answer in answers if answer.status_code == 412)
    assert (code(refused), refused.headers["etag"]) == ("precondition_failed", '"r2"')
    assert (await client.patch("/schedules/nightly", json={"jitter": 7})).status_code == 200
    assert (await client.patch("/schedules/nightly", json={"jitter": 8}, headers={"If-Match": "*"})).status_code == 200
    weak = await client.patch("/schedules/nightly", json={"jitter": 9}, headers={"If-Match": 'W/"r4"'})
    assert weak.status_code == 412
    bad = await client.patch("/schedules/nightly", json={"jitter": 9}, headers={"If-Match": "r4"})
    assert (bad.status_code, code(bad)) == (400, "bad_header")
    assert (await client.delete("/schedules/nightly", headers=tag)).status_code == 412
    assert (await client.delete("/schedules/nightly", headers={"If-Match": '"r3", "r4"'})).status_code == 204


async def test_a_known_revision_is_not_sent_again(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    await made(client)
    same = await client.get("/schedules/nightly", headers={"If-None-Match": '"r1"'})
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", '"r1"')
    await client.post("/schedules/nightly/pause")
    assert (await client.get("/schedules/nightly", headers={"If-None-Match": '"r1"'})).status_code == 200


async def test_pause_and_resume_are_idempotent_and_count_as_revisions(
    server: Server, client: httpx.AsyncClient
) -> None:
    job(server)
    await made(client)
    seen = []
    for action in ("pause", "pause", "resume", "resume"):
        answer = await client.post(f"/schedules/nightly/{action}", json={"note": "why"} if action == "pause" else None)
        body = answer.json()
        seen.append((answer.status_code, body["changed"], body["paused"] is not None, answer.headers["etag"]))
    assert seen == [
        (200, True, True, '"r2"'),
        (200, False, True, '"r2"'),
        (200, True, False, '"r3"'),
        (200, False, False, '"r3"'),
    ]
    paused = (await client.post("/schedules/nightly/pause", json={"note": "disk"})).json()
    assert (paused["paused"]["note"], paused["paused"]["by"], paused["nextAt"]) == ("disk", "local", None)


async def test_trigger_starts_an_execution_as_a_tick_would(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    await made(client, arguments={"month": "May"}, queue="slow")
    await client.post("/schedules/nightly/pause")
    answer = await client.post("/schedules/nightly/trigger", headers={"Idempotency-Key": "k1"})
    body = answer.json()
    assert (answer.status_code, body["status"], body["job"], body["queue"]) == (201, "queued", "report", "slow")
    assert answer.headers["location"] == f"/api/v1/executions/{body['executionId']}"
    again = await client.post("/schedules/nightly/trigger", headers={"Idempotency-Key": "k1"})
    assert again.json()["executionId"] == body["executionId"]
    assert (await client.get("/queues/slow")).json()["queued"] == 1


async def test_a_token_for_other_queues_may_not_trigger(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    await made(client)
    limited = server.token(Role.OPERATOR, queues=("mail",))
    async with server.client(limited) as other:
        refused = await other.post("/schedules/nightly/trigger")
        assert (refused.status_code, code(refused)) == (403, "wrong_scope")


async def test_a_dry_run_shows_the_next_ten_ticks_and_makes_nothing(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    wanted = {**NIGHTLY, "cron": "0 2 * * *", "exclude": ["2030-01-03"], "start": "2030-01-01T00:00:00Z"}
    answer = await client.post("/schedules?dryRun=true", json=wanted)
    body = answer.json()
    assert (answer.status_code, body["dryRun"]) == (200, True)
    ticks = body["would"]["nextTicks"]
    assert ticks[:3] == ["2030-01-01T01:00:00Z", "2030-01-02T01:00:00Z", "2030-01-04T01:00:00Z"]
    assert len(ticks) == 10
    assert body["would"]["lane"] == {"app": "shop", "job": "report", "queue": "default"}
    assert body["would"]["workers"] == []
    assert "no live worker" in body["would"]["reason"]
    assert (await client.get("/schedules")).json()["items"] == []
    id = worker(server, "report")
    worker(server, "report", queues=["mail"])
    worker(server, "other")
    again = (await client.post("/schedules?dryRun=true", json=NIGHTLY)).json()["would"]
    assert (again["workers"], again["reason"]) == ([str(id)], None)
    refused = await client.post("/schedules?dryRun=true", json={**NIGHTLY, "cron": "x"})
    assert refused.status_code == 422
    await made(client)
    for request in (
        client.patch("/schedules/nightly?dryRun=true", json={"cron": "0 5 * * *"}),
        client.post("/schedules/nightly/pause?dryRun=true"),
        client.post("/schedules/nightly/trigger?dryRun=true"),
        client.delete("/schedules/nightly?dryRun=true"),
    ):
        answer = await request
        assert (answer.status_code, answer.json()["dryRun"]) == (200, True), answer.text
    kept = await client.get("/schedules/nightly")
    assert (kept.headers["etag"], kept.json()["cron"], kept.json()["paused"]) == ('"r1"', "0 3 * * *", None)


async def test_warnings_about_changed_clocks_and_herds(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    body = await made(client, cron="30 2 * * *")
    assert {one["code"] for one in body["warnings"]} == {"dst_gap", "dst_repeat"}
    for number in range(9):
        assert (await made(client, name=f"n{number}", cron="0 12 * * *", tz="UTC"))["warnings"] == []
    last = await made(client, name="n9", cron="0 12 * * *", tz="UTC")
    assert [one["code"] for one in last["warnings"]] == ["herd"]
    assert "10 schedules at 12:00 UTC" in str(last)
    spread = await made(client, name="n10", cron="0 12 * * *", tz="UTC", jitter=60)
    assert spread["warnings"] == []


async def test_schedules_of_code_are_changed_in_code(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    coded_schedule(server)
    for answer in (
        await client.patch("/schedules/coded", json={"cron": "0 4 * * *"}),
        await client.delete("/schedules/coded"),
    ):
        assert (answer.status_code, code(answer)) == (409, "defined_in_code")
    assert (await client.post("/schedules/coded/pause")).json()["changed"]
    taken = await client.post("/schedules", json={**NIGHTLY, "name": "coded"})
    assert (taken.status_code, code(taken)) == (409, "name_taken")
    id = (await client.get("/schedules/coded")).json()["scheduleId"]
    assert taken.json()["existing"] == {"scheduleId": id, "app": "shop"}


async def test_the_schedule_of_a_job_as_data_is_changed_with_the_job(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    spec = check(Spec(job="report", trigger=Cron("0 3 * * *")))
    server.store.transact(ops.put, "default", "shop", "of-job", spec, "test", origin=API)
    assert (await client.get("/schedules?origin=api")).json()["items"][0]["name"] == "of-job"
    for answer in (
        await client.patch("/schedules/of-job", json={"cron": "0 4 * * *"}),
        await client.delete("/schedules/of-job"),
    ):
        assert (answer.status_code, code(answer)) == (409, "conflict")
    assert (await client.post("/schedules/of-job/pause")).json()["changed"]


async def test_a_name_that_several_apps_have(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    job(server, app="mail")
    ambiguous = await client.post("/schedules", json=NIGHTLY)
    assert (ambiguous.status_code, code(ambiguous)) == (409, "ambiguous_name")
    ids = {app: (await made(client, app=app))["scheduleId"] for app in ("mail", "shop")}
    for request in (
        client.get("/schedules/nightly"),
        client.patch("/schedules/nightly", json={"jitter": 1}),
        client.post("/schedules/nightly/trigger"),
        client.delete("/schedules/nightly"),
        client.get("/schedules/nightly/ticks"),
    ):
        answer = await request
        assert (answer.status_code, code(answer)) == (409, "ambiguous_name")
    known = {one["app"]: one["id"] for one in (await client.get("/schedules/nightly")).json()["existing"]}
    assert known == ids
    chosen = await client.get("/schedules/nightly?app=mail")
    assert chosen.json()["scheduleId"] == ids["mail"]
    assert (await client.get("/schedules/nightly?app=gone")).status_code == 404
    assert (await client.delete(f"/schedules/{ids['mail']}")).status_code == 204
    assert (await client.get("/schedules/nightly")).json()["app"] == "shop"


async def test_ten_at_once_make_one_schedule(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    answers = await asyncio.gather(*(client.post("/schedules", json=NIGHTLY) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 9


async def test_lists_have_pages_in_both_directions_and_filters(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    job(server, "other")
    for name in ("b", "A", "a", "c", "_d"):
        await made(client, name=name, job="other" if name == "c" else "report")
    await client.post("/schedules/b/pause")
    assert await names(client, "limit=2") == ["A", "_d", "a", "b", "c"]
    assert await names(client, "limit=2&order=desc") == ["c", "b", "a", "_d", "A"]
    for query, wanted in {
        "name=a": ["a"],
        "job=other": ["c"],
        "state=paused": ["b"],
        "state=active&limit=1": ["A", "_d", "a", "c"],
        "app=shop&origin=run_time": ["A", "_d", "a", "b", "c"],
        "app=gone": [],
        "origin=code": [],
    }.items():
        assert await names(client, query) == wanted, query
    page = (await client.get("/schedules?limit=2")).json()
    after = (await client.get(f"/schedules?limit=2&cursor={page['nextCursor']}")).json()
    back = (await client.get(f"/schedules?limit=2&cursor={after['previousCursor']}")).json()
    assert back["items"] == page["items"]
    assert back["previousCursor"] is None
    only = (await client.get("/schedules?limit=1&fields=name,nextAt")).json()["items"]
    assert only[0].keys() == {"name", "nextAt"}
    for query in ("state=off", "order=name", "nam=a", "fields=password", f"cursor={page['nextCursor']}&name=a"):
        assert (await client.get(f"/schedules?{query}")).status_code == 400


async def names(client: httpx.AsyncClient, query: str) -> list[str]:
    """All names of a list, page by page."""
    found: list[str] = []
    cursor = ""
    while True:
        page = (await client.get(f"/schedules?{query}{cursor}")).json()
        found += [one["name"] for one in page["items"]]
        if page["nextCursor"] is None:
            return found
        cursor = f"&cursor={page['nextCursor']}"


async def test_case_11_a_filter_that_matches_nothing_comes_to_an_end(
    server: Server, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    job(server)
    for number in range(7):
        await made(client, name=f"s{number}")
    monkeypatch.setattr("rota.api.resources.schedules.CHUNK", 2)
    monkeypatch.setattr("rota.api.resources.schedules.MOST_LOOKED_AT", 4)
    first = (await client.get("/schedules?name=x&limit=1")).json()
    assert first["items"] == []
    assert first["nextCursor"] is not None
    second = (await client.get(f"/schedules?name=x&limit=1&cursor={first['nextCursor']}")).json()
    assert (second["items"], second["nextCursor"]) == ([], None)
    assert await names(client, "name=s6&limit=1") == ["s6"]


async def test_case_28_schedules_of_another_tenant_are_not_there(server: Server, client: httpx.AsyncClient) -> None:
    job(server)
    job(server, "theirs", namespace="b")
    ours = (await made(client))["scheduleId"]
    a, b = server.token(namespaces=("default",)), server.token(namespaces=("b",))
    async with server.client(b) as stranger, server.client(a) as owner:
        assert (await stranger.get("/schedules")).json()["items"] == []
        for thing in (ours, "nightly"):
            for method, path in (
                ("GET", ""),
                ("PATCH", ""),
                ("DELETE", ""),
                ("POST", "/pause"),
                ("POST", "/resume"),
                ("POST", "/trigger"),
                ("GET", "/ticks"),
            ):
                body = {"jitter": 1} if method == "PATCH" else None
                answer = await stranger.request(method, f"/schedules/{thing}{path}", json=body)
                assert (answer.status_code, code(answer)) == (404, "not_found"), (method, path)
        foreign = await stranger.post("/schedules", json=NIGHTLY)
        assert (foreign.status_code, code(foreign)) == (422, "unknown_job")
        mine = await stranger.post("/schedules", json={**NIGHTLY, "job": "theirs"})
        assert mine.status_code == 201
        assert len((await owner.get("/schedules")).json()["items"]) == 1


async def test_ids_that_no_schedule_has(client: httpx.AsyncClient) -> None:
    for id in ("0", "007", "999999999999999999", "9" * 40, "1e3", "-1", "1.0"):
        answer = await client.get(f"/schedules/{id}")
        assert (answer.status_code, code(answer)) == (404, "not_found")
