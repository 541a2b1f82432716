"""Servers on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from rota.clock import MACHINE, ManualClock
from tests.api.server import Server, serving
from tests.support.databases import fresh_database, fresh_file
from tests.support.world import World

HERE = Path(__file__).parent
DAY = 24 * 3600 * 10**6


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
def clock() -> ManualClock:
    """A clock that the test moves, from midnight on. A module asks for it with `usefixtures`."""
    clock = ManualClock()
    clock.set(clock.now() - clock.now() % DAY)
    return clock


@pytest.fixture
def moved_clock(request: pytest.FixtureRequest) -> ManualClock | None:
    """The clock of a test that asks for one; the others have the machine's."""
    return request.getfixturevalue("clock") if "clock" in request.fixturenames else None


@pytest.fixture
def server(url: str, moved_clock: ManualClock | None) -> Iterator[Server]:
    with serving(url, moved_clock or MACHINE) as server:
        yield server


@pytest.fixture
def world(server: Server, moved_clock: ManualClock | None) -> World:
    return World(server.store, moved_clock)


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    """A caller on this machine, of a server without tokens."""
    async with server.client() as client:
        yield client
