"""Servers on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from tests.api.server import Server, serving
from tests.support.databases import fresh_database, fresh_file

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test` runs the named cases on both databases, and everything else on SQLite; `make prove` the rest."""
    for item in items:
        if item.path.parent == HERE and "[postgres" in item.name and not item.name.startswith("test_case_"):
            item.add_marker(pytest.mark.prove)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return fresh_file(tmp_path) if request.param == "sqlite" else fresh_database()


@pytest.fixture
def server(url: str) -> Iterator[Server]:
    with serving(url) as server:
        yield server


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    """A caller on this machine, of a server without tokens."""
    async with server.client() as client:
        yield client
