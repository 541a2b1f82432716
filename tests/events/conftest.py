"""The databases on which events must behave the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rota.clock import ManualClock
from rota.store.port import Store
from rota.store.postgres.store import PostgresStore
from rota.store.sqlite.store import SqliteStore
from tests.events.scene import Scene
from tests.support.databases import fresh_database, fresh_file
from tests.support.world import World


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    clock = ManualClock()
    store: Store
    if request.param == "sqlite":
        store = SqliteStore(fresh_file(tmp_path), clock, inline=True)
    else:
        store = PostgresStore(fresh_database(), clock, inline=True)
    store.clock = clock
    yield store
    store.close()


@pytest.fixture
def scene(store: Store) -> Scene:
    clock: ManualClock = store.clock  # type: ignore[attr-defined]
    return Scene(World(store, clock))


@pytest.fixture(autouse=True)
def nothing_was_repaired(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert "repaired runs" not in caplog.text
