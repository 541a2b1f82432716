"""A folder with a database; some tests share one worker, others start and kill their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.workers import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path) as site:
        yield site


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with one worker that all tests of a module use."""
    with Site(tmp_path_factory.mktemp("served")) as site:
        site.worker("--concurrency", "20", lease_s=5)
        yield site
