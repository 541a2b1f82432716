"""How the property tests run, and the databases on which runs must behave the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from rota.clock import ManualClock
from rota.store.port import Store
from rota.store.postgres.store import PostgresStore
from rota.store.sqlite.store import SqliteStore
from tests.support.databases import fresh_database, fresh_file
from tests.support.world import World
from tests.workflow.stage import Stage

# No time limit per example, because this machine may be busy with others.
settings.register_profile(
    "rota", deadline=None, max_examples=60, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rota")


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
def stage(store: Store) -> Stage:
    clock: ManualClock = store.clock  # type: ignore[attr-defined]
    return Stage(World(store, clock))


@pytest.fixture(autouse=True)
def nothing_was_repaired(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert "repaired runs" not in caplog.text
