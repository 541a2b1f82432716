"""A few connections for the jobs of one process that complete in a transaction, each in one transaction at a time.

Outside of a transaction a connection is in autocommit mode, and inside psycopg forbids `commit()` and `rollback()`: the
effect of a job cannot be committed without its outcome.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from rota.store.postgres_borrowed import BACKEND, RESET
from rota.store.postgres_errors import translated
from rota.store.postgres_url import parse

MOST = 10
"""Connections in use at once, for each process: a worker may run hundreds of jobs, a server serve a hundred clients."""

SyncConnection = psycopg.Connection[tuple[Any, ...]]
AsyncConnection = psycopg.AsyncConnection[tuple[Any, ...]]


class Pool:
    """For sync jobs, in threads."""

    def __init__(self, url: str) -> None:
        self._address = parse(url)
        self._room = threading.Semaphore(MOST)
        self._idle: list[SyncConnection] = []

    def begin(self) -> tuple[SyncConnection, Any]:
        """A connection, and the transaction that was opened on it."""
        self._room.acquire()
        try:
            while self._idle:
                # One that broke while nobody used it says so now, and the next one is tried.
                with contextlib.suppress(IndexError, psycopg.OperationalError):
                    return self._begun(self._idle.pop())
            return self._begun(self._connect())
        except BaseException:
            self._room.release()
            raise

    def give(self, connection: SyncConnection) -> None:
        """Takes it back, as new."""
        try:
            connection.row_factory = tuple_row
            connection.execute(RESET, prepare=False)
            self._idle.append(connection)
        except psycopg.Error:
            connection.close()
        finally:
            self._room.release()

    def drop(self, connection: SyncConnection) -> bool:
        """Returns whether it was broken."""
        broken = connection.closed
        connection.close()
        self._room.release()
        return broken

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _begun(self, connection: SyncConnection) -> tuple[SyncConnection, Any]:
        block = connection.transaction()
        try:
            block.__enter__()
        except BaseException:
            connection.close()
            raise
        return connection, block

    def _connect(self) -> SyncConnection:
        try:
            connection = psycopg.connect(self._address.conninfo, autocommit=True, application_name="rota job")
            (pid,) = connection.execute(BACKEND, prepare=False).fetchone() or (0,)
        except psycopg.Error as error:
            raise translated(error, self._address.shown) from error
        _heed_pooler(connection, pid)
        return connection


class AsyncPool:
    """For async jobs: the same, on each event loop."""

    def __init__(self, url: str) -> None:
        self._address = parse(url)
        self._loops: weakref.WeakKeyDictionary[Any, tuple[asyncio.Semaphore, list[AsyncConnection]]] = (
            weakref.WeakKeyDictionary()
        )

    async def begin(self) -> tuple[AsyncConnection, Any]:
        room, idle = self._here()
        await room.acquire()
        try:
            while idle:
                with contextlib.suppress(psycopg.OperationalError):
                    return await self._begun(idle.pop())
            return await self._begun(await self._connect())
        except BaseException:
            room.release()
            raise

    async def give(self, connection: AsyncConnection) -> None:
        room, idle = self._here()
        try:
            connection.row_factory = tuple_row
            await connection.execute(RESET, prepare=False)
            idle.append(connection)
        except psycopg.Error:
            await connection.close()
        finally:
            room.release()

    async def drop(self, connection: AsyncConnection) -> bool:
        room, _ = self._here()
        broken = connection.closed
        connection.pgconn.finish()
        room.release()
        return broken

    def close(self) -> None:
        for _, idle in list(self._loops.values()):
            while idle:
                idle.pop().pgconn.finish()

    def _here(self) -> tuple[asyncio.Semaphore, list[AsyncConnection]]:
        return self._loops.setdefault(asyncio.get_running_loop(), (asyncio.Semaphore(MOST), []))

    async def _begun(self, connection: AsyncConnection) -> tuple[AsyncConnection, Any]:
        block = connection.transaction()
        try:
            await block.__aenter__()
        except BaseException:
            connection.pgconn.finish()
            raise
        return connection, block

    async def _connect(self) -> AsyncConnection:
        try:
            connection = await psycopg.AsyncConnection.connect(
                self._address.conninfo, autocommit=True, application_name="rota job"
            )
            (pid,) = await (await connection.execute(BACKEND, prepare=False)).fetchone() or (0,)
        except psycopg.Error as error:
            raise translated(error, self._address.shown) from error
        _heed_pooler(connection, pid)
        return connection


def _heed_pooler(connection: SyncConnection | AsyncConnection, pid: int) -> None:
    """Behind a pooler nothing is prepared; it gives itself away, because it announces another process."""
    if pid != connection.info.backend_pid:
        connection.prepare_threshold = None
