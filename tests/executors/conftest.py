"""What tests of executors leave as they found it."""

from __future__ import annotations

import asyncio
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
    for _ in range(3):
        await asyncio.sleep(0)  # sleep: the connections of the ended processes are read to their end.
