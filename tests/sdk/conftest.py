"""An app on a database of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rota import App


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    app = App("shop", url=f"sqlite:///{tmp_path}/rota.db")
    yield app
    app.close()
