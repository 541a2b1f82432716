"""Every route of the table against every kind of caller: what is not granted is refused."""

from __future__ import annotations

import re

import httpx
import pytest

from rota.api.resources.dashboard import addresses
from rota.api.route import OF_OWN, Access, Route
from rota.api.routes import ROUTES
from rota.domain.access import SCOPES, Role, Scope
from tests.api.server import Server

UNKNOWN = "01a1eb52-ba8b-7000-9fc2-e6d4c6f6a277"
CLOSED = [route for route in ROUTES if route.needs is not Access.OPEN]
OPEN = {
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/api/docs"),
    ("GET", "/api/docs/{file}"),
    *(("GET", address.path) for address in addresses()),  # The page is the same for everyone, and has no data.
    ("GET", "/assets/{file}"),
    ("POST", "/api/v1/session"),
    ("DELETE", "/api/v1/session"),
    ("POST", "/api/v1/in/{key}"),
}
"""What may be called without a token. A route that is added here must show nothing and change nothing of a tenant."""


def is_granted(route: Route, role: Role) -> bool:
    scopes = SCOPES[role]
    if route.needs in OF_OWN:
        return OF_OWN[route.needs] in scopes or Scope.ENQUEUE in scopes
    return route.needs is Access.ANY or route.needs in scopes


async def call(client: httpx.AsyncClient, route: Route, **headers: str) -> httpx.Response:
    path = "http://localhost" + re.sub(r"\{\w+\}", UNKNOWN, route.full_path)
    body = {"json": route.example or {}} if route.body is not None or route.raw_body else {}
    return await client.request(route.method, path, headers=headers, **body)  # type: ignore[arg-type]


def test_open_routes_are_listed() -> None:
    assert {(route.method, route.full_path) for route in ROUTES if route.needs is Access.OPEN} <= OPEN


async def test_callers_without_a_valid_token_get_401(server: Server) -> None:
    now = server.services.clock.now()
    valid, expired = server.token(Role.ADMIN), server.token(Role.ADMIN, expires_at=now - 1)
    credentials = {
        "none": {},
        "empty": {"Authorization": "Bearer "},
        "malformed": {"Authorization": "Bearer rota_x"},
        "mistyped": {"Authorization": f"Bearer {valid[:-2]}xx"},
        "expired": {"Authorization": f"Bearer {expired}"},
        "unknown session": {"Cookie": "rota_session=x"},
    }
    async with server.client() as client:
        for route in CLOSED:
            for kind, headers in credentials.items():
                server.api.authenticator._refused.clear()
                answer = await call(client, route, **headers)
                assert answer.status_code == 401, (route.method, route.full_path, kind, answer.text)


@pytest.mark.parametrize("role", list(Role))
async def test_a_role_may_do_what_it_is_granted_and_nothing_else(server: Server, role: Role) -> None:
    async with server.client(server.token(role)) as client:
        for route in CLOSED:
            if route.path == "/stream":
                continue  # It would not end; tests/api/test_stream.py has it.
            answer = await call(client, route)
            where = (route.method, route.full_path, answer.status_code, answer.text[:200])
            if is_granted(route, role):
                assert answer.status_code != 401, where
                assert answer.status_code < 500, where
            else:
                assert (answer.status_code, answer.json()["code"]) == (403, "wrong_scope"), where


async def test_a_foreign_namespace_is_not_there_on_any_route(server: Server) -> None:
    async with server.client(server.token(Role.ADMIN, namespaces=("a",))) as client:
        for route in CLOSED:
            answer = await call(client, route, **{"Rota-Namespace": "b"})
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), route.full_path
