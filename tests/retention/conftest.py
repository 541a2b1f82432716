"""The stores of the conformance suite, and a pass of pruning as the janitor makes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rota.clock import ManualClock
from rota.store.port import Store
from tests.conformance.conftest import BACKENDS
from tests.support.proving import proof
from tests.support.world import World


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=[proof("sqlite-memory-inline"), "sqlite-file", "postgres-inline"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
    store = BACKENDS[request.param](tmp_path, clock)
    yield store
    store.close()


@pytest.fixture
def world(store: Store, clock: ManualClock) -> World:
    return World(store, clock)
