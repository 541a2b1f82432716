"""Tokens: made, shown once, rotated, revoked; never more rights than the maker has."""

from __future__ import annotations

import httpx
import pytest

from rota.domain.access import Role, Scope
from tests.api.server import Server, code, serving


async def make(client: httpx.AsyncClient, **about: object) -> dict[str, str]:
    answer = await client.post("/tokens", json={"name": "x", "role": "viewer", **about})
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"/api/v1/tokens/{answer.json()['tokenId']}"
    found: dict[str, str] = answer.json()
    return found


async def test_the_first_token_turns_authentication_on(server: Server) -> None:
    async with server.client() as local:
        token = await make(local, name="root", role="admin", namespaces=["*"])
        assert token["secret"].startswith("rota_")
        assert (await local.get("/me")).status_code == 401
    async with server.client(token["secret"]) as root:
        listed = (await root.get("/tokens")).json()["items"]
        assert [one["name"] for one in listed] == ["root"]
        assert "secret" not in listed[0]
        assert listed[0]["ending"] == token["secret"][-4:]
        assert listed[0]["createdBy"] == "local"


async def test_pages_of_tokens_lead_on_and_back(server: Server) -> None:
    text = server.token(Role.ADMIN)
    for n in range(4):
        server.token(Role.VIEWER, name=f"t{n}")
    async with server.client(text) as client:
        first = (await client.get("/tokens?limit=2")).json()
        second = (await client.get(f"/tokens?limit=2&cursor={first['nextCursor']}")).json()
        third = (await client.get(f"/tokens?limit=2&cursor={second['nextCursor']}")).json()
        names = [one["name"] for page in (first, second, third) for one in page["items"]]
        assert names[:4] == ["t3", "t2", "t1", "t0"]
        assert third["nextCursor"] is None
        assert first["previousCursor"] is None
        back = (await client.get(f"/tokens?limit=2&cursor={third['previousCursor']}")).json()
        assert back["items"] == second["items"]
        other = await client.get(f"/tokens?order=asc&cursor={first['nextCursor']}")
        assert (other.status_code, code(other)) == (400, "bad_cursor")
        chosen = (await client.get("/tokens?fields=name,state&limit=1")).json()
        assert chosen["items"] == [{"name": "t3", "state": "active"}]


async def test_case_30_a_revoked_token_ends(server: Server) -> None:
    text = server.token(Role.ADMIN)
    async with server.client(text) as admin:
        made = await make(admin, name="short")
        async with server.client(made["secret"]) as client:
            assert (await client.get("/me")).status_code == 200
            assert (await admin.delete(f"/tokens/{made['tokenId']}")).status_code == 204
            answer = await client.get("/me")
            assert (answer.status_code, code(answer)) == (401, "revoked_token")
        again = await admin.delete(f"/tokens/{made['tokenId']}")
        assert again.status_code == 204
        shown = (await admin.get(f"/tokens/{made['tokenId']}")).json()
        assert shown["state"] == "revoked"


async def test_an_expired_token_is_named_to_its_holder(server: Server) -> None:
    text = server.token(Role.VIEWER, expires_at=server.services.clock.now() - 1)
    async with server.client(text) as client:
        answer = await client.get("/me")
        assert (answer.status_code, code(answer)) == (401, "expired_token")


async def test_both_secrets_hold_during_the_overlap_of_a_rotation(server: Server) -> None:
    text = server.token(Role.ADMIN)
    async with server.client(text) as admin:
        made = await make(admin, name="short")
        url = f"/tokens/{made['tokenId']}/rotate"
        rotated = (await admin.post(url, json={"overlap": "1h"})).json()
        for secret in (made["secret"], rotated["secret"]):
            async with server.client(secret) as client:
                assert (await client.get("/me")).status_code == 200
        final = (await admin.post(url)).json()
        async with server.client(rotated["secret"]) as old, server.client(final["secret"]) as new:
            assert (await old.get("/me")).status_code == 401
            assert (await new.get("/me")).status_code == 200


