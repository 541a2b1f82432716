"""The connections that only read: one for each read that runs at the same time, and some kept for the next reads.

While arrivals cannot be placed, because the write lock is busy, the disk is full or the file may not be written, a read
sees them through views with the names of the tables: SQLite looks for a name among temporary views first.
"""

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


def show_arrivals(connection: sqlite3.Connection) -> None:
    """Makes the queries of a connection see arrivals as if they had been placed. They are slower from now on."""
    (state,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'state'").fetchone()
    connection.execute("PRAGMA query_only = OFF")
    connection.execute("CREATE TEMP VIEW execution AS SELECT * FROM main.all_execution")
    connection.execute("CREATE TEMP VIEW ready AS SELECT * FROM main.all_ready")
    connection.execute(state.replace("CREATE VIEW", "CREATE TEMP VIEW", 1))
    connection.execute("PRAGMA query_only = ON")


class Readers:
    """Hands out connections for one read each."""

    def __init__(self, file: str, clock: Clock, keeps: Callable[[], bool]) -> None:
        """`keeps` says whether a connection is still kept when its read has ended."""
        self._file = file
        self._clock = clock
        self._keeps = keeps
        self._idle: queue.LifoQueue[tuple[sqlite3.Connection, SqliteSession]] = queue.LifoQueue()

    @contextlib.contextmanager
    def session(self, watch: Watch, *, shows_arrivals: bool) -> Iterator[View]:
        connection, session = self._opened() if shows_arrivals else self._taken()
        try:
            if shows_arrivals:
                show_arrivals(connection)
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
            if shows_arrivals or not self._keeps() or self._idle.qsize() >= MOST_IDLE:
                connection.close()
            else:
                self._idle.put((connection, session))

    def let_go(self) -> None:
        """Closes the idle connections."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._idle.get_nowait()[0].close()

    def _taken(self) -> tuple[sqlite3.Connection, SqliteSession]:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._opened()

    def _opened(self) -> tuple[sqlite3.Connection, SqliteSession]:
        connection = connect(self._file, write=False)
        return connection, SqliteSession(connection, self._clock)
