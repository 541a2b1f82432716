"""A folder and a database; some tests share one worker, others start and kill their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.databases import fresh_database
from tests.support.proving import proof
from tests.support.workers import Site

DATABASES = ("sqlite", "postgres")
on_both = pytest.mark.parametrize("site", DATABASES, indirect=True)
"""For tests in which the database decides: who holds an execution, what becomes of it, who hears of it."""
served_on_both = pytest.mark.parametrize("served", DATABASES, indirect=True, scope="module")


def url_of(database: str) -> str:
    """The database that a site is to use; empty for the file in its folder."""
    return fresh_database() if database == "postgres" else ""


@pytest.fixture(params=["sqlite", proof("postgres")])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """On PostgreSQL only in `make prove`, unless the test is marked with `on_both`."""
    with Site(tmp_path, url_of(request.param)) as site:
        yield site


@pytest.fixture
def file_site(tmp_path: Path) -> Iterator[Site]:
    """For what can only happen to a file."""
    with Site(tmp_path) as site:
        yield site


@pytest.fixture(scope="module", params=["sqlite", proof("postgres")])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with one worker that all tests of a module use, on the same databases as `site`."""
    with Site(tmp_path_factory.mktemp("served"), url_of(request.param)) as site:
        site.worker("--concurrency", "20", lease_s=5)
        yield site
