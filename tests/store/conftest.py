"""A SQLite store with its writer thread, on the real clock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rota.store.sqlite.store import SqliteStore
from tests.support.databases import fresh_file
from tests.support.world import World


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rota.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(fresh_file(path.parent, path.name))
    yield store
    store.close()


@pytest.fixture
def world(store: SqliteStore) -> World:
    return World(store)
