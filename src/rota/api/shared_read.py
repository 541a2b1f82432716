"""A read that open pages share: its answer is kept for a second, and requests that come meanwhile wait for it.

Ten pages that show the same namespace cost no more than one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rota.api.services import Services
from rota.store.port import View

T = TypeVar("T")
KEPT_S = 1.0
MOST_KEPT = 1000


class SharedRead(Generic[T]):
    """The answers of one query by namespace."""

    def __init__(self, services: Services, query: Callable[[View, str], T]) -> None:
        self._services, self._query = services, query
        self._kept: dict[str, tuple[float, asyncio.Task[T]]] = {}

    async def of(self, namespace: str) -> T:
        now = self._services.clock.monotonic()
        kept = self._kept.get(namespace)
        if kept is None or (kept[1].done() and (now >= kept[0] + KEPT_S or kept[1].exception() is not None)):
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            kept = now, asyncio.get_running_loop().create_task(self._read(namespace))
            self._kept[namespace] = kept
        # A caller that leaves must not end the read of the others.
        return await asyncio.shield(kept[1])

    async def _read(self, namespace: str) -> T:
        found = await self._services.read(self._query, namespace)
        task: Any = asyncio.current_task()
        self._kept[namespace] = self._services.clock.monotonic(), task
        return found
