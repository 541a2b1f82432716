"""Fixtures for the command line: a folder with an app, the real command as a process, a database to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.shell import SHOP, Seed, Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A folder with shop.py in it, and no database yet."""
    (tmp_path / "shop.py").write_text(SHOP)
    return Shell(tmp_path)


@pytest.fixture
def seed(shell: Shell) -> Iterator[Seed]:
    """The same folder with a database in which the app's jobs are known."""
    with Seed(shell) as seed:
        yield seed


@pytest.fixture
def worker(shell: Shell) -> Iterator[Callable[..., None]]:
    """Starts real workers; they are drained at the end."""
    with shell.workers() as start:
        yield start
