"""The connections that only read: one for each read that runs at the same time, and some kept for the next reads."""

from __future__ import annotations

import contextlib
import queue
import sqlite3
from collections.abc import Callable, Iterator

from rota.clock import Clock
from rota.domain.errors import ReadStopped
from rota.store.port import View
from rota.store.sqlite.file import connect, translated
from rota.store.sqlite.session import SqliteSession
from rota.store.watch import Watch

MOST_IDLE = 4


class Readers:
    """Hands out connections for one read each."""

    def __init__(self, file: str, clock: Clock, keeps: Callable[[], bool]) -> None:
        """`keeps` says whether a connection is still kept when its read has ended."""
        self._file = file
        self._clock = clock
        self._keeps = keeps
        self._idle: queue.LifoQueue[tuple[sqlite3.Connection, SqliteSession]] = queue.LifoQueue()

    @contextlib.contextmanager
    def session(self, watch: Watch) -> Iterator[View]:
        try:
            connection, session = self._idle.get_nowait()
        except queue.Empty:
            connection = connect(self._file, write=False)
            session = SqliteSession(connection, self._clock)
        try:
            session.begin()
            connection.execute("BEGIN")
            with watch.by(connection.interrupt):
                yield session
        except sqlite3.Error as error:
            if watch.is_stopped:
                raise ReadStopped("the read took too long: narrow it with filters, or read it in parts") from error
            raise translated(error, self._file) from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if not self._keeps() or self._idle.qsize() >= MOST_IDLE:
                connection.close()
            else:
                self._idle.put((connection, session))

    def let_go(self) -> None:
        """Closes the idle connections."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._idle.get_nowait()[0].close()
