"""Looks after the sources of events that the deploy in force declares: folders and outbox tables.

Every supervisor of the app does. For a folder, the keys of the events make one event of each file and version. For an
outbox table, the database lets one node at a time read it.

A folder may be on a network file system that does not answer. So it is listed in a thread of its own, which nothing
waits for at the end of the process.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from rota.clock import Clock
from rota.domain import source as sources
from rota.domain.errors import RotaError
from rota.domain.source import Folder, Outbox, Source
from rota.engine.folder_watch import FolderWatch, listed
from rota.engine.loop import Loop
from rota.engine.port import SupervisorStore
from rota.ids import IdSource
from rota.ops.events.outbox import Drained

log = logging.getLogger("rota.engine")

T = TypeVar("T")
FIRST_S, REFRESH_S = 0.5, 5.0
"""How often to look which deploy is in force, before there is one and afterwards."""
BATCH = 500
MOST_LEFT = 1000


class Sources:
    """The sources of one app."""

    def __init__(self, store: SupervisorStore, clock: Clock, namespace: str, app: str) -> None:
        self._store = store
        self._clock = clock
        self._namespace = namespace
        self._app = app
        self._deploy: int | None = None
        self._running: dict[Source, asyncio.Task[None]] = {}
        self.loop = Loop("sources", self.step)

    async def step(self) -> float:
        """Starts what is declared now, and stops what no longer is."""
        found = await self._store.sources(self._namespace, self._app, self._deploy)
        if found is None:
            return FIRST_S if self._deploy is None else REFRESH_S
        self._deploy, wanted = found[0], set(found[1])
        for gone in self._running.keys() - wanted:
            self._running.pop(gone).cancel()
        for source in wanted - self._running.keys():
            watcher = self._folder(source) if isinstance(source, Folder) else self._outbox(source)
            self._running[source] = asyncio.create_task(watcher, name=f"source {sources.name_of(source)}")
        return REFRESH_S

    def close(self) -> None:
        for task in self._running.values():
            task.cancel()

    async def _folder(self, source: Folder) -> None:
        watch, trouble = FolderWatch(source, IdSource(self._clock)), _Trouble(source)
        while True:
            try:
                found = await _in_thread(lambda: listed(source))
                settled = watch.settled(found, self._clock.monotonic())
                for start in range(0, len(settled), BATCH):
                    batch = settled[start : start + BATCH]
                    await self._store.emit_files(self._namespace, [watch.emission(one) for one in batch])
                    watch.tell(batch)
                trouble.is_over()
            except Exception as error:  # An error that is not foreseen must not end the source.
                trouble.tell(_words(error))
            await asyncio.sleep(source.every_s)

    async def _outbox(self, source: Outbox) -> None:
        trouble = _Trouble(source)
        left: set[int] = set()
        while True:
            drained = Drained()
            try:
                drained = await self._store.drain_outbox(self._namespace, source.table, BATCH, sorted(left))
                trouble.is_over()
            except Exception as error:
                trouble.tell(_words(error))
            for id, why in drained.refused.items():
                log.error("row %d of the outbox %s is no event, and stays there: %s", id, source.table, why)
            left.update(list(drained.refused)[: MOST_LEFT - len(left)])
            if not drained.emitted:
                await asyncio.sleep(source.every_s)


class _Trouble:
    """Logs a failure once, and that it is over."""

    def __init__(self, source: Source) -> None:
        self._name = sources.name_of(source)
        self._last: str | None = None

    def tell(self, why: str) -> None:
        if self._last != why:
            log.warning("the source %s cannot be read, trying again: %s", self._name, why)
        self._last = why

    def is_over(self) -> None:
        if self._last is not None:
            log.warning("the source %s can be read again", self._name)
        self._last = None


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, OSError | RotaError) else f"{type(error).__name__}: {error}"


async def _in_thread(call: Callable[[], T]) -> T:
    """The answer of a call that may hang, from a thread that does not keep the process alive."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def give(result: T | None, error: Exception | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result, error = None, None
        try:
            result = call()
        except Exception as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(give, result, error)
        except RuntimeError:
            return  # The event loop is closed.

    threading.Thread(target=work, name="rota-folder", daemon=True).start()
    return await answer
