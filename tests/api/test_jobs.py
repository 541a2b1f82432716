"""Jobs over HTTP: created, listed, changed, paused, triggered, deleted."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from rota import App
from rota.domain.access import Role
from rota.domain.status import Status
from rota.ops import deploy as deploys
from rota.ops.fleet import Newcomer, join
from rota.sdk.app import registry_of
from rota.store.definition_reader import RecentExecution
from rota.views.job_detail import job_status
from tests.api.server import Server, code
from tests.support.world import World

REPORT = {
    "name": "daily-report",
    "schedule": "0 0 * * *",
    "command": "python generate_report.py",
    "dependencies": ["job1", "job2"],
    "retries": 3,
    "timeout": 3600,
}


async def make(client: httpx.AsyncClient, name: str, **about: Any) -> dict[str, Any]:
    given = {"command": ["true"], **about} if "http" not in about else about
    answer = await client.post("/jobs", json={"name": name, **given})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_the_three_calls_have_the_given_members_first(client: httpx.AsyncClient) -> None:
    refused = await client.post("/jobs", json=REPORT)
    assert (refused.status_code, code(refused)) == (422, "unknown_job")
    assert refused.json()["errors"][0]["pointer"] == "/dependencies/0"
    assert "job1" in refused.json()["detail"]
    upstream = [(await make(client, name))["jobId"] for name in ("job1", "job2")]
    made = await client.post("/jobs", json=REPORT)
    job = made.json()
    assert made.status_code == 201
    assert list(job)[:4] == ["jobId", "status", "startedAt", "progress"]
    assert (job["status"], job["startedAt"], job["progress"]) == ("scheduled", None, None)
    assert (job["dependencies"], job["retries"], job["timeout"]) == (upstream, 3, 3600)
    assert made.headers["location"] == f"/api/v1/jobs/{job['jobId']}"
    assert made.headers["etag"] == '"r1"'
    triggered = await client.post(f"/jobs/{job['jobId']}/trigger")
    assert triggered.status_code == 201
    assert list(triggered.json())[:2] == ["executionId", "status"]
    assert triggered.json()["status"] == "queued"
    seen = (await client.get(f"/jobs/{job['jobId']}")).json()
    assert (seen["status"], seen["lastExecution"]["executionId"]) == ("queued", triggered.json()["executionId"])


async def test_case_5_names_on_every_path(client: httpx.AsyncClient) -> None:
    for name in ("health", "versions", "trigger", "a.b:c-d"):
        made = await make(client, name)
        assert (await client.get(f"/jobs/{name}")).json()["jobId"] == made["jobId"]
        assert (await client.post(f"/jobs/{name}/trigger")).status_code == 201
        assert (await client.get(f"/jobs/{name}/versions")).json()["items"][0]["version"] == 1
        assert (await client.get(f"/jobs/{name}/versions/1")).status_code == 200
        assert (await client.delete(f"/jobs/{name}")).status_code == 204
    for name in ("a1b2c3d4-0000-7000-8000-000000000000", "..", "a/b", "a" * 129, "", "1a"):
        answer = await client.post("/jobs", json={"name": name, "command": ["true"]})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/name")


async def test_a_taken_name_says_whose_it_is(client: httpx.AsyncClient) -> None:
    made = await make(client, "one")
    again = await client.post("/jobs", json={"name": "one", "command": ["true"]})
    assert (again.status_code, code(again)) == (409, "name_taken")
    assert again.json()["existing"] == {"jobId": made["jobId"]}


async def test_lists_are_by_name_with_filters_and_cursors(client: httpx.AsyncClient) -> None:
    for number in range(5):
        await make(client, f"job-{number}", tags=["night", f"n{number}"], queue="slow" if number % 2 else "fast")
    await make(client, "other")
    await client.post("/jobs/job-1/pause")
    seen, cursor = [], None
    while True:
        page = (await client.get("/jobs", params={"limit": 2, **({"cursor": cursor} if cursor else {})})).json()
        seen += [job["name"] for job in page["items"]]
        if (cursor := page["nextCursor"]) is None:
            break
    assert seen == [*(f"job-{number}" for number in range(5)), "other"]

    async def names(**filters: Any) -> list[str]:
        items = (await client.get("/jobs", params=filters)).json()["items"]
        return [job["name"] for job in items]

    assert await names(name="job-", queue="slow") == ["job-1", "job-3"]
    assert await names(tag=["night", "n2"]) == ["job-2"]
    assert await names(state="paused") == ["job-1"]
    assert await names(app="nowhere") == []
    assert await names(order="desc", limit=2) == ["other", "job-4"]
    assert (await client.get("/jobs?fields=name,jobId&limit=1")).json()["items"][0].keys() == {"name", "jobId"}
    assert (await client.get("/jobs?fields=password")).status_code == 400


async def test_case_14_two_patches_with_one_tag(client: httpx.AsyncClient) -> None:
    made = await make(client, "one")
    patches = [
        client.patch("/jobs/one", json={"timeout": number}, headers={"If-Match": '"r1"'}) for number in (60, 120)
    ]
    answers = await asyncio.gather(*patches)
    assert sorted(answer.status_code for answer in answers) == [200, 412]
    refused = next(answer for answer in answers if answer.status_code == 412)
    assert (code(refused), refused.headers["etag"]) == ("precondition_failed", '"r2"')
    assert (await client.patch("/jobs/one", json={"timeout": 5})).status_code == 200
    created_only = {"If-None-Match": "*"}
    again = await client.put("/jobs/one", json={"command": ["true"]}, headers=created_only)
    assert (again.status_code, code(again)) == (412, "precondition_failed")
    assert (await client.put("/jobs/two", json={"command": ["true"]}, headers=created_only)).status_code == 201
    unchanged = await client.get(f"/jobs/{made['jobId']}", headers={"If-None-Match": '"r3"'})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert (await client.delete("/jobs/one", headers={"If-Match": '"r1"'})).status_code == 412


async def test_pauses_change_the_tag_but_not_the_version(client: httpx.AsyncClient) -> None:
    made = await make(client, "one")
    paused = await client.post("/jobs/one/pause", json={"note": "later"})
    assert (paused.json()["changed"], paused.headers["etag"]) == (True, '"r2"')
    assert (paused.json()["status"], paused.json()["paused"]["note"]) == ("paused", "later")
    assert (await client.post("/jobs/one/pause")).json()["changed"] is False
    waiting = await client.post("/jobs/one/trigger")
    assert waiting.status_code == 201
    resumed = (await client.post("/jobs/one/resume")).json()
    assert (resumed["changed"], resumed["state"], resumed["version"]) == (True, "active", made["version"])


async def test_case_15_the_same_put_by_ten_at_once(client: httpx.AsyncClient) -> None:
    body = {"command": ["true"], "schedule": "0 3 * * *", "retries": 1}
    answers = await asyncio.gather(*(client.put("/jobs/one", json=body) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] * 9 + [201]
    assert len({answer.json()["jobId"] for answer in answers}) == 1
    assert len((await client.get("/jobs/one/versions")).json()["items"]) == 1
    definition = (await client.get("/jobs/one")).json()["definition"]
    again = await client.put("/jobs/one", json=definition)
    assert (again.status_code, again.headers["etag"], again.json()["version"]) == (200, '"r1"', 1)


async def test_versions_differ_and_roll_back(client: httpx.AsyncClient) -> None:
    await make(client, "one", timeout=60, schedule="0 3 * * *")
    changed = (await client.patch("/jobs/one", json={"timeout": 90, "schedule": None})).json()
    assert (changed["version"], changed["timeout"], changed["schedules"]) == (2, 90, [])
    found = (await client.get("/jobs/one/versions/2?diff=1")).json()
    assert {"path": "/timeout", "before": 60, "after": 90} in found
    assert {"path": "/schedule", "before": "0 3 * * *", "after": None} in found
    back = await client.post("/jobs/one/rollback", json={"version": 1})
    assert (back.status_code, back.json()["version"], back.json()["timeout"]) == (200, 1, 60)
    assert back.json()["schedules"][0]["nextAt"] == back.json()["nextAt"] is not None
    assert (await client.post("/jobs/one/rollback", json={"version": 7})).status_code == 422
    assert (await client.get("/jobs/one/versions/7")).status_code == 404


async def test_case_42_a_deleted_job(client: httpx.AsyncClient, server: Server) -> None:
    old = await make(client, "one", schedule="0 3 * * *")
    await make(client, "two", dependencies=["one"])
    accepted = (await client.post("/jobs/one/trigger")).json()
    refused = await client.delete("/jobs/one")
    assert (refused.status_code, code(refused)) == (409, "has_dependents")
    assert "two" in refused.json()["detail"]
    assert (await client.delete("/jobs/two")).status_code == 204
    assert (await client.delete("/jobs/one")).status_code == 204
    assert (await client.get("/jobs/one")).status_code == 404
    gone = (await client.get(f"/jobs/{old['jobId']}")).json()
    assert (gone["state"], gone["status"], gone["nextAt"]) == ("deleted", "queued", None)
    again = await client.post(f"/jobs/{old['jobId']}/trigger")
    assert (again.status_code, code(again)) == (409, "deleted")
    assert [job["jobId"] for job in (await client.get("/jobs?state=deleted&name=one")).json()["items"]] == [
        old["jobId"]
    ]
    new = await make(client, "one", schedule="0 3 * * *")
    assert new["jobId"] != old["jobId"]
    assert (new["version"], new["lastExecution"], new["status"]) == (1, None, "scheduled")
    later = (await client.post("/jobs/one/trigger")).json()
    assert (accepted["jobId"], later["jobId"]) == (old["jobId"], new["jobId"])
    assert (accepted["version"], later["version"]) == (1, 1)
    gone = (await client.get(f"/jobs/{old['jobId']}")).json()
    assert gone["lastExecution"]["executionId"] == accepted["executionId"]


async def test_an_execution_is_of_the_same_job_and_version_in_every_answer(client: httpx.AsyncClient) -> None:
    """Also if its job was deleted, and another one has the name now."""
    made = []
    for timeout in (60, 90):
        await make(client, "one")
        await client.patch("/jobs/one", json={"timeout": timeout})
        made.append((await client.post("/jobs/one/trigger", json={"key": str(timeout)})).json())
        await client.delete("/jobs/one")
    job = (await make(client, "one"))["jobId"]
    made.append((await client.post("/jobs/one/trigger")).json())
    assert [one["version"] for one in made] == [2, 2, 1]
    assert (len({one["jobId"] for one in made}), made[-1]["jobId"]) == (3, job)
    listed = (await client.get("/executions?order=asc&fields=executionId,jobId,version,status,reason")).json()["items"]
    assert listed == [{name: one[name] for name in listed[0]} for one in made]
    for one in made:
        found = (await client.get(f"/executions/{one['executionId']}")).json()
        assert (found["jobId"], found["version"]) == (one["jobId"], one["version"])


async def test_a_deletion_can_cancel_what_is_pending(client: httpx.AsyncClient) -> None:
    made = await make(client, "one")
    await client.post("/jobs/one/trigger")
    would = await client.delete("/jobs/one?pending=cancel&dryRun=true")
    assert would.json() == {"dryRun": True, "would": {"cancel": 1}}
    assert (await client.delete("/jobs/one?pending=cancel")).status_code == 204
    gone = (await client.get(f"/jobs/{made['jobId']}")).json()
    assert gone["lastExecution"]["status"] == "cancelled"


async def test_jobs_of_code_are_changed_in_code(client: httpx.AsyncClient, server: Server) -> None:
    app = App("shop", url=server.settings.url)

    @app.job
    def send(to: str, count: int = 1) -> None: ...

    registry_of(app).connection.store()
    app.declare()
    app.close()
    shown = (await client.get("/jobs/send")).json()
    assert (shown["origin"], shown["function"]) == ("code", {"app": "shop", "name": "send"})
    assert (list(shown["parameters"]["properties"]), shown["parameters"]["required"]) == (["to", "count"], ["to"])
    for refused in (
        await client.put("/jobs/send?app=shop", json={"command": ["true"]}),
        await client.patch("/jobs/send", json={"timeout": 5}),
        await client.delete("/jobs/send"),
    ):
        assert (refused.status_code, code(refused)) == (409, "defined_in_code")
    bad = await client.post("/jobs/send/trigger", json={"arguments": {"too": "x"}})
    assert (bad.status_code, code(bad)) == (422, "bad_arguments")
    good = await client.post("/jobs/send/trigger", json={"arguments": {"to": "a@b.c"}, "delay": "1h"})
    assert (good.status_code, good.json()["status"]) == (201, "scheduled")


async def test_a_job_of_code_shows_how_its_command_and_its_process_were_declared(
    client: httpx.AsyncClient, server: Server
) -> None:
    app = App("shop", url=server.settings.url)
    rules: dict[str, Any] = {"success": [0, 3], "permanent": [4], "result": "text"}
    app.command("report", ["make-report"], memory="512MB", grace="5s", **rules)
    app.job(name="resize", isolation="process")(lambda: None)
    app.job(name="send")(lambda: None)
    registry_of(app).connection.store()
    app.declare()
    app.close()
    report = (await client.get("/jobs/report")).json()
    assert (report["successCodes"], report["permanentCodes"], report["result"]) == ([0, 3], [4], "text")
    assert (report["memory"], report["grace"]) == (512 * 2**20, 5)
    jobs = {job["name"]: job for job in (await client.get("/jobs")).json()["items"]}
    assert {name: jobs[name]["isolation"] for name in jobs} == {"report": None, "resize": "process", "send": None}


async def test_neither_code_nor_the_api_undoes_the_other(client: httpx.AsyncClient, server: Server) -> None:
    await make(client, "up", app="shop")
    await make(client, "mine", app="shop", dependencies=["up"], schedule="0 3 * * *", on="order.paid")

    def deploy(name: str) -> None:
        app = App("shop", url=server.settings.url)
        app.job(name=name, cron="0 4 * * *")(lambda: None)
        registry_of(app).connection.store()
        app.declare()
        app.close()

    deploy("theirs")
    worker = Newcomer(
        namespace="default",
        app="shop",
        deploy=1,
        name="w",
        host="h",
        pid=1,
        version="1",
        queues=None,
        jobs=["theirs"],
        concurrency=1,
    )
    server.store.transact(join, worker, 10.0)
    server.store.transact(deploys.settle, "default", "shop", 10.0)
    mine = (await client.get("/jobs/mine")).json()
    assert (len(mine["schedules"]), mine["origin"], mine["status"]) == (1, "api", "scheduled")
    refused = await client.delete("/jobs/up")
    assert code(refused) == "has_dependents"
    with pytest.raises(Exception, match="defined with the HTTP API"):
        deploy("mine")
    taken = await client.post("/jobs", json={"name": "theirs", "app": "shop", "command": ["true"]})
    assert code(taken) == "name_taken"


async def test_a_name_in_several_apps_is_ambiguous(client: httpx.AsyncClient) -> None:
    first, second = await make(client, "one"), await make(client, "one", app="shop")
    answer = await client.get("/jobs/one")
    assert (answer.status_code, code(answer)) == (409, "ambiguous_name")
    assert sorted(answer.json()["existing"]["jobIds"]) == sorted([first["jobId"], second["jobId"]])
    assert (await client.get("/jobs/one?app=shop")).json()["jobId"] == second["jobId"]


async def test_jobs_of_another_namespace_are_not_there(server: Server) -> None:
    async with server.client(**{"Rota-Namespace": "a"}) as ours, server.client(**{"Rota-Namespace": "b"}) as theirs:
        made = await make(ours, "one")
        await make(theirs, "mine")
        for path in (f"/jobs/{made['jobId']}", "/jobs/one", "/jobs/one/versions", "/jobs/one/versions/1"):
            assert (await theirs.get(path)).status_code == 404
        for path in ("trigger", "pause", "resume"):
            assert (await theirs.post(f"/jobs/{made['jobId']}/{path}")).status_code == 404
        assert (await theirs.delete(f"/jobs/{made['jobId']}")).status_code == 404
        refused = await theirs.post("/jobs", json={"name": "two", "command": ["true"], "dependencies": ["one"]})
        assert code(refused) == "unknown_job"
        assert [job["name"] for job in (await theirs.get("/jobs")).json()["items"]] == ["mine"]


async def test_an_action_needs_its_scope(server: Server) -> None:
    admin, viewer, producer = (server.token(role) for role in (Role.ADMIN, Role.VIEWER, Role.PRODUCER))
    async with server.client(admin) as ours:
        await make(ours, "one")
    async with server.client(viewer) as client:
        assert (await client.get("/jobs/one")).status_code == 200
        assert code(await client.post("/jobs/one/trigger")) == "wrong_scope"
    async with server.client(producer) as client:
        assert (await client.post("/jobs/one/trigger")).status_code == 201
        assert code(await client.post("/jobs/one/pause")) == "wrong_scope"
        assert code(await client.get("/jobs")) == "wrong_scope"


async def test_an_idempotency_key_makes_one_job(client: httpx.AsyncClient) -> None:
    body, headers = {"name": "one", "command": ["true"]}, {"Idempotency-Key": "k"}
    answers = [await client.post("/jobs", json=body, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json()["jobId"] == answers[1].json()["jobId"]
    runs = [await client.post("/jobs/one/trigger", headers=headers) for _ in range(2)]
    assert runs[0].json()["executionId"] == runs[1].json()["executionId"]


def test_statuses() -> None:
    """The status of a job by its newest executions."""

    def of(*statuses: str) -> list[RecentExecution]:
        return [RecentExecution(str(at), Status(status), "", None, None) for at, status in enumerate(statuses)]

    assert job_status("paused", of("queued"), has_tick=True)[0] == "paused"
    assert job_status("active", of("queued", "running"), has_tick=True)[0] == "running"
    assert job_status("active", of("success", "retrying"), has_tick=True)[0] == "retrying"
    assert job_status("active", of("failed"), has_tick=True)[0] == "scheduled"
    assert job_status("active", of("failed", "success"), has_tick=False)[0] == "failed"
    assert job_status("active", [], has_tick=False) == ("active", None)


async def test_case_the_last_outcomes_are_listed_on_demand(server: Server, client: httpx.AsyncClient) -> None:
    world = World(server.store)
    world.fail(2)
    (attempt,) = world.start()[1:]
    world.finish(attempt)
    (one,) = (await client.get("/jobs?name=send&fields=name,lastOutcomes")).raise_for_status().json()["items"]
    assert [outcome["status"] for outcome in one["lastOutcomes"]] == ["success", "failed", "failed"]
    assert one["lastOutcomes"][0]["tookS"] >= 0
    (plain,) = (await client.get("/jobs?name=send")).json()["items"]
    assert plain["lastOutcomes"] is None
