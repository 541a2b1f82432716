"""A loop is a step that returns how long to sleep. Wake-ups cut the sleep short; polling is the truth."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from rota.domain.errors import StoreError

log = logging.getLogger("rota.engine")

FIRST_BACKOFF_S = 0.1
LONGEST_BACKOFF_S = 1.0


class Wake:
    """Something to sleep on that can be woken, before or during the sleep."""

    def __init__(self) -> None:
        self._woken = False
        self._sleeper: asyncio.Future[None] | None = None

    @property
    def is_awaited(self) -> bool:
        return self._sleeper is not None

    def wake(self) -> None:
        self._woken = True
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)

    async def sleep(self, seconds: float | None) -> bool:
        """Returns early, with True, if woken. None sleeps until woken."""
        if not self._woken and seconds != 0:
            loop = asyncio.get_running_loop()
            self._sleeper = loop.create_future()
            timer = None if seconds is None else loop.call_later(seconds, self._expire, self._sleeper)
            try:
                await self._sleeper
            finally:
                self._sleeper = None
                if timer is not None:
                    timer.cancel()
        woken, self._woken = self._woken, False
        return woken

    @staticmethod
    def _expire(sleeper: asyncio.Future[None]) -> None:
        if not sleeper.done():
            sleeper.set_result(None)


class Loop:
    """Runs a step for ever. A store that is out of reach makes it wait longer and longer, and says so once."""

    def __init__(self, name: str, step: Callable[[], Awaitable[float | None]]) -> None:
        self.name = name
        self.wake = Wake()
        self._step = step
        self._backoff_s = 0.0

    async def run(self) -> None:
        while True:
            await self.wake.sleep(await self._next_delay())

    async def _next_delay(self) -> float | None:
        try:
            delay = await self._step()
        except StoreError as error:
            if not self._backoff_s:
                log.warning("%s: the store is out of reach, trying again: %s", self.name, error)
            self._backoff_s = min(LONGEST_BACKOFF_S, max(FIRST_BACKOFF_S, 2 * self._backoff_s))
            return self._backoff_s
        if self._backoff_s:
            log.warning("%s: goes on", self.name)
            self._backoff_s = 0.0
        return delay
