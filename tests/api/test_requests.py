"""What holds for every request, whatever its route: paths, methods, hosts, origins, credentials."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from rota.api import auth
from rota.api.problem import Problem
from rota.api.services import Exposure
from rota.domain.access import Role
from rota.ops import tokens
from rota.store import access_reader
from rota.store.port import Tx
from tests.api.server import Server, code, serving


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
        form = {**header, "Content-Type": "application/x-www-form-urlencoded"}
        for path in ("/jobs", "/actions", "/tokens"):
            posted = await client.post(path, content="a=b", headers=form)
            assert (posted.status_code, code(posted)) == (403, "cross_origin")


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


async def test_case_29_credentials_that_are_malformed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
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
        reads: list[object] = []
        monkeypatch.setattr(server.store, "read", lambda query, *_: reads.append(query))
        mistyped = {"Authorization": f"Bearer {text[:-1]}{'a' if text[-1] != 'a' else 'b'}"}
        assert code(await client.get("/me", headers=mistyped)) == "bad_token"
        assert reads == [], "the checksum says so without a look at the database"
        monkeypatch.undo()
        twice = [("Authorization", f"Bearer {text}"), ("Authorization", f"Bearer {text}")]
        assert (await client.get("/me", headers=twice)).status_code == 400


async def test_brute_force_is_slowed_down_and_a_right_token_still_passes(server: Server) -> None:
    text = server.token()
    async with server.client() as client:
        wrong = {"Authorization": "Bearer rota_wrong"}
        found = [(await client.get("/me", headers=wrong)).status_code for _ in range(25)]
        assert found == [401] * 20 + [429] * 5
        assert (await client.get("/me", headers={"Authorization": f"Bearer {text}"})).status_code == 200


async def test_refused_credentials_take_little_memory(server: Server) -> None:
    server.token()
    wrong = {"authorization": "Bearer rota_wrong"}
    for _ in range(200):
        with pytest.raises(Problem):
            await server.api.authenticator.caller(wrong, "10.0.0.1")
    assert len(server.api.authenticator._refused["10.0.0.1"]) <= auth.MOST_REFUSED + 1


async def test_the_last_use_of_a_token_is_written(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The uses of some time are one transaction, and no request waits for it."""
    monkeypatch.setattr(auth, "USES_OF_S", 0.2)
    written: list[int] = []
    note = tokens.note_uses

    def counted(tx: Tx, of_tokens: list[tuple[str, int]], of_sessions: list[tuple[str, int]]) -> None:
        written.append(len(of_tokens))
        note(tx, of_tokens, of_sessions)

    monkeypatch.setattr(tokens, "note_uses", counted)
    texts = [server.token(Role.ADMIN, name=f"t{number}") for number in range(3)]
    for text in texts * 2:
        async with server.client(text) as client:
            await client.get("/me")
    async with asyncio.timeout(20), server.client(texts[0]) as client:
        while None in [one["lastUsedAt"] for one in (await client.get("/tokens")).json()["items"]]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # sleep: until they are committed
    assert written == [3]


async def test_the_address_behind_a_proxy_comes_from_the_trusted_one(url: str) -> None:
    wrong = {"Authorization": "Bearer rota_wrong"}
    with serving(url, exposure=Exposure(trusted_proxies=("127.0.0.1",))) as server:
        server.token()
        async with server.client() as client:
            proxied = wrong | {"X-Forwarded-For": "6.6.6.6, 10.0.0.1"}
            found = [(await client.get("/me", headers=proxied)).status_code for _ in range(21)]
            assert found[-1] == 429
            other = await client.get("/me", headers=wrong | {"X-Forwarded-For": "10.0.0.1, 10.0.0.2"})
            assert other.status_code == 401
    with serving(url) as server:
        async with server.client() as client:
            for n in range(20):
                await client.get("/me", headers=wrong | {"X-Forwarded-For": f"10.0.0.{n}"})
            last = await client.get("/me", headers=wrong | {"X-Forwarded-For": "10.0.1.1"})
            assert last.status_code == 429, "the header of a client that is no trusted proxy means nothing"


async def test_a_server_with_names_and_an_address_of_its_own(url: str) -> None:
    exposure = Exposure(allowed_hosts=("rota.example",), public_url="https://rota.example")
    with serving(url, exposure=exposure) as server:
        text = server.token(Role.OPERATOR)
        async with server.client(Host="rota.example") as browser, server.client(text) as other:
            assert code(await other.get("/me", headers={"Host": "evil.example"})) == "bad_host"
            assert code(await other.get("/me")) == "bad_host"
            origin = {"Origin": "https://rota.example", "Sec-Fetch-Site": "same-origin"}
            made = await browser.post("/session", json={"token": text}, headers=origin)
            assert made.status_code == 201
            assert made.headers["set-cookie"].startswith("__Host-rota=")
            plain = await browser.post("/session", json={"token": text}, headers={"Origin": "http://rota.example"})
            assert code(plain) == "cross_origin"


async def test_pages_of_listed_origins_may_send_tokens(url: str) -> None:
    page = {"Origin": "https://shop.example", "Sec-Fetch-Site": "cross-site"}
    with serving(url, exposure=Exposure(cors_origins=("https://shop.example",))) as server:
        text = server.token(Role.OPERATOR)
        async with server.client(text) as client, server.client() as stranger:
            asked = {**page, "Access-Control-Request-Method": "POST"}
            answer = await stranger.options("/executions", headers=asked)
            assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (204, page["Origin"])
            assert "Idempotency-Key" in answer.headers["access-control-allow-headers"]
            assert "access-control-allow-credentials" not in answer.headers
            answer = await client.post("/executions", json={"job": "x"}, headers=page)
            assert (code(answer), answer.headers["access-control-allow-origin"]) == ("unknown_job", page["Origin"])
            assert answer.headers["vary"] == "Origin"
            no_token = await stranger.post("/executions", json={"job": "x"}, headers=page)
            assert code(no_token) == "cross_origin"
            for origin in ("https://evil.example", "null"):
                other = await stranger.options("/executions", headers={**asked, "Origin": origin})
                assert (other.status_code, "access-control-allow-origin" in other.headers) == (405, False)
                read = await client.get("/me", headers={"Origin": origin})
                assert (read.status_code, "access-control-allow-origin" in read.headers) == (200, False)


async def test_a_foreign_namespace_is_not_there(server: Server) -> None:
    text = server.token(namespaces=("a", "b"))
    async with server.client(text) as client:
        assert (await client.get("/me")).json()["namespace"] == "a"
        assert (await client.get("/me", headers={"Rota-Namespace": "b"})).json()["namespace"] == "b"
        answer = await client.get("/me", headers={"Rota-Namespace": "c"})
        assert (answer.status_code, code(answer)) == (404, "not_found")
