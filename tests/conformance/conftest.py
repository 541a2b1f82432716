"""The stores that must behave the same. A new one is one more entry of `BACKENDS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rota.clock import ManualClock
from rota.store.port import Store
from rota.store.postgres.store import PostgresStore
from rota.store.sqlite.store import SqliteStore
from tests.support.databases import fresh_database, fresh_file
from tests.support.proving import proof
from tests.support.world import RecordingBus, World

BACKENDS: dict[str, Callable[[Path, ManualClock], Store]] = {
    "sqlite-memory-inline": lambda folder, clock: SqliteStore("sqlite://:memory:", clock, inline=True),
    "sqlite-file": lambda folder, clock: SqliteStore(fresh_file(folder), clock),
    "postgres-inline": lambda folder, clock: PostgresStore(fresh_database(), clock, inline=True),
    "postgres": lambda folder, clock: PostgresStore(fresh_database(), clock),
}

BACKEND_PARAMETERS = [name if name in ("sqlite-file", "postgres") else proof(name) for name in BACKENDS]
"""`make test` runs those that users run. Without threads a store answers the same, which `make prove` shows."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=BACKEND_PARAMETERS)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
    store = BACKENDS[request.param](tmp_path, clock)
    yield store
    store.close()


@pytest.fixture
def world(store: Store, clock: ManualClock) -> World:
    return World(store, clock)


@pytest.fixture
def bus(store: Store) -> Iterator[RecordingBus]:
    """Replaces the store's bus, so that a test sees the hints."""
    before, recording = store.bus, RecordingBus()
    store.bus = recording
    yield recording
    store.bus = before
