"""Reads the sources of events that the deploy in force declares: folders and outbox tables.

Every supervisor of the app reads them. The events of a folder have keys, so each version of a file is emitted once. A
lock in the database lets one supervisor at a time read an outbox table.

A folder may be on a network file system that does not answer. So it is listed in a daemon thread, for which the process
does not wait when it ends.
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
from rota.engine.outbox_refusals import OutboxRefusals
from rota.engine.port import SupervisorStore
from rota.ids import IdSource
from rota.ops.events.outbox import EmittedRows

log = logging.getLogger("rota.engine")

T = TypeVar("T")
FIRST_S, REFRESH_S = 0.5, 5.0
"""How often to read which deploy is in force: before there is one, and afterwards."""
BATCH = 500


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
        """Starts tasks for the sources that are declared now, and stops those of sources that no longer are."""
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
        watch, failures = FolderWatch(source, IdSource(self._clock)), _FailureLog(source)
        while True:
            try:
                found = await _in_thread(lambda: listed(source))
                settled = watch.settled(found, self._clock.monotonic())
                for start in range(0, len(settled), BATCH):
                    batch = settled[start : start + BATCH]
                    await self._store.emit_files(self._namespace, [watch.emission(one) for one in batch])
                    watch.note_emitted(batch)
                failures.end()
            except Exception as error:  # An unforeseen error must not end the task.
                failures.log(_words(error))
            await asyncio.sleep(source.every_s)

    async def _outbox(self, source: Outbox) -> None:
        failures, refusals = _FailureLog(source), OutboxRefusals(source.table, self._clock)
        while True:
            found = EmittedRows()
            try:
                found = await self._store.emit_rows(self._namespace, source.table, BATCH, refusals.skipped())
                failures.end()
            except Exception as error:
                failures.log(_words(error))
            refusals.add(found.refused)
            if not found.emitted and len(found.refused) < BATCH:
                await asyncio.sleep(source.every_s)


class _FailureLog:
    """Logs when a source cannot be read, once for each reason, and when it can be read again."""

    def __init__(self, source: Source) -> None:
        self._name = sources.name_of(source)
        self._last: str | None = None

    def log(self, why: str) -> None:
        if self._last != why:
            log.warning("the source %s cannot be read, trying again: %s", self._name, why)
        self._last = why

    def end(self) -> None:
        if self._last is not None:
            log.warning("the source %s can be read again", self._name)
        self._last = None


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, OSError | RotaError) else f"{type(error).__name__}: {error}"


async def _in_thread(call: Callable[[], T]) -> T:
    """The result of a call that may hang. It runs in a daemon thread, which does not keep the process alive."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def resolve(result: T | None, error: Exception | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result, error = None, None
        try:
            result = call()
        except Exception as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(resolve, result, error)
        except RuntimeError:
            return  # The event loop is closed.

    threading.Thread(target=work, name="rota-folder", daemon=True).start()
    return await future
