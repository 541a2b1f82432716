"""Templates: a parameter becomes a value, never a part of a text."""

from __future__ import annotations

from typing import Any

import httpx

from rota.store import definition_reader
from tests.api.server import Server, code

BACKUP: dict[str, Any] = {
    "name": "backup",
    "parameters": {
        "host": {"type": "string", "maxLength": 100},
        "level": {"type": "integer", "default": 1, "minimum": 0, "maximum": 9},
        "zone": {"type": "string", "choices": ["eu", "us"], "default": "eu"},
    },
    "job": {
        "command": ["backup", {"$parameter": "host"}, "--level", {"$parameter": "level"}],
        "environment": {"ZONE": {"$parameter": "zone"}},
        "schedule": "0 3 * * *",
        "retries": 2,
    },
}


async def test_a_job_is_made_of_a_template(client: httpx.AsyncClient, server: Server) -> None:
    made = await client.post("/templates", json=BACKUP)
    assert (made.status_code, made.headers["location"]) == (201, "/api/v1/templates/backup")
    nasty = "; rm -rf / $(id) {month}"
    job = await client.post(
        "/jobs", json={"name": "b", "template": "backup", "parameters": {"host": nasty}, "retries": 0}
    )
    assert job.status_code == 201, job.text
    assert job.json()["template"] == {"name": "backup", "version": 1}
    assert (job.json()["retries"], job.json()["status"]) == (0, "scheduled")
    row = server.store.read(definition_reader.find, "default", "b")
    assert row is not None
    assert row.about.target["argv"] == ["backup", nasty.replace("{", "{{").replace("}", "}}"), "--level", "1"]
    assert row.about.parameters == {}
    await client.patch("/templates/backup", json={"description": "new"})
    assert (await client.get("/jobs/b")).json()["template"]["version"] == 1
    assert (await client.patch("/jobs/b", json={"timeout": 5})).json()["template"] == {"name": "backup", "version": 1}


async def test_values_that_do_not_fit(client: httpx.AsyncClient) -> None:
    await client.post("/templates", json=BACKUP)
    for parameters, where in (
        ({}, "/parameters/host"),
        ({"host": 3}, "/parameters/host"),
        ({"host": "a", "level": 10}, "/parameters/level"),
        ({"host": "a", "zone": "asia"}, "/parameters/zone"),
        ({"host": "a", "other": 1}, "/parameters/other"),
    ):
        answer = await client.post("/jobs", json={"name": "b", "template": "backup", "parameters": parameters})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, where)
    unknown = await client.post("/jobs", json={"name": "b", "template": "nothing"})
    assert unknown.json()["errors"][0]["pointer"] == "/template"
    both = await client.post("/jobs", json={"name": "b", "template": "backup", "command": ["a"]})
    assert both.json()["errors"][0]["pointer"] == "/command"


async def test_templates_that_are_refused(client: httpx.AsyncClient) -> None:
    changes: list[dict[str, Any]] = [
        {"job": {"command": [{"$parameter": "host"}]}},
        {"job": {"command": ["backup"]}},
        {"job": {}},
        {"parameters": {"host": {"type": "string"}}},
        {"parameters": {**BACKUP["parameters"], "level": {"type": "integer", "default": "x"}}},
        {"parameters": {**BACKUP["parameters"], "level": {"type": "text"}}},
        {"job": {**BACKUP["job"], "jobId": "x"}},
        {"name": "a/b"},
    ]
    for change in changes:
        answer = await client.post("/templates", json={**BACKUP, **change})
        assert answer.status_code == 422, (change, answer.text)


async def test_templates_are_listed_changed_and_deleted(client: httpx.AsyncClient) -> None:
    for name in ("c", "a", "b"):
        assert (await client.put(f"/templates/{name}", json={**BACKUP, "name": name})).status_code == 201
    page = (await client.get("/templates?limit=2")).json()
    assert [one["name"] for one in page["items"]] == ["a", "b"]
    rest = (await client.get("/templates", params={"limit": 2, "cursor": page["nextCursor"]})).json()
    assert ([one["name"] for one in rest["items"]], rest["nextCursor"]) == (["c"], None)
    assert code(await client.post("/templates", json={**BACKUP, "name": "a"})) == "name_taken"
    same = await client.put("/templates/a", json={**BACKUP, "name": "a"})
    assert (same.status_code, same.headers["etag"]) == (200, '"r1"')
    changed = await client.patch("/templates/a", json={"description": "x"}, headers={"If-Match": '"r1"'})
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    stale = await client.patch("/templates/a", json={"description": "y"}, headers={"If-Match": '"r1"'})
    assert (stale.status_code, code(stale)) == (412, "precondition_failed")
    assert (await client.get("/templates/a", headers={"If-None-Match": '"r2"'})).status_code == 304
    assert (await client.delete("/templates/a?dryRun=true")).status_code == 200
    assert (await client.delete("/templates/a")).status_code == 204
    assert (await client.get("/templates/a")).status_code == 404
    async with httpx.AsyncClient(transport=client._transport, base_url=client.base_url) as other:
        other.headers["Rota-Namespace"] = "elsewhere"
        assert (await other.get("/templates/b")).status_code == 404
        assert (await other.get("/templates")).json()["items"] == []
