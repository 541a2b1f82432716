"""Runs over HTTP: lists, one run, its steps, and the actions on it. On both databases."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from rota.ops import define
from rota.sdk.workflow.from_file import definition_from_file
from rota.store import workflow_reader
from rota.views import workflow_detail
from tests.api.server import Server, code
from tests.support.tables import table
from tests.support.world import World
from tests.workflow.stage import Fail, Stage


def ref(path: str) -> dict[str, str]:
    return {"$": path}


CHAIN = (
    {"id": "a", "job": "echo", "with": {"x": 1}},
    {"id": "b", "job": "shaky", "with": {"x": ref("a")}},
    {"id": "c", "job": "echo", "with": {"x": ref("b")}},
)


@pytest.fixture
def stage(server: Server) -> Stage:
    """A workflow of three steps, whose second one fails while the list `failing` is not empty."""
    stage = Stage(World(server.store))
    stage.failing = [True]  # type: ignore[attr-defined]

    def shaky(x: Any) -> Any:
        if stage.failing:  # type: ignore[attr-defined]
            raise Fail("no luck")
        return x

    stage.job("shaky", shaky)
    stage.workflow("chain", *CHAIN, result=ref("c"))
    return stage


async def test_a_run_and_its_steps(stage: Stage, client: httpx.AsyncClient) -> None:
    id = stage.start("chain")
    stage.work()
    found = (await client.get(f"/runs/{id}")).json()
    assert (found["runId"], found["workflow"], found["status"], found["version"]) == (id, "chain", "failed", 1)
    assert (found["stepCount"], found["failedStep"]) == (3, "b")
    assert found["criticalPath"]["steps"] == ["a", "b"]
    assert found["retry"]["again"] == ["b", "c"]
    assert "steps" not in found
    names: list[str] = []
    cursor = ""
    while True:
        page = (await client.get(f"/runs/{id}/steps?limit=2{cursor}")).json()
        names += [step["step"] for step in page["items"]]
        if page["nextCursor"] is None:
            break
        cursor = f"&cursor={page['nextCursor']}"
    assert names == ["a", "b", "c"]
    whole = (await client.get(f"/runs/{id}?steps=true")).json()
    assert ([one["step"] for one in whole.pop("steps")], whole.pop("undos")) == (names, [])
    assert whole == found
    back = (await client.get(f"/runs/{id}/steps?limit=2&cursor={page['previousCursor']}")).json()
    assert [step["step"] for step in back["items"]] == ["a", "b"]
    bad = (await client.get(f"/runs/{id}/steps?status=blocked&fields=step,status")).json()["items"]
    assert bad == [{"step": "c", "status": "blocked"}]


async def test_an_open_run_has_no_reason_in_any_answer(stage: Stage, client: httpx.AsyncClient) -> None:
    stage.workflow("nap", {"id": "wait", "sleep": 60})
    body = {"job": "nap", "key": "today"}
    id = (await client.post("/executions", json=body)).json()["executionId"]
    stage.work()
    (listed,) = (await client.get("/executions?status=running&fields=executionId,reason")).json()["items"]
    assert listed == {"executionId": id, "reason": None}
    assert (await client.get(f"/executions/{id}")).json()["reason"] is None
    again = (await client.post("/executions", json=body)).json()
    assert (again["executionId"], again["status"], again["reason"]) == (id, "running", None)


async def test_versions_count_from_1_for_each_workflow_of_a_name(
    stage: Stage, client: httpx.AsyncClient, server: Server
) -> None:
    """Also in what callers give, after a workflow was deleted and another one has its name."""

    def broken() -> None:
        raise Fail("no luck")

    stage.job("broken", broken)
    data = {"rota": "workflow/1", "name": "again", "steps": [{"id": "a", "job": "broken"}]}
    await client.post("/workflows?app=shop", json=data)
    await client.put("/workflows/again?app=shop", json={**data, "timeout": 60})

    async def run() -> str:
        id: str = (await client.post("/workflows/again/trigger")).json()["runId"]
        stage.work()
        return id

    old = await run()
    assert (await client.delete("/workflows/again")).status_code == 204
    assert (await client.post("/workflows?app=shop", json=data)).json()["version"] == 1
    new = await run()
    listed = (await client.get("/runs?workflow=again&fields=runId,version")).json()["items"]
    assert listed == [{"runId": new, "version": 1}, {"runId": old, "version": 2}]
    for id, version in ((old, 2), (new, 1)):
        assert (await client.get(f"/runs/{id}")).json()["version"] == version
        refused = await client.post(f"/runs/{id}/retry", json={"version": 3})
        assert f"a retry is of version {version}" in refused.json()["detail"]
    again = await client.post(f"/runs/{new}/retry", json={"version": 1})
    assert again.status_code == 201, again.text
    _, first = server.store.read(workflow_detail.chosen, "default", "again", None, 1)
    assert first.number == 3
    await client.delete("/workflows/again")
    definition = definition_from_file(data, server.store.read(workflow_reader.definitions, "default", "shop"))
    assert server.store.transact(define.apply, "default", "shop", definition, "cli:ann") == 1


async def test_runs_are_listed_page_by_page_in_both_directions(stage: Stage, client: httpx.AsyncClient) -> None:
    ids = [stage.start("chain") for _ in range(5)]
    stage.work()
    stage.start("chain")
    first = (await client.get("/runs?status=failed&limit=2")).json()
    assert [one["runId"] for one in first["items"]] == ids[:2:-1]
    second = (await client.get(f"/runs?status=failed&limit=2&cursor={first['nextCursor']}")).json()
    assert [one["runId"] for one in second["items"]] == ids[2:0:-1]
    back = (await client.get(f"/runs?status=failed&limit=2&cursor={second['previousCursor']}")).json()
    assert [one["runId"] for one in back["items"]] == ids[:2:-1]
    rising = (await client.get("/runs?status=failed&order=asc&limit=10&fields=runId")).json()
    assert rising == {"items": [{"runId": id} for id in ids], "nextCursor": None, "previousCursor": None}
    assert len((await client.get("/runs")).json()["items"]) == 6
    assert (await client.get("/runs?createdTo=1h")).json()["items"] == []
    assert len((await client.get("/runs?workflow=chain&createdFrom=1h&app=shop")).json()["items"]) == 6
    assert len((await client.get("/runs?status=queued")).json()["items"]) == 1


@pytest.mark.parametrize(
    "query", ["status=broken", "parent=x", "staus=failed", "limit=0", "cursor=x", "fields=secret", "order=name"]
)
async def test_bad_parameters_are_refused(client: httpx.AsyncClient, query: str) -> None:
    answer = await client.get(f"/runs?{query}")
    assert answer.status_code == 400
    assert code(answer) in ("bad_parameter", "unknown_parameter", "bad_cursor")


async def test_a_retry_keeps_what_succeeded(stage: Stage, client: httpx.AsyncClient) -> None:
    id = stage.start("chain")
    stage.work()
    stage.failing.clear()  # type: ignore[attr-defined]
    key = {"Idempotency-Key": "once"}
    answer = await client.post(f"/runs/{id}/retry", headers=key)
    again = await client.post(f"/runs/{id}/retry", headers=key)
    assert (answer.status_code, again.status_code) == (201, 201)
    new = answer.json()
    assert (again.json()["runId"], again.headers["idempotency-replayed"]) == (new["runId"], "true")
    assert answer.headers["location"] == f"/api/v1/runs/{new['runId']}"
    assert (new["replayOf"], new["retriedBefore"], new["endedCount"]) == (id, None, 1)
    stage.work()
    assert stage.result(new["runId"]) == 1
    assert stage.count("echo") == 2
    rows = [row for row in table(stage.store, "audit") if row["action"] == "run.retry"]
    assert [(row["actor"], row["address"], row["request"]) for row in rows] == [
        ("local", "127.0.0.1", answer.headers["x-request-id"])
    ]


async def test_a_retry_with_other_arguments(stage: Stage, client: httpx.AsyncClient) -> None:
    id = stage.start("chain")
    stage.work()
    stage.failing.clear()  # type: ignore[attr-defined]
    body = {"fromStep": "b", "stepArguments": {"b": {"x": 7}}, "version": 1}
    first = (await client.post(f"/runs/{id}/retry", json=body)).json()
    second = (await client.post(f"/runs/{id}/retry", json={"fromStep": "start", "arguments": {}})).json()
    stage.work()
    assert (stage.result(first["runId"]), stage.result(second["runId"])) == (7, 1)
    assert (first["retriedBefore"], second["retriedBefore"]) == (None, first["runId"])


async def test_a_retry_of_the_latest_version(stage: Stage, client: httpx.AsyncClient) -> None:
    id = stage.start("chain")
    stage.work()
    stage.failing.clear()  # type: ignore[attr-defined]
    stage.workflow("chain", *CHAIN, result=ref("a"))
    pinned = (await client.post(f"/runs/{id}/retry")).json()
    latest = (await client.post(f"/runs/{id}/retry", json={"version": "latest"})).json()
    assert (pinned["version"], latest["version"]) == (1, 2)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"fromStep": "z"}, "bad_field"),
        ({"version": 9}, "bad_field"),
        ({"version": "1"}, "bad_field"),
        ({"arguments": [1]}, "bad_field"),
        ({"arguments": {}}, "bad_field"),
        ({"stepArguments": {"a": {"x": 1}}}, "bad_field"),
        ({"from_step": "a"}, "unknown_field"),
        ({"namespace": "other"}, "unknown_field"),
    ],
)
async def test_a_retry_that_cannot_be(
    stage: Stage, client: httpx.AsyncClient, body: dict[str, Any], expected: str
) -> None:
    id = stage.start("chain")
    stage.work()
    answer = await client.post(f"/runs/{id}/retry", json=body)
    assert (answer.status_code, code(answer)) == (422, expected)
    assert len((await client.get("/runs")).json()["items"]) == 1


async def test_pause_and_resume_are_idempotent(stage: Stage, client: httpx.AsyncClient) -> None:
    id = stage.start("chain")
    refused = await client.post(f"/runs/{id}/pause")
    assert (refused.status_code, code(refused)) == (409, "conflict")
    stage.open()
    found = [(await client.post(f"/runs/{id}/pause", json={"note": "lunch"})).json() for _ in range(2)]
    assert [one["changed"] for one in found] == [True, False]
    assert (found[1]["paused"]["note"], found[1]["paused"]["by"]) == ("lunch", "local")
    found = [(await client.post(f"/runs/{id}/resume")).json() for _ in range(2)]
    assert [(one["changed"], one["paused"]) for one in found] == [(True, None), (False, None)]


async def test_case_35_cancel_of_a_run_that_just_ended(stage: Stage, client: httpx.AsyncClient) -> None:
    ended, open_ = stage.start("chain"), stage.start("chain")
    stage.work()
    answer = await client.post(f"/runs/{ended}/cancel")
    assert (answer.status_code, answer.json()["changed"], answer.json()["status"]) == (200, False, "failed")
    open_ = stage.start("chain")
    stage.open()
    found = [(await client.post(f"/runs/{open_}/cancel", json={})).json() for _ in range(2)]
    assert [one["changed"] for one in found] == [True, False]
    stage.work()
    assert (await client.get(f"/runs/{open_}")).json()["status"] == "cancelled"
    not_ended = stage.start("chain")
    refused = await client.post(f"/runs/{not_ended}/retry")
    assert (refused.status_code, code(refused)) == (409, "conflict")


async def test_case_28_runs_of_another_tenant_are_not_there(stage: Stage, server: Server) -> None:
    id = stage.start("chain")
    stage.work()
    plain = stage.world.enqueue("echo")
    async with server.client(server.token(namespaces=("other",))) as stranger, server.client(server.token()) as own:
        for path in (f"/runs/{id}", f"/runs/{id}/steps"):
            assert (await own.get(path)).status_code == 200
            assert (await stranger.get(path)).status_code == 404
            assert (await stranger.get(path, headers={"Rota-Namespace": "default"})).status_code == 404
        for action in ("cancel", "pause", "resume", "retry"):
            answer = await stranger.post(f"/runs/{id}/{action}")
            assert (answer.status_code, code(answer)) == (404, "not_found")
            assert (await own.post(f"/runs/{plain}/{action}")).status_code == 404
            assert (await own.post(f"/runs/nonsense/{action}")).status_code == 404
        assert (await stranger.get("/runs")).json()["items"] == []
        assert (await stranger.get(f"/runs?parent={id}")).status_code == 404


async def test_case_11_a_page_of_runs_ends_when_it_has_looked_at_enough(
    stage: Stage, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.workflow("other", {"id": "a", "job": "echo", "with": {"x": 1}})
    ids = [stage.start("chain" if number % 3 else "other") for number in range(9)]
    stage.work()
    monkeypatch.setattr("rota.api.resources.runs.MOST_LOOKED_AT", 4)

    async def pages(query: str) -> list[list[str]]:
        found: list[list[str]] = []
        cursor = ""
        while True:
            page = (await client.get(f"/runs?limit=1&{query}{cursor}")).json()
            found.append([one["runId"] for one in page["items"]])
            if page["nextCursor"] is None:
                return found
            cursor = f"&cursor={page['nextCursor']}"

    nothing = await pages("status=skipped")
    assert len(nothing) > 2
    assert not any(nothing)
    assert [id for page in await pages("status=success") for id in page] == ids[6::-3]
    assert [id for page in await pages("order=asc") for id in page] == ids
