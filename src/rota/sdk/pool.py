"""A few connections for the jobs of one process that complete in a transaction, each in one transaction at a time.

Outside of a transaction a connection is in autocommit mode, and inside psycopg forbids `commit()` and `rollback()`: the
effect of a job cannot be committed without its outcome. Transactions are READ COMMITTED, whatever a role's default is:
a stricter one fails more often, and whoever wants that says so in the block.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from rota.domain.errors import Snooze
from rota.store.postgres.borrowed import BACKEND, RESET, RESET_SETTINGS
from rota.store.postgres.errors import translated
from rota.store.postgres.url import parse

MOST = 10
"""Connections in use at once, for each process: a worker may run hundreds of jobs, a server serve a hundred clients."""

FREE_CONFLICTS = 10
"""How often an execution may lose against other transactions at its end before that counts as an attempt."""
SOONEST_S, LATEST_S = 0.1, 10.0
_PREPARE_AFTER = 5

SyncConnection = psycopg.Connection[tuple[Any, ...]]
AsyncConnection = psycopg.AsyncConnection[tuple[Any, ...]]
_pooled: weakref.WeakSet[SyncConnection | AsyncConnection] = weakref.WeakSet()


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
            _make_new(connection)
            connection.cursor_factory = psycopg.Cursor
            connection.server_cursor_factory = psycopg.ServerCursor
            connection.execute(_reset(connection), prepare=False)
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
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            (pid,) = connection.execute(BACKEND, prepare=False).fetchone() or (0,)
        except psycopg.Error as error:
            raise translated(error, self._address.shown) from error
        _heed_pooler(connection, pid)
        return connection


class AsyncPool:
    """For async jobs: the same, on each event loop."""

    def __init__(self, url: str) -> None:
        self._address = parse(url)
        self._rooms: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            weakref.WeakKeyDictionary()
        )
        self._idle: list[tuple[asyncio.AbstractEventLoop, AsyncConnection]] = []

    async def begin(self) -> tuple[AsyncConnection, Any]:
        await self._room().acquire()
        try:
            while (connection := self._take()) is not None:
                with contextlib.suppress(psycopg.OperationalError):
                    return await self._begun(connection)
            return await self._begun(await self._connect())
        except BaseException:
            self._room().release()
            raise

    async def give(self, connection: AsyncConnection) -> None:
        try:
            _make_new(connection)
            connection.cursor_factory = psycopg.AsyncCursor
            connection.server_cursor_factory = psycopg.AsyncServerCursor
            await connection.execute(_reset(connection), prepare=False)
            self._idle.append((asyncio.get_running_loop(), connection))
        except psycopg.Error:
            _hang_up(connection)
        finally:
            self._room().release()

    async def drop(self, connection: AsyncConnection) -> bool:
        broken = connection.closed
        _hang_up(connection)
        self._room().release()
        return broken

    def close(self) -> None:
        while self._idle:
            _hang_up(self._idle.pop()[1])

    def _room(self) -> asyncio.Semaphore:
        return self._rooms.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(MOST))

    def _take(self) -> AsyncConnection | None:
        """One that was made on this loop; those of loops that are gone can be closed."""
        loop = asyncio.get_running_loop()
        for pair in [pair for pair in self._idle if pair[0].is_closed()]:
            self._idle.remove(pair)
            _hang_up(pair[1])
        for index, (home, connection) in enumerate(self._idle):
            if home is loop:
                del self._idle[index]
                return connection
        return None

    async def _begun(self, connection: AsyncConnection) -> tuple[AsyncConnection, Any]:
        block = connection.transaction()
        try:
            await block.__aenter__()
        except BaseException:
            _hang_up(connection)
            raise
        return connection, block

    async def _connect(self) -> AsyncConnection:
        try:
            connection = await psycopg.AsyncConnection.connect(
                self._address.conninfo, autocommit=True, application_name="rota job"
            )
            await connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
            (pid,) = await (await connection.execute(BACKEND, prepare=False)).fetchone() or (0,)
        except psycopg.Error as error:
            raise translated(error, self._address.shown) from error
        _heed_pooler(connection, pid)
        return connection


def _hang_up(connection: AsyncConnection) -> None:
    """Closes at once, also where the loop that it was made on is gone. To close waits for nothing."""
    with contextlib.suppress(StopIteration):
        connection.close().send(None)


def _heed_pooler(connection: SyncConnection | AsyncConnection, pid: int) -> None:
    """Behind a pooler nothing is prepared; it gives itself away, because it announces another process."""
    if pid != connection.info.backend_pid:
        _pooled.add(connection)
    _make_new(connection)


def _make_new(connection: SyncConnection | AsyncConnection) -> None:
    connection.row_factory = tuple_row
    connection.prepare_threshold = None if connection in _pooled else _PREPARE_AFTER


def _reset(connection: SyncConnection | AsyncConnection) -> bytes:
    return RESET_SETTINGS if connection in _pooled else RESET


# --- Losing against others -----------------------------------------------------------------------


class _NotSerializable(Snooze, psycopg.errors.SerializationFailure):
    """Still the error of psycopg, for a job that wants to try its block again itself."""


class _Deadlocked(Snooze, psycopg.errors.DeadlockDetected):
    """The same, for a deadlock."""


def conflict(error: BaseException, starts: int, random: float) -> Snooze | None:
    """What to raise for an error that only says that another transaction came first; None if it says anything else.

    `starts` is how many starts of the execution have not been charged before, and `random` a number in [0, 1).
    """
    if starts >= FREE_CONFLICTS:
        return None
    delay_s = min(LATEST_S, SOONEST_S * 2**starts) * (0.5 + random)
    match error:
        case psycopg.errors.SerializationFailure():
            return _NotSerializable(delay_s, str(error))
        case psycopg.errors.DeadlockDetected():
            return _Deadlocked(delay_s, str(error))
        case _:
            return None
