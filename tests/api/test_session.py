"""A browser's sign-in by token."""

from __future__ import annotations

import httpx
import pytest

from rota.api import auth
from rota.clock import ManualClock
from rota.domain.access import Role
from tests.api.conftest import DAY
from tests.api.server import Server, code


async def test_a_token_is_traded_for_a_cookie(server: Server) -> None:
    text = server.token(Role.OPERATOR, name="ann")
    async with server.client() as browser:
        assert (await browser.get("/session")).status_code == 401
        answer = await browser.post("/session", json={"token": text})
        cookie = answer.headers["set-cookie"]
        assert answer.status_code == 201
        assert text not in answer.text
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        assert (await browser.get("/me")).json()["actor"] == "session:ann"
        refused = await browser.get("/me", headers={"Authorization": f"Bearer {text}"})
        assert (refused.status_code, code(refused)) == (400, "two_credentials")
        foreign = await browser.delete("/session", headers={"Origin": "http://evil.example"})
        assert (foreign.status_code, code(foreign)) == (403, "cross_origin")
        old = browser.cookies["rota_session"]
        assert (await browser.delete("/session")).status_code == 204
        assert "rota_session" not in browser.cookies
        answer = await browser.get("/me", headers={"Cookie": f"rota_session={old}"})
        assert (answer.status_code, code(answer)) == (401, "bad_token")


async def test_over_https_the_cookie_is_bound_to_the_host(server: Server) -> None:
    text = server.token(Role.VIEWER)
    async with server.client() as browser:
        answer = await browser.post("https://localhost/api/v1/session", json={"token": text})
        assert answer.headers["set-cookie"].startswith("__Host-rota=")
        assert answer.headers["set-cookie"].endswith("; Secure")


async def test_a_session_ends_with_its_token(server: Server) -> None:
    admin, text = server.token(Role.ADMIN), server.token(Role.VIEWER, name="ann")
    async with server.client() as browser, server.client(admin) as boss:
        await browser.post("/session", json={"token": text})
        listed = (await boss.get("/tokens")).json()["items"]
        (id,) = [one["tokenId"] for one in listed if one["name"] == "ann"]
        await boss.delete(f"/tokens/{id}")
        assert (await browser.get("/me")).status_code == 401


async def test_a_session_ends_when_it_is_idle_and_after_a_week(
    clock: ManualClock, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "USES_OF_S", 0.0)
    text = server.token(Role.VIEWER, expires_at=clock.now() + 90 * DAY)

    async def signed_in(client: httpx.AsyncClient) -> bool:
        server.api.authenticator.forget()
        answer = await client.get("/me")
        await server.api.authenticator._write_uses()
        return answer.status_code == 200

    async with server.client() as idle, server.client() as busy:
        for browser in (idle, busy):
            assert (await browser.post("/session", json={"token": text})).status_code == 201
        clock.advance(11 * 3600)
        assert await signed_in(idle)
        clock.advance(13 * 3600)
        assert not await signed_in(idle), "twelve hours without a request"
        assert not await signed_in(busy)
        assert (await busy.post("/session", json={"token": text})).status_code == 201
        for _ in range(16):
            assert await signed_in(busy)
            clock.advance(10 * 3600)
        assert await signed_in(busy)
        clock.advance(10 * 3600)
        assert not await signed_in(busy), "a week since the sign-in"


async def test_a_wrong_token_gets_no_session(server: Server) -> None:
    server.token()
    async with server.client() as browser:
        answer = await browser.post("/session", json={"token": "rota_x"})
        assert (answer.status_code, code(answer)) == (401, "bad_token")
        assert "set-cookie" not in answer.headers
