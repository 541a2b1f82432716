"""A folder and a database; some tests share one worker, others start and kill their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.databases import fresh_database
from tests.support.workers import Site

DATABASES = ("sqlite", "postgres")


def url_of(database: str) -> str:
    """The database that a site is to use; empty for the file in its folder."""
    return fresh_database() if database == "postgres" else ""


@pytest.fixture(params=DATABASES)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path, url_of(request.param)) as site:
        yield site


@pytest.fixture
def file_site(tmp_path: Path) -> Iterator[Site]:
    """For what can only happen to a file."""
    with Site(tmp_path) as site:
        yield site


@pytest.fixture(scope="module", params=DATABASES)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with one worker that all tests of a module use."""
    with Site(tmp_path_factory.mktemp("served"), url_of(request.param)) as site:
        site.worker("--concurrency", "20", lease_s=5)
        yield site
