"""What tests of executors leave as they found it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from rota.executors import stage


@pytest.fixture
async def closed() -> AsyncIterator[None]:
    """The stage of the event loop goes with the test."""
    yield
    on = stage.shared()
    on.close()
    await on.closed()
