"""An app on a database of its own; what an app does with it is tested on each kind of database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rota import App
from tests.support.databases import fresh_database, fresh_file

ON_EVERY_DATABASE = ("test_enqueue", "test_handles")
"""The other modules are about what happens before the database, or in memory."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "database" in metafunc.fixturenames and metafunc.module.__name__.rpartition(".")[2] in ON_EVERY_DATABASE:
        metafunc.parametrize("database", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty one."""
    kind = getattr(request, "param", "sqlite")
    return fresh_database() if kind == "postgres" else fresh_file(tmp_path)


@pytest.fixture
def app(database: str) -> Iterator[App]:
    app = App("shop", url=database)
    yield app
    app.close()
