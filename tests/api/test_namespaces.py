"""Namespaces over HTTP: made, limited, removed when empty."""

from __future__ import annotations

import httpx

from rota.domain.access import Role
from tests.api.server import Server, code


async def test_a_namespace_is_made_changed_and_removed(client: httpx.AsyncClient) -> None:
    made = await client.put("/namespaces/billing", json={"retention": "90d", "quotas": {"maxJobs": 3}})
    assert made.status_code == 201, made.text
    assert made.headers["location"] == "/api/v1/namespaces/billing"
    shown = made.json()
    assert (shown["retention"], shown["quotas"], shown["use"]["jobs"]) == (90 * 86400, {"maxJobs": 3}, 0)
    changed = (await client.patch("/namespaces/billing", json={"quotas": {"maxDepth": 10}})).json()
    assert (changed["retention"], changed["quotas"]) == (90 * 86400, {"maxDepth": 10})
    default = (await client.patch("/namespaces/billing", json={"retention": None})).json()
    assert default["hasOwnRetention"] is False
    assert [one["name"] for one in (await client.get("/namespaces?order=asc")).json()["items"]] == ["billing"]
    assert (await client.delete("/namespaces/billing")).status_code == 204
    assert (await client.get("/namespaces/billing")).status_code == 404
    assert (await client.delete("/namespaces/billing")).status_code == 404


async def test_a_namespace_with_content_stays(server: Server) -> None:
    root = server.token(Role.ADMIN, namespaces=("*",))
    server.token(Role.VIEWER, namespaces=("billing",))
    async with server.client(root) as client:
        answer = await client.delete("/namespaces/billing")
        assert (answer.status_code, code(answer)) == (409, "conflict")
        assert "tokens" in answer.json()["detail"]


async def test_an_administrator_of_one_namespace_sees_only_that(server: Server) -> None:
    server.token(Role.VIEWER, namespaces=("b",))
    async with server.client(server.token(Role.ADMIN, namespaces=("a",))) as client:
        assert (await client.get("/namespaces/a")).status_code == 200
        assert (await client.get("/namespaces/b")).status_code == 404
        for answer in (
            await client.get("/namespaces"),
            await client.put("/namespaces/a", json={}),
            await client.patch("/namespaces/a", json={}),
            await client.delete("/namespaces/a"),
        ):
            assert (answer.status_code, code(answer)) == (403, "wrong_scope")


async def test_bad_quotas_are_refused(client: httpx.AsyncClient) -> None:
    for body in ({"quotas": {"maxJobs": -1}}, {"quotas": {"x": 1}}, {"retention": "5m"}, {"retention": "soon"}):
        answer = await client.put("/namespaces/billing", json=body)
        assert answer.status_code == 422, body
    assert (await client.put("/namespaces/1x", json={})).status_code == 422
