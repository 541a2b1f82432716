"""The audit trail over HTTP."""

from __future__ import annotations

from rota.domain.access import Role
from tests.api.server import Server, code


async def test_changes_name_the_caller_its_address_and_its_request(server: Server) -> None:
    text = server.token(Role.ADMIN, name="boss")
    async with server.client(text) as client:
        made = await client.post("/tokens", json={"name": "a", "role": "viewer"}, headers={"X-Request-Id": "request-1"})
        assert made.headers["x-request-id"] == "request-1"
        entry = (await client.get("/audit?limit=1")).json()["items"][0]
        assert (entry["actor"], entry["action"], entry["subject"]) == ("token:boss", "token.create", "a")
        assert (entry["requestId"], entry["address"]) == ("request-1", "127.0.0.1")
        assert made.json()["secret"] not in str(entry)


async def test_pages_and_filters(server: Server) -> None:
    text = server.token(Role.ADMIN, name="boss")
    for n in range(5):
        server.token(Role.VIEWER, name=f"t{n}")
    async with server.client(text) as client:
        seen, query = [], "?action=token&limit=2"
        while True:
            page = (await client.get(f"/audit{query}")).json()
            seen += [one["subject"] for one in page["items"]]
            if page["nextCursor"] is None:
                break
            query = f"?action=token&limit=2&cursor={page['nextCursor']}"
        assert seen == ["t4", "t3", "t2", "t1", "t0", "boss"]
        back = (await client.get(f"/audit?action=token&limit=2&cursor={page['previousCursor']}")).json()
        assert [one["subject"] for one in back["items"]] == ["t2", "t1"]
        up = (await client.get("/audit?order=asc&limit=1")).json()
        assert up["items"][0]["subject"] == "boss"
        assert (await client.get("/audit?action=job")).json()["items"] == []
        assert (await client.get("/audit?from=1h&to=30m")).json()["items"] == []


async def test_the_trail_of_another_tenant_is_not_shown(server: Server) -> None:
    server.token(Role.ADMIN, name="boss")
    other = server.token(Role.ADMIN, name="other", namespaces=("b",))
    async with server.client(other) as client:
        assert [one["subject"] for one in (await client.get("/audit")).json()["items"]] == ["other"]
    async with server.client(server.token(Role.OPERATOR)) as client:
        answer = await client.get("/audit")
        assert (answer.status_code, code(answer)) == (403, "wrong_scope")