async def test_case_32_rights_beyond_the_own_ones(server: Server) -> None:
    text = server.token(Role.ADMIN, namespaces=("a",), name="boss")
    async with server.client(text) as client:
        for about in ({"namespaces": ["*"]}, {"namespaces": ["b"]}):
            answer = await client.post("/tokens", json={"name": "y", "role": "viewer", **about})
            assert (answer.status_code, code(answer)) == (403, "exceeds_own_rights")
        own = (await client.get("/tokens")).json()["items"][0]["tokenId"]
        assert (await client.delete(f"/tokens/{own}")).status_code == 204
        assert (await client.get("/me")).status_code == 401


async def test_case_32_scopes_beyond_the_own_ones(server: Server) -> None:
    text = server.token(None, scopes=(Scope.ADMIN, Scope.READ))
    async with server.client(text) as client:
        for about in ({"scopes": ["read", "define:command"]}, {"role": "operator"}, {"role": "admin"}):
            answer = await client.post("/tokens", json={"name": "y", **about})
            assert (answer.status_code, code(answer)) == (403, "exceeds_own_rights")
        assert (await client.post("/tokens", json={"name": "y", "role": "viewer"})).status_code == 201


async def test_case_34_nothing_opens_when_the_last_token_is_revoked(server: Server, url: str) -> None:
    async with server.client(server.token(Role.ADMIN)) as client, server.client() as stranger:
        (own,) = (await client.get("/tokens")).json()["items"]
        assert (await client.delete(f"/tokens/{own['tokenId']}")).status_code == 204
        assert code(await client.get("/me")) == "revoked_token"
        assert code(await stranger.get("/me")) == "no_token"
    with serving(url) as later:
        async with later.client() as stranger:
            assert code(await stranger.get("/jobs")) == "no_token", "a server that starts later is closed, too"


@pytest.mark.parametrize(
    ("body", "status", "wanted"),
    [
        ({"name": "a"}, 422, "bad_field"),
        ({"name": "a", "role": "viewer", "scopes": ["read"]}, 422, "bad_field"),
        ({"name": "a b", "role": "viewer"}, 422, "bad_definition"),
        ({"name": "a", "role": "king"}, 422, "bad_field"),
        ({"role": "viewer"}, 422, "missing_field"),
        ({"name": "a", "role": "viewer", "fence": 1}, 422, "unknown_field"),
        ({"name": "a", "role": "viewer", "expiresAt": "2030-01-01T00:00:00"}, 422, "bad_field"),
        ([], 422, "bad_field"),
    ],
)
async def test_bad_tokens_are_refused(client: httpx.AsyncClient, body: object, status: int, wanted: str) -> None:
    answer = await client.post("/tokens", json=body)
    assert (answer.status_code, code(answer)) == (status, wanted), answer.text


async def test_case_20_a_repeated_request_gets_no_secret(server: Server) -> None:
    text = server.token(Role.ADMIN)
    async with server.client(text) as client:
        about = {"json": {"name": "once", "role": "viewer"}, "headers": {"Idempotency-Key": "k1"}}
        first = await client.post("/tokens", **about)  # type: ignore[arg-type]
        again = await client.post("/tokens", **about)  # type: ignore[arg-type]
        assert (first.status_code, again.status_code) == (201, 201)
        assert again.headers["idempotency-replayed"] == "true"
        assert again.json() == {**first.json(), "secret": None}
        assert again.headers["location"] == first.headers["location"]


async def test_only_administrators_see_tokens(server: Server) -> None:
    for role in (Role.VIEWER, Role.PRODUCER, Role.OPERATOR, Role.AUTHOR, Role.WORKER):
        async with server.client(server.token(role)) as client:
            answer = await client.get("/tokens")
            assert (answer.status_code, code(answer)) == (403, "wrong_scope")
