"""Arrivals: executions that SQLite has accepted, and that the next transaction places.

Placing one execution changes five pages of the database: those of `execution` and its index, of `ready` and its index,
and of `stat_delta`. Each page takes as long as a tenth of the commit. For one execution that is the largest part of the
work beside waiting for the disk; for a hundred it hardly counts, because they share the pages.

So a caller that enqueues one execution after the other adds a row to one table, `arrival`, in one statement that is its
own transaction: a durable enqueue then takes little longer than SQLite needs for a row. Every other transaction of any
process begins by placing all arrivals, and a read is preceded by such a transaction if there are any. So outside this
folder an accepted execution is always in `execution` and `ready`, and no other statement knows of arrivals.

The mark in the file of the turn lock says whether there may be arrivals. It is set before the first one is committed,
and cleared after the commit of the transaction that has placed them.

A process adds at most `MOST` arrivals before its next enqueue places them. An execution that is enqueued by itself is
placed at once, because its caller or a worker is likely to read it next, and so is one that comes later than `CLOSE`.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from typing import Any

from rota.store.pending_call import rows_of
from rota.store.port import declared
from rota.store.sqlite.file import TurnLock
from rota.store.sqlite.session import SqliteSession

MOST = 500
"""Placing so many takes some milliseconds, which the transaction that places them takes longer."""
CLOSE = 5_000
"""Enqueues that begin within so many microseconds are in a row. Otherwise a worker with nothing else to do claims each
of them, and one transaction that places it is faster than two."""


class Arrivals:
    """The arrivals of one database, for the thread of a process that writes."""

    def __init__(self, connection: sqlite3.Connection, session: SqliteSession, turn: TurnLock) -> None:
        self._connection = connection
        self._session = session
        self._turn = turn
        self._added: int | None = None
        """How many this process has added since its last transaction; None if that was no enqueue of a caller."""
        self._last_at = 0
        """When the last enqueue of a caller began."""
        self._in_wal = 0
        """How many this process has added since it has last begun the WAL anew."""
        self._is_known = False
        """Whether this process has looked since it opened the file: the mark may be wrong after a machine crash."""
        self._has_looked = False

    def add(self, op: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Runs an operation as one statement outside a transaction, and returns its result.

        None, and nothing written, if the operation must run in a transaction.
        """
        added = self._added  # A read of another thread may change it meanwhile.
        if added is None or added >= MOST or rows_of(args) != 1:
            return None
        form, session = declared(op).arrival, self._session
        session.begin()
        if form is None or not 0 <= session.now - self._last_at <= CLOSE:
            return None
        try:
            if not self._turn.is_marked():
                self._turn.mark(is_set=True)
            result = form(session, *args)
        except (sqlite3.Error, OSError):
            return None  # A transaction waits for a busy file, and finds out what is wrong with another one.
        if result is None:
            return None
        self._added, self._last_at = added + 1, session.now
        self._in_wal += 1
        return result

    @property
    def has_added(self) -> bool:
        """Whether the last operation of a caller was added."""
        return bool(self._added)

    def place(self) -> None:
        """Called when a transaction has begun."""
        self._added = None
        self._has_looked = not self._is_known or self._turn.is_marked()
        if self._has_looked and self._session.one("has_arrivals"):
            self._session.run("place_arrivals")

    def committed(self, op: Callable[..., Any] | None = None) -> None:
        """Called when a transaction has been committed. `op` is the operation of a caller that has written by itself:
        its next enqueue may become an arrival."""
        if self._has_looked:
            self._is_known = True
            with contextlib.suppress(OSError):
                self._turn.mark(is_set=False)
        if op is not None and declared(op).arrival is not None:
            self._added, self._last_at = 0, self._session.now
        if self._in_wal >= MOST:
            self._in_wal = 0
            # A commit takes nearly twice as long while the WAL grows, so it is begun anew. SQLite does that by itself
            # only when the WAL has many more pages, which suits transactions of many rows.
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint").fetchall()

    def are_placed(self) -> bool:
        """Asked before a read. The next enqueue of this process is placed at once."""
        self._added = None
        return self._is_known and not self._turn.is_marked()

    def forget(self) -> None:
        """Called when the file is closed, which another process may change before it is opened again."""
        self._is_known = False
