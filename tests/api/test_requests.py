"""What holds for every request, whatever its route: paths, methods, hosts, origins, credentials."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from rota.domain.access import Role
from rota.store import access_reader
from tests.api.server import Server, code


async def test_health_and_ready(client: httpx.AsyncClient) -> None:
    for path in ("/health", "/ready"):
        answer = await client.get(f"http://localhost{path}")
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/api/v1/jobs/a%2fb", "//jobs", "/api/v1/me/", "/api/v1/jobs/%00", "/HEALTH", "/x"])
async def test_case_6_paths_that_lead_nowhere(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(httpx.URL(f"http://localhost{path}"))
    assert (answer.status_code, code(answer)) == (404, "not_found")


async def test_an_unknown_method_names_the_allowed_ones(client: httpx.AsyncClient) -> None:
    answer = await client.delete("/me")
    assert (answer.status_code, code(answer), answer.headers["allow"]) == (405, "method_not_allowed", "GET, HEAD")


async def test_head_has_no_body(client: httpx.AsyncClient) -> None:
    answer = await client.head("/me")
    assert (answer.status_code, answer.content) == (200, b"")


async def test_an_unknown_parameter_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.get("/me?x=1")
    assert (answer.status_code, code(answer)) == (400, "unknown_parameter")


async def test_case_33_other_hosts_and_origins(client: httpx.AsyncClient) -> None:
    for host, status in {"evil.example": 400, "127.0.0.1.": 400, "127.0.0.1:8080": 200, "[::1]:80": 200}.items():
        assert (await client.get("/me", headers={"Host": host})).status_code == status
    probe = await client.get("http://localhost/health", headers={"Host": "10.0.0.7"})
    assert probe.status_code == 200
    for header in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        refused = await client.get("/me", headers={**header, "Accept": "text/event-stream"})
        assert (refused.status_code, code(refused)) == (403, "cross_origin")
        stream = await client.get("/stream", headers=header)
        assert (stream.status_code, code(stream)) == (403, "cross_origin")


async def test_once_a_token_exists_every_caller_needs_one(server: Server) -> None:
    text = server.token(Role.VIEWER, name="reports")
    async with server.client() as stranger, server.client(text) as reports:
        answer = await stranger.get("/me")
        assert (answer.status_code, code(answer), answer.headers["www-authenticate"]) == (401, "no_token", "Bearer")
        seen = (await reports.get("/me")).json()
        assert seen["limits"] == {"payloadBytes": 1024 * 1024, "page": 1000, "many": 1000, "waitS": 60.0}
        assert {"jobs", "executions", "stream"} <= set(seen["features"])
        assert (seen["actor"], seen["role"], seen["scopes"]) == ("token:reports", "viewer", ["read"])


async def test_callers_of_one_moment_share_the_look_for_tokens(server: Server) -> None:
    looks: list[object] = []
    read = server.store.read

    def noted(query: Callable[..., Any], *args: Any) -> Any:
        looks.append(query)
        return read(query, *args)

    server.store.read = noted  # type: ignore[method-assign, assignment]
    assert all(await asyncio.gather(*(server.api.authenticator.is_open() for _ in range(20))))
    assert looks == [access_reader.has_tokens]
    server.token()
    assert not await server.api.authenticator.is_open()


async def test_case_29_credentials_that_are_malformed(server: Server) -> None:
    text = server.token()
    async with server.client() as client:
        for headers, status in [
            ({"Authorization": f"bearer {text}"}, 200),
            ({"Authorization": f"Bearer {text} "}, 401),
            ({"Authorization": f"Bearer {text[:-1]}{'a' if text[-1] != 'a' else 'b'}"}, 401),
            ({"Authorization": f"Basic {text}"}, 401),
            ({"Authorization": f"Bearer {text}", "Cookie": "rota_session=x"}, 400),
        ]:
            assert (await client.get("/me", headers=headers)).status_code == status, headers
        assert (await client.get(f"/me?token={text}")).status_code == 400
        twice = [("Authorization", f"Bearer {text}"), ("Authorization", f"Bearer {text}")]
        assert (await client.get("/me", headers=twice)).status_code == 400


async def test_brute_force_is_slowed_down_and_a_right_token_still_passes(server: Server) -> None:
    text = server.token()
    async with server.client() as client:
        wrong = {"Authorization": "Bearer rota_wrong"}
        found = [(await client.get("/me", headers=wrong)).status_code for _ in range(25)]
        assert found == [401] * 20 + [429] * 5
        assert (await client.get("/me", headers={"Authorization": f"Bearer {text}"})).status_code == 200


async def test_a_foreign_namespace_is_not_there(server: Server) -> None:
    text = server.token(namespaces=("a", "b"))
    async with server.client(text) as client:
        assert (await client.get("/me")).json()["namespace"] == "a"
        assert (await client.get("/me", headers={"Rota-Namespace": "b"})).json()["namespace"] == "b"
        answer = await client.get("/me", headers={"Rota-Namespace": "c"})
        assert (answer.status_code, code(answer)) == (404, "not_found")
