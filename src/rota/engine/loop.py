"""A loop is a step that returns how long to sleep. Wake-ups only cut the sleep short: every loop also polls.

`run` starts the event loop of Rota's processes.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from rota.domain.errors import StoreError

log = logging.getLogger("rota.engine")

T = TypeVar("T")
SWITCH_INTERVAL_S = 0.0005
FIRST_BACKOFF_S = 0.1
LONGEST_BACKOFF_S = 1.0


class Wake:
    """A sleep that can be cut short, before it begins or during it."""

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
    """Runs a step forever. Backs off while the store is out of reach, and logs that once."""

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
            log.warning("%s: resumed", self.name)
            self._backoff_s = 0.0
        return delay


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs `main` to its end, on uvloop where there is one."""
    # The store's thread and the event loop alternate all the time, and must get the interpreter lock back quickly from
    # code that computes.
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # lazy: only where it is installed, which is everywhere but Windows
    except ImportError:
        return None
    return uvloop.new_event_loop
