"""Connections for `ctx.transaction()`: a few for each process, reset and reused between jobs.

Outside of a transaction a connection is in autocommit mode, and inside psycopg forbids `commit()` and `rollback()`: the
effect of a job cannot be committed without its outcome. Transactions are READ COMMITTED, whatever a role's default is:
a stricter level fails more often, and a job that needs one sets it in its block.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

import psycopg

from rota.sdk.sync_or_async import awaited
from rota.store.postgres.borrowed import BACKEND, RESET, RESET_SETTINGS
from rota.store.postgres.errors import translated
from rota.store.postgres.url import parse

MOST = 10
"""Connections in use at once, for each process: a worker may run hundreds of jobs, a server serve a hundred clients."""
_ATTRIBUTES = ("cursor_factory", "server_cursor_factory", "row_factory", "prepare_threshold")


class JobConnection:
    """One connection of psycopg, sync or async, and the transaction that is open on it."""

    def __init__(self, connection: Any, *, is_pooled: bool) -> None:
        self.connection = connection
        self._block: Any = None
        if is_pooled:
            connection.prepare_threshold = None
        self._reset = RESET_SETTINGS if is_pooled else RESET
        self._as_new = {name: getattr(connection, name) for name in _ATTRIBUTES}

    async def begin(self) -> None:
        block = self._block = self.connection.transaction()
        try:
            await awaited(block.__aenter__() if hasattr(block, "__aenter__") else block.__enter__())
        except BaseException:
            self.close()
            raise

    async def end(self, error: BaseException | None) -> None:
        """Commits, or rolls back after an error."""
        leave = self._block.__aexit__ if hasattr(self._block, "__aexit__") else self._block.__exit__
        await awaited(leave(type(error) if error else None, error, error and error.__traceback__))

    async def reset(self) -> None:
        for name, value in self._as_new.items():
            setattr(self.connection, name, value)
        await awaited(self.connection.execute(self._reset, prepare=False))

    def close(self) -> None:
        """Does not wait for the server, so an async connection can be closed outside of its event loop."""
        self.connection.pgconn.finish()


class Pool:
    """The sync connections of a process, for jobs in threads; or the async ones of one event loop."""

    def __init__(self, url: str, *, is_async: bool = False) -> None:
        self._address = parse(url)
        self._is_async = is_async
        self._slots = asyncio.Semaphore(MOST) if is_async else threading.Semaphore(MOST)
        self._idle: list[JobConnection] = []

    async def begin(self) -> JobConnection:
        """A connection with an open transaction; waits while `MOST` are in use."""
        await awaited(self._slots.acquire())
        try:
            while self._idle:
                # A connection that broke while it was idle fails here, and the next one is tried.
                with contextlib.suppress(IndexError, psycopg.OperationalError):
                    held = self._idle.pop()
                    await held.begin()
                    return held
            held = await self._connect()
            await held.begin()
        except BaseException:
            self._slots.release()
            raise
        return held

    async def give_back(self, held: JobConnection) -> None:
        try:
            await held.reset()
            self._idle.append(held)
        except psycopg.Error:
            held.close()
        finally:
            self._slots.release()

    def drop(self, held: JobConnection) -> None:
        held.close()
        self._slots.release()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    async def _connect(self) -> JobConnection:
        kind: Any = psycopg.AsyncConnection if self._is_async else psycopg.Connection
        try:
            connection = await awaited(
                kind.connect(self._address.conninfo, autocommit=True, application_name="rota job")
            )
            await awaited(connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED))
            cursor = await awaited(connection.execute(BACKEND, prepare=False))
            (pid,) = await awaited(cursor.fetchone())
        except psycopg.Error as error:
            raise translated(error, self._address.shown) from error
        # A pooler announces another process than the one that answers. Behind it nothing may be prepared, and only
        # settings are reset: the rest of the session may belong to another client by now.
        return JobConnection(connection, is_pooled=pid != connection.info.backend_pid)
