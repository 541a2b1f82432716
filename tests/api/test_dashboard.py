"""The dashboard: one page for all of its addresses, its files, and what they may load."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import httpx
import pytest

from rota.api.resources import dashboard
from rota.api.resources.dashboard import addresses
from rota.domain.access import Role
from tests.api.server import Server, code

HOST = "http://localhost"
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
REPOSITORY = Path(__file__).parents[2]
UNKNOWN = "01a1eb52-ba8b-7000-9fc2-e6d4c6f6a277"
built = pytest.mark.skipif(not dashboard.folder().joinpath("index.html").is_file(), reason="ui/ was not built")


def path_of(address: str) -> str:
    return re.sub(r"\{\w+\}", UNKNOWN, address)


@built
async def test_every_address_answers_with_the_page(client: httpx.AsyncClient) -> None:
    for address in addresses():
        page = await client.get(f"{HOST}{path_of(address.path)}?status=failed&job=a%2Fb&anything=1")
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8"), address
        assert page.headers["cache-control"] == "no-store"
        assert '<div id="root">' in page.text


@built
async def test_the_page_needs_no_token_and_its_data_does(server: Server) -> None:
    server.token(Role.VIEWER)
    async with server.client() as client:
        assert (await client.get(f"{HOST}/workers")).status_code == 200
        assert (await client.get("/workers")).status_code == 401


@built
async def test_a_page_has_a_nonce_of_its_own_and_no_inline_script(client: httpx.AsyncClient) -> None:
    pages = [await client.get(HOST) for _ in range(2)]
    policies = [page.headers["content-security-policy"] for page in pages]
    nonces = [re.findall(r"style-src 'self' 'nonce-([0-9a-f]{32})';", policy) for policy in policies]
    assert nonces[0] != nonces[1]
    for page, policy, [nonce] in zip(pages, policies, nonces, strict=True):
        assert "default-src 'none'; script-src 'self';" in policy
        assert "connect-src 'self'" in policy
        assert set(re.findall(r'nonce="(\w+)"', page.text)) == {nonce}
        assert re.findall(r"<script(?![^>]* src=)", page.text) == []
        assert re.findall(r"https?://|<style", page.text) == []
        assert page.headers["referrer-policy"] == "no-referrer"
        assert page.headers["cross-origin-opener-policy"] == "same-origin"


@built
async def test_files_are_kept_for_good_and_come_compressed(client: httpx.AsyncClient) -> None:
    files = re.findall(r'(?:src|href)="(/assets/[^"]+)"', (await client.get(HOST)).text)
    assert {file.rpartition(".")[2] for file in files} == {"js", "css", "svg"}
    for file in files:
        plain = await client.get(HOST + file, headers={"Accept-Encoding": "identity"})
        assert (plain.status_code, plain.headers["x-content-type-options"]) == (200, "nosniff"), file
        assert plain.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert "content-encoding" not in plain.headers
    script = next(file for file in files if file.endswith(".js"))
    for accepted, sent in {"gzip, deflate, br": "br", "gzip": "gzip", "br;q=0, gzip": "gzip", "deflate": None}.items():
        async with client.stream("GET", HOST + script, headers={"Accept-Encoding": accepted}) as answer:
            raw = b"".join([piece async for piece in answer.aiter_raw()])
        assert answer.headers.get("content-encoding") == sent, accepted
        assert answer.headers["vary"] == "Accept-Encoding"
        if sent == "gzip":
            assert len(gzip.decompress(raw)) > 2 * len(raw)


@built
async def test_other_files_and_paths_are_not_served(client: httpx.AsyncClient) -> None:
    script = next(one.name for one in dashboard.folder().joinpath("assets").iterdir() if one.name.endswith(".js"))
    for path in ("assets/index.html", f"assets/{script}.gz", "manifest.json", "index.html", "executions/a/b"):
        answer = await client.get(f"{HOST}/{path}")
        assert (answer.status_code, code(answer)) == (404, "not_found"), path


@built
async def test_a_browser_at_an_unknown_address_gets_the_page(client: httpx.AsyncClient) -> None:
    for path in ("nowhere", "executions/a/b", "jobs/shop/a%20b", "nowhere?status=failed"):
        page = await client.get(f"{HOST}/{path}", headers=BROWSER)
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8"), path
        assert '<div id="root">' in page.text
        assert "'nonce-" in page.headers["content-security-policy"]
    assert code(await client.post(f"{HOST}/nowhere", headers=BROWSER)) == "not_found"
    assert code(await client.get(f"{HOST}/assets/gone-abcdefgh.js", headers=BROWSER)) == "not_found"


@pytest.mark.parametrize("headers", [{}, BROWSER])
async def test_unknown_paths_of_the_api_stay_problems(client: httpx.AsyncClient, headers: dict[str, str]) -> None:
    for path in ("/api", "/api/", "/api/v1/nothing", "/api/v2/jobs"):
        answer = await client.get(HOST + path, headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json"), path


async def test_the_page_is_behind_the_check_of_the_host(client: httpx.AsyncClient) -> None:
    answer = await client.get(HOST, headers={"Host": "evil.example"})
    assert (answer.status_code, code(answer)) == (400, "bad_host")
    assert (await client.post(f"{HOST}/workers")).status_code == 405


async def test_an_installation_without_the_files_says_how_to_get_them(
    client: httpx.AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashboard, "folder", lambda: tmp_path)
    dashboard._content.cache_clear()
    try:
        page = await client.get(HOST)
        assert page.status_code == 200
        assert "make ui" in page.text
        assert (await client.get(f"{HOST}/assets/index-abcdefgh.js")).status_code == 404
    finally:
        dashboard._content.cache_clear()


def test_every_page_of_the_sources_has_an_address() -> None:
    pages = {path.stem for path in (REPOSITORY / "ui" / "src" / "pages").glob("*.tsx")}
    assert pages <= {address.page for address in addresses()}


@built
@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_the_page_loads_no_more_than_it_may() -> None:
    done = subprocess.run(
        ["node", "ui/scripts/size.mjs"], cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "first load:" in done.stdout


def test_the_package_has_what_the_page_is_made_from() -> None:
    assert (resources.files("rota.api") / "pages" / "addresses.json").is_file()
    assert (resources.files("rota.views") / "state_marks.json").is_file()
