"""What tests of executors leave as they found it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from rota.executors.process import spawner


@pytest.fixture
async def closed() -> AsyncIterator[None]:
    """The spawner of the event loop ends with the test."""
    yield
    on = spawner.shared()
    on.close()
    await on.closed()
