"""The page at /api/docs: its files are local, and nothing else is served."""

from __future__ import annotations

import re

import httpx

from rota.domain.access import Role
from tests.api.server import Server, code


async def test_the_page_asks_no_other_host(client: httpx.AsyncClient) -> None:
    page = await client.get("http://localhost/api/docs")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    files = re.findall(r'(?:src|href)="(/[^"]+)"', page.text)
    assert len(files) == 4
    for file in files:
        answer = await client.get(f"http://localhost{file}")
        assert (answer.status_code, answer.headers["x-content-type-options"]) == (200, "nosniff"), file
    assert not re.findall(r"https?://", page.text)


async def test_the_page_needs_no_token_but_the_document_does(server: Server) -> None:
    server.token(Role.VIEWER)
    async with server.client() as client:
        assert (await client.get("http://localhost/api/docs")).status_code == 200
        answer = await client.get("/openapi.json")
        assert (answer.status_code, code(answer)) == (401, "no_token")


async def test_other_files_are_not_served(client: httpx.AsyncClient) -> None:
    for name in ("__init__.py", "docs.html", "..", "swagger", "LICENSE"):
        assert (await client.get(f"http://localhost/api/docs/{name}")).status_code == 404
