"""Workflows over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from rota.domain.access import Role
from rota.domain.job import decode
from rota.ops import define
from rota.sdk.workflow.from_file import definition_from_file
from rota.store import definition_reader
from tests.api.defining import TEXT, job, worker
from tests.api.server import Server, code

ETL: dict[str, Any] = {
    "rota": "workflow/1",
    "name": "etl",
    "description": "Loads a day.",
    "parameters": {"day": {"type": "string"}},
    "required": ["day"],
    "steps": [
        {"id": "extract", "job": "extract", "with": {"day": {"$": "input.day"}}},
        {"id": "load", "job": "load", "with": {"rows": {"$": "extract"}}},
    ],
    "result": {"$": "load"},
}
PAUSE = {"id": "wait", "sleep": 60, "after": ["extract"]}
SLOWER = {**ETL, "steps": [ETL["steps"][0], PAUSE, {**ETL["steps"][1], "after": ["wait"]}]}


def jobs(server: Server, app: str = "shop", namespace: str = "default") -> None:
    """The jobs of the steps."""
    job(server, "extract", app, namespace, parameters={"day": TEXT})
    job(server, "load", app, namespace, parameters={"rows": {"type": "any", "required": True}})


def coded(server: Server, data: dict[str, Any] = ETL) -> None:
    """The workflow as a deploy of code registers it."""
    known = {row.name: decode(row.definition) for row in server.store.read(definition_reader.all_jobs, "default")}
    server.store.transact(define.register, "default", "shop", [definition_from_file(data, known)], [])


async def made(client: httpx.AsyncClient, data: dict[str, Any] = ETL, app: str = "shop") -> dict[str, Any]:
    answer = await client.post(f"/workflows?app={app}", json=data)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_workflow_is_made_read_changed_and_deleted(server: Server, client: httpx.AsyncClient) -> None:
    jobs(server)
    answer = await client.post("/workflows?app=shop", json=ETL)
    body = answer.json()
    id = body["workflowId"]
    assert (answer.status_code, answer.headers["etag"]) == (201, '"r1"')
    assert answer.headers["location"] == f"/api/v1/workflows/{id}"
    assert (body["name"], body["app"], body["origin"], body["state"], body["version"]) == (
        "etl",
        "shop",
        "api",
        "active",
        1,
    )
    assert (body["stepCount"], body["openCount"], body["lastRun"]) == (2, 0, None)
    assert body["definition"] == ETL
    for thing in ("etl", id):
        again = await client.get(f"/workflows/{thing}")
        assert again.json() == body
        assert (await client.get(f"/workflows/{thing}", headers={"If-None-Match": '"r1"'})).status_code == 304
    same = await client.put("/workflows/etl", json=body["definition"])
    assert (same.status_code, same.headers["etag"], same.json()) == (200, '"r1"', body)
    replaced = await client.put("/workflows/etl", json=SLOWER)
    assert (replaced.status_code, replaced.headers["etag"], replaced.json()["version"]) == (200, '"r2"', 2)
    patched = await client.patch("/workflows/etl", json={"description": None, "timeout": 60})
    assert (patched.json()["version"], patched.json()["description"]) == (3, "")
    assert patched.json()["definition"]["timeout"] == 60
    assert patched.json()["definition"]["steps"] == SLOWER["steps"]
    (listed,) = (await client.get("/workflows")).json()["items"]
    assert listed == {name: value for name, value in patched.json().items() if name != "definition"}
    assert (await client.delete("/workflows/etl")).status_code == 204
    assert (await client.get("/workflows/etl")).status_code == 404
    gone = await client.get(f"/workflows/{id}")
    assert (gone.status_code, gone.json()["state"]) == (200, "deleted")
    assert (await client.get("/workflows")).json()["items"] == []
    again = await client.post(f"/workflows/{id}/trigger", json={"arguments": {"day": "1"}})
    assert (again.status_code, code(again)) == (409, "deleted")
    fresh = await made(client)
    assert fresh["workflowId"] != id
    assert fresh["version"] == 1
    trail = (await client.get("/audit?action=job&order=asc")).json()["items"]
    assert [one["action"] for one in trail] == ["job.create", "job.change", "job.change", "job.delete", "job.create"]


async def test_arguments_of_a_trigger_have_the_types_of_the_data_form(
    server: Server, client: httpx.AsyncClient
) -> None:
    jobs(server)
    data = {**ETL, "parameters": {"day": {"type": "string"}, "type": {"type": "array", "items": {"type": "integer"}}}}
    made_id = (await made(client, data))["workflowId"]
    good = {"arguments": {"day": "2030-01-31", "type": [1]}}
    for arguments, pointers in (
        ({"day": 3}, ["/arguments/day"]),
        ({"day": "1", "type": ["x"]}, ["/arguments/type"]),
        ({"day": None, "type": 1, "dya": 1}, ["/arguments/day", "/arguments/type", "/arguments/dya"]),
        ({}, ["/arguments/day"]),
    ):
        for path, more in (("/workflows/etl/trigger", {}), ("/executions", {"job": made_id})):
            answer = await client.post(path, json={"arguments": arguments, **more})
            assert (answer.status_code, code(answer)) == (422, "bad_arguments")
            assert [flaw["pointer"] for flaw in answer.json()["errors"]] == pointers
    assert (await client.post("/workflows/etl/trigger", json=good)).status_code == 201
    assert (await client.post("/executions", json={"job": made_id, **good})).status_code == 201


async def test_wrong_definitions_are_pointed_at(server: Server, client: httpx.AsyncClient) -> None:
    jobs(server)
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"steps": [{"id": "load", "job": "gone"}]}, "bad_workflow", "/steps/0"),
        ({"steps": [{"id": "load", "job": "extract", "wth": {}}]}, "bad_workflow", "/steps/0"),
        ({"steps": [{"id": "load", "job": "extract", "after": ["b"]}]}, "bad_workflow", "/steps/0"),
        ({"stpes": []}, "bad_workflow", ""),
        ({"namespace": "x"}, "bad_workflow", ""),
        ({"fence": 1}, "bad_workflow", ""),
        ({"result": {"$": "gone.x"}}, "bad_workflow", "/result"),
        ({"name": "a/b"}, "bad_field", "/name"),
        ({"name": 5}, "bad_field", "/name"),
        ({"name": "abcdef12-0000-7000-8000-000000000000"}, "bad_field", "/name"),
    ]
    for members, problem, pointer in cases:
        answer = await client.post("/workflows?app=shop", json={**ETL, **members})
        assert (answer.status_code, code(answer)) == (422, problem), (members, answer.text)
        assert answer.json()["errors"][0]["pointer"].startswith(pointer), (members, answer.text)
    nameless = await client.post("/workflows?app=shop", json={"steps": []})
    assert (nameless.status_code, code(nameless)) == (422, "missing_field")
    other = await client.put("/workflows/other?app=shop", json=ETL)
    assert (other.status_code, other.json()["errors"][0]["pointer"]) == (422, "/name")
    assert (await client.post("/workflows?app=shop", json=[ETL])).status_code == 422
    assert (await client.post("/workflows?app=a/b", json=ETL)).status_code == 400
    assert (await client.post("/workflows", json=ETL)).status_code == 422, "the app default has no such jobs"
    assert (await client.get("/workflows")).json()["items"] == []


async def test_trigger_starts_a_run(server: Server, client: httpx.AsyncClient) -> None:
    jobs(server)
    await made(client)
    missing = await client.post("/workflows/etl/trigger")
    assert (missing.status_code, code(missing)) == (422, "bad_arguments")
    body = {"arguments": {"day": "2030-01-31"}, "key": "day-31"}
    answer = await client.post("/workflows/etl/trigger", json=body)
    started = answer.json()
    assert (answer.status_code, started["status"], started["created"]) == (201, "queued", True)
    assert list(started)[:2] == ["runId", "status"]
    assert answer.headers["location"] == f"/api/v1/runs/{started['runId']}"
    again = await client.post("/workflows/etl/trigger", json=body)
    assert (again.status_code, again.json()["runId"], again.json()["created"]) == (200, started["runId"], False)
    other = await client.post("/workflows/etl/trigger", json={**body, "arguments": {"day": "x"}})
    assert (other.status_code, code(other)) == (409, "key_conflict")
    for member in ("namespace", "status", "runId", "actor", "fence"):
        refused = await client.post("/workflows/etl/trigger", json={member: "x"})
        assert (refused.status_code, code(refused)) == (422, "unknown_field")
    later = await client.post("/workflows/etl/trigger", json={"arguments": {"day": "1"}, "delay": "1h"})
    assert later.json()["status"] == "scheduled"
    wrong = await client.post("/workflows/etl/trigger", json={"arguments": {"day": "1"}, "delay": "soon"})
    assert (wrong.status_code, code(wrong)) == (422, "bad_field")
    assert (await client.get("/workflows/etl")).json()["lastRun"]["runId"] == later.json()["runId"]


async def test_pause_and_resume_are_idempotent_and_count_as_revisions(
    server: Server, client: httpx.AsyncClient
) -> None:
    jobs(server)
    await made(client)
    seen = []
    for action in ("pause", "pause", "resume", "resume"):
        answer = await client.post(f"/workflows/etl/{action}", json={"note": "why"} if action == "pause" else None)
        body = answer.json()
        seen.append((body["changed"], body["state"], answer.headers["etag"]))
    assert seen == [
        (True, "paused", '"r2"'),
        (False, "paused", '"r2"'),
        (True, "active", '"r3"'),
        (False, "active", '"r3"'),
    ]
    await client.post("/workflows/etl/pause")
    waiting = await client.post("/workflows/etl/trigger", json={"arguments": {"day": "1"}})
    assert waiting.status_code == 201


async def test_versions_their_differences_and_roll_back(server: Server, client: httpx.AsyncClient) -> None:
    jobs(server)
    await made(client)
    await client.put("/workflows/etl", json=SLOWER)
    found = (await client.get("/workflows/etl/versions")).json()["items"]
    assert [(one["version"], one["isCurrent"]) for one in found] == [(2, True), (1, False)]
    one = await client.get("/workflows/etl/versions/1")
    assert one.json()["definition"] == ETL
    differences = (await client.get("/workflows/etl/versions/2?diff=1")).json()
    assert differences == [
        {"path": "/steps/wait", "before": None, "after": PAUSE},
        {"path": "/steps/load/after", "before": None, "after": ["wait"]},
    ]
    back = (await client.get("/workflows/etl/versions/1?diff=2")).json()
    assert {"path": "/steps/wait", "before": PAUSE, "after": None} in back
    rolled = await client.post("/workflows/etl/rollback", json={"version": 1})
    assert (rolled.status_code, rolled.json()["version"], rolled.json()["definition"]) == (200, 1, ETL)
    assert rolled.headers["etag"] == '"r3"'
    for version in ("3", "0", "x", "1e0", "9" * 20):
        assert (await client.get(f"/workflows/etl/versions/{version}")).status_code == 404
    missing = await client.post("/workflows/etl/rollback", json={"version": 9})
    assert (missing.status_code, code(missing), missing.json()["errors"][0]["pointer"]) == (
        422,
        "bad_field",
        "/version",
    )
    page = (await client.get("/workflows/etl/versions?limit=1&order=asc")).json()
    rest = (await client.get(f"/workflows/etl/versions?limit=1&order=asc&cursor={page['nextCursor']}")).json()
    assert ([one["version"] for one in rest["items"]], rest["nextCursor"]) == ([2], None)


async def test_workflows_of_code_are_changed_in_code(server: Server, client: httpx.AsyncClient) -> None:
    jobs(server)
    coded(server)
    body = (await client.get("/workflows/etl")).json()
    assert (body["origin"], body["definition"]) == ("code", ETL)
    for answer in (
        await client.put("/workflows/etl", json=SLOWER),
        await client.patch("/workflows/etl", json={"timeout": 5}),
        await client.delete("/workflows/etl"),
        await client.post("/workflows/etl/rollback", json={"version": 1}),
    ):
        assert (answer.status_code, code(answer)) == (409, "defined_in_code")
    assert (await client.post("/workflows/etl/pause")).json()["changed"]
    taken = await client.post("/workflows?app=shop", json=ETL)
    assert (taken.status_code, code(taken)) == (409, "name_taken")
    assert taken.json()["existing"] == {"workflowId": body["workflowId"], "app": "shop"}


async def test_jobs_are_no_workflows(server: Server, client: httpx.AsyncClient) -> None:
    jobs(server)
    assert (await client.get("/workflows/extract")).status_code == 404
    assert (await client.post("/workflows/extract/trigger")).status_code == 404
    taken = await client.put("/workflows/extract?app=shop", json={**ETL, "name": "extract"})
    assert taken.status_code == 409


async def test_a_workflow_that_others_run_is_not_deleted(server: Server, client: httpx.AsyncClient) -> None:
    jobs(server)
    await made(client)
    await made(client, {"name": "outer", "steps": [{"id": "inner", "workflow": "etl", "with": {"day": "1"}}]})
    refused = await client.delete("/workflows/etl")
    assert (refused.status_code, code(refused)) == (409, "has_dependents")
    assert "outer" in refused.json()["detail"]
    assert (await client.delete("/workflows/outer")).status_code == 204
    assert (await client.delete("/workflows/etl")).status_code == 204


async def test_case_14_conditions(server: Server, client: httpx.AsyncClient) -> None:
    jobs(server)
    only_new, tag = {"If-None-Match": "*"}, {"If-Match": '"r1"'}
    assert (await client.put("/workflows/etl?app=shop", json=ETL, headers=tag)).status_code == 412
    assert (await client.put("/workflows/etl?app=shop", json=ETL, headers=only_new)).status_code == 201
    refused = await client.put("/workflows/etl?app=shop", json=SLOWER, headers=only_new)
    assert (refused.status_code, code(refused), refused.headers["etag"]) == (412, "precondition_failed", '"r1"')
    answers = await asyncio.gather(
        *(client.patch("/workflows/etl", json={"timeout": n}, headers=tag) for n in (5, 6)),
    )
    assert sorted(answer.status_code for answer in answers) == [200, 412]
    assert (await client.delete("/workflows/etl", headers=tag)).status_code == 412
    assert (await client.patch("/workflows/etl", json={"timeout": 7})).status_code == 200


async def test_case_15_a_put_by_ten_at_once(server: Server, client: httpx.AsyncClient) -> None:
    jobs(server)
    answers = await asyncio.gather(*(client.put("/workflows/etl?app=shop", json=ETL) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] * 9 + [201]
    assert len((await client.get("/workflows/etl/versions")).json()["items"]) == 1


async def test_a_name_that_several_apps_have(server: Server, client: httpx.AsyncClient) -> None:
    ids = {}
    for app in ("shop", "mail"):
        jobs(server, app)
        ids[app] = (await made(client, app=app))["workflowId"]
    for request in (
        client.get("/workflows/etl"),
        client.put("/workflows/etl", json=SLOWER),
        client.patch("/workflows/etl", json={}),
        client.delete("/workflows/etl"),
        client.get("/workflows/etl/versions"),
        client.post("/workflows/etl/trigger"),
    ):
        answer = await request
        assert (answer.status_code, code(answer)) == (409, "ambiguous_name")
        assert {one["id"] for one in answer.json()["existing"]} == set(ids.values())
    assert (await client.get("/workflows/etl?app=mail")).json()["workflowId"] == ids["mail"]
    assert [one["app"] for one in (await client.get("/workflows?name=e")).json()["items"]] == ["mail", "shop"]
    assert [one["app"] for one in (await client.get("/workflows?app=shop&origin=api")).json()["items"]] == ["shop"]


async def test_case_28_workflows_of_another_tenant(server: Server, client: httpx.AsyncClient) -> None:
    jobs(server)
    id = (await made(client))["workflowId"]
    async with server.client(server.token(namespaces=("b",))) as stranger:
        assert (await stranger.get("/workflows")).json()["items"] == []
        for thing in (id, "etl"):
            for method, path in (
                ("GET", ""),
                ("PATCH", ""),
                ("DELETE", ""),
                ("POST", "/trigger"),
                ("POST", "/pause"),
                ("POST", "/resume"),
                ("POST", "/rollback"),
                ("GET", "/versions"),
                ("GET", "/versions/1"),
            ):
                content = {"PATCH": {"timeout": 1}}.get(method, {"version": 1} if path == "/rollback" else None)
                answer = await stranger.request(method, f"/workflows/{thing}{path}", json=content)
                assert (answer.status_code, code(answer)) == (404, "not_found"), (method, path)
        assert (await stranger.put("/workflows/etl?app=shop", json=ETL)).status_code == 422, "its jobs are not there"
        assert (await stranger.put(f"/workflows/{id}?app=shop", json=ETL)).status_code == 404


async def test_a_dry_run_and_a_small_token_change_nothing(server: Server, client: httpx.AsyncClient) -> None:
    jobs(server)
    dry = await client.post("/workflows?app=shop&dryRun=true", json=ETL)
    assert (dry.status_code, dry.json()["would"]["definition"]) == (200, ETL)
    assert dry.json()["would"]["workers"] == []
    id = worker(server, "extract")
    again = (await client.put("/workflows/etl?app=shop&dryRun=true", json=ETL)).json()
    assert again["would"]["workers"] == [str(id)], "every worker of the app opens runs"
    assert (await client.get("/workflows")).json()["items"] == []
    await made(client)
    for request in (
        client.patch("/workflows/etl?dryRun=true", json={"timeout": 5}),
        client.post("/workflows/etl/trigger?dryRun=true", json={"arguments": {"day": "1"}}),
        client.post("/workflows/etl/pause?dryRun=true"),
        client.delete("/workflows/etl?dryRun=true"),
    ):
        answer = await request
        assert (answer.status_code, answer.json()["dryRun"]) == (200, True), answer.text
    kept = await client.get("/workflows/etl")
    assert (kept.headers["etag"], kept.json()["lastRun"]) == ('"r1"', None)
    async with server.client(server.token(Role.OPERATOR)) as operator:
        for refused in (
            await operator.put("/workflows/etl", json=SLOWER),
            await operator.delete("/workflows/etl"),
            await operator.post("/workflows/etl/rollback", json={"version": 1}),
        ):
            assert (refused.status_code, code(refused)) == (403, "wrong_scope")
        assert (await operator.post("/workflows/etl/pause")).status_code == 200
