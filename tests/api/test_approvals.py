"""Approvals over HTTP: lists, answers, who may answer, and answers that come too late. On both databases."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from rota.domain.access import Role
from tests.api.server import Server, code
from tests.support.tables import table
from tests.support.world import World
from tests.workflow.stage import Stage

ASK = {"id": "ask", "approve": {"text": "Release?", "timeout": "1d"}}
OPS = {"id": "ask", "approve": {"text": "Release?", "who": ["ops", "ann"], "timeout": "1d", "required": True}}
AFTER = {"id": "go", "job": "echo", "with": {"x": {"$": "ask.approved"}}}


@pytest.fixture
def stage(server: Server) -> Stage:
    stage = Stage(World(server.store))
    stage.workflow("release", ASK, AFTER, result={"$": "go"})
    stage.workflow("guarded", OPS, AFTER, result={"$": "go"})
    return stage


def asked(stage: Stage, workflow: str = "release") -> tuple[str, str]:
    """An open run and its approval."""
    run = stage.start(workflow)
    stage.work()
    (id,) = [str(row["execution"]) for row in table(stage.store, "step") if str(row["run"]) == run]
    return run, id


async def test_an_approval_is_listed_and_answered(stage: Stage, client: httpx.AsyncClient) -> None:
    run, id = asked(stage)
    (found,) = (await client.get("/approvals?status=open")).json()["items"]
    assert (found["approvalId"], found["runId"], found["workflow"], found["step"]) == (id, run, "release", "ask")
    assert (found["status"], found["text"], found["who"], found["decidedBy"]) == ("open", "Release?", [], None)
    answer = await client.post(f"/approvals/{id}/approve", json={"note": "fine"})
    assert answer.status_code == 200
    decided = answer.json()
    assert (decided["status"], decided["decidedBy"], decided["note"]) == ("approved", "local", "fine")
    stage.work()
    assert stage.result(run) is True
    (row,) = [row for row in table(stage.store, "audit") if row["action"] == "run.approve"]
    assert (row["actor"], row["request"], row["subject"]) == ("local", answer.headers["x-request-id"], run)


async def test_lists_of_approvals(stage: Stage, client: httpx.AsyncClient) -> None:
    runs = [asked(stage) for _ in range(3)]
    await client.post(f"/approvals/{runs[0][1]}/reject")
    await client.post(f"/runs/{runs[1][0]}/cancel")
    stage.work()
    for status, expected in (("open", runs[2:]), ("rejected", runs[:1]), ("ended", runs[1:2]), ("approved", [])):
        found = (await client.get(f"/approvals?status={status}&fields=approvalId")).json()["items"]
        assert found == [{"approvalId": id} for _, id in expected], status
    (of_run,) = (await client.get(f"/approvals?run={runs[0][0]}")).json()["items"]
    assert of_run["approvalId"] == runs[0][1]
    first = (await client.get("/approvals?limit=2&order=asc")).json()
    assert [one["approvalId"] for one in first["items"]] == [id for _, id in runs[:2]]
    second = (await client.get(f"/approvals?limit=2&order=asc&cursor={first['nextCursor']}")).json()
    assert [one["approvalId"] for one in second["items"]] == [runs[2][1]]
    assert second["nextCursor"] is None
    assert (await client.get("/approvals?run=x")).status_code == 400


async def test_a_second_answer_learns_who_was_first(stage: Stage, server: Server) -> None:
    _, id = asked(stage)
    async with server.client(server.token(name="ann")) as ann, server.client(server.token(name="ben")) as ben:
        answers = await asyncio.gather(ann.post(f"/approvals/{id}/approve"), ben.post(f"/approvals/{id}/reject"))
        first = next(one for one in answers if one.status_code == 200).json()
        second = next(one for one in answers if one.status_code == 409)
        assert code(second) == "already_decided"
        existing = second.json()["existing"]
        assert existing["decidedBy"] == first["decidedBy"]
        assert existing["decidedAt"] == first["decidedAt"]
        assert existing["status"] == first["status"]
        assert first["decidedBy"] in second.json()["detail"]
        again = await ann.post(f"/approvals/{id}/approve")
        assert (again.status_code, code(again)) == (409, "already_decided")


async def test_only_those_who_are_asked_may_answer(stage: Stage, server: Server) -> None:
    runs = [asked(stage, "guarded") for _ in range(3)]
    stranger = server.token(Role.OPERATOR, name="ben")
    async with server.client(stranger) as client:
        answer = await client.post(f"/approvals/{runs[0][1]}/approve")
        assert (answer.status_code, code(answer)) == (403, "not_asked")
        assert "ops, ann" in answer.json()["detail"]
    by_name = server.token(Role.OPERATOR, name="ann")
    by_group = server.token(Role.OPERATOR, name="eve", groups=("night", "ops"))
    for (_, id), token in zip(runs, (by_name, by_group), strict=False):
        async with server.client(token) as client:
            assert (await client.post(f"/approvals/{id}/approve")).status_code == 200
    async with server.client(server.token(Role.VIEWER)) as viewer:
        refused = await viewer.post(f"/approvals/{runs[2][1]}/approve")
        assert (refused.status_code, code(refused)) == (403, "wrong_scope")


async def test_the_caller_of_a_server_without_tokens_may_answer_all(stage: Stage, client: httpx.AsyncClient) -> None:
    run, id = asked(stage, "guarded")
    found = (await client.post(f"/approvals/{id}/reject", json={"note": "not before Monday"})).json()
    assert (found["status"], found["required"]) == ("rejected", True)
    stage.work()
    assert stage.end(run)[0] == "failed"


async def test_an_approval_of_a_cancelled_run_cannot_be_answered(stage: Stage, client: httpx.AsyncClient) -> None:
    run, id = asked(stage)
    await client.post(f"/runs/{run}/cancel")
    stage.work()
    answer = await client.post(f"/approvals/{id}/approve")
    assert (answer.status_code, code(answer)) == (409, "conflict")


async def test_an_idempotency_key_answers_once(stage: Stage, client: httpx.AsyncClient) -> None:
    _, id = asked(stage)
    key = {"Idempotency-Key": "k1"}
    answers = [await client.post(f"/approvals/{id}/approve", headers=key) for _ in range(2)]
    assert [one.status_code for one in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()


async def test_case_28_approvals_of_another_tenant_are_not_there(stage: Stage, server: Server) -> None:
    run, id = asked(stage)
    plain = stage.world.enqueue("echo")
    async with server.client(server.token(namespaces=("other",))) as stranger, server.client(server.token()) as own:
        for action in ("approve", "reject"):
            for client, wanted in ((stranger, id), (own, plain), (own, run), (own, "nonsense")):
                answer = await client.post(f"/approvals/{wanted}/{action}")
                assert (answer.status_code, code(answer)) == (404, "not_found")
        assert (await stranger.get("/approvals")).json()["items"] == []
        assert (await stranger.get(f"/approvals?run={run}&status=open")).json()["items"] == []
        assert len((await own.get("/approvals")).json()["items"]) == 1
