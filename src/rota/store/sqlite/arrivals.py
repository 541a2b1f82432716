"""Arrivals: executions that SQLite has accepted, and that the next transaction places.

Placing one execution changes five pages of the database: those of `execution` and its index, of `ready` and its index,
and of `stat_delta`. Each page takes as long as a tenth of the commit. For one execution that is the largest part of the
work beside waiting for the disk; for a hundred it hardly counts, because they share the pages.

So a caller that enqueues one execution after the other adds a row to one table, `arrival`, in one statement that is its
own transaction: a durable enqueue then takes little longer than SQLite needs for a row. Every other operation that a
store runs begins by placing all arrivals, of whatever process, and a read is preceded by such an operation if there are
any. (If the lock is busy, it reads through views instead: `readers.py`.) So operations and queries find an accepted
execution in `execution` and `ready`; only the statements `arrive`, `has_arrivals` and `place_arrivals` use `arrival`.

The mark in the file of the turn lock says whether there may be arrivals. It is set before the first one is committed,
and cleared after the commit of the transaction that has placed them.

A process adds at most `MOST_ARRIVALS` before its next enqueue places them. An execution that is enqueued by itself is
placed directly, because its caller or a worker is likely to read it next.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from typing import Any

from rota.domain.errors import StoreError
from rota.store.pending_call import rows_of
from rota.store.port import Submitted, Tx, declared
from rota.store.sqlite.file import TurnLock
from rota.store.sqlite.session import SqliteSession

MOST_ARRIVALS = 500
"""The transaction that places this many takes some milliseconds longer."""
LONGEST_GAP_US = 5_000
"""Enqueues that begin within this time of each other are in a row. After a longer gap an idle worker would claim the
execution at once, and one transaction is cheaper than an arrival and a transaction that places it."""
PLACING_S = 0.2
"""How long a read waits until the arrivals are placed. Otherwise it uses views that include them, which are slower."""


class Arrivals:
    """The arrivals of one database, for the thread of a process that writes."""

    def __init__(self, connection: sqlite3.Connection, session: SqliteSession, turn: TurnLock) -> None:
        self._connection = connection
        self._session = session
        self._turn = turn
        self._added: int | None = None
        """How many arrivals this process has added since it last placed an enqueue. None if the next enqueue must be
        placed directly, because the process has read, or written something else."""
        self._last_at = 0
        """When the last enqueue of a caller began."""
        self._since_checkpoint = 0
        """How many arrivals this process has added since its last checkpoint."""
        self._clears_mark = False
        """Whether the open transaction has placed all arrivals, so that its commit clears the mark."""

    def check_mark(self) -> None:
        """Called under the turn lock when a process opens the file: a crash of the machine may have lost the mark."""
        if self._session.one("has_arrivals"):
            self._turn.mark(is_set=True)

    def add(self, op: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Runs an operation as one statement, without BEGIN and COMMIT, and returns its result.

        None, and nothing written, if it must run in a transaction.
        """
        form, added = declared(op).arrival, self._added  # A read of another thread may change it meanwhile.
        if form is None or added is None or added >= MOST_ARRIVALS or rows_of(args) != 1:
            return None
        session = self._session
        session.begin()
        if not 0 <= session.now - self._last_at <= LONGEST_GAP_US:
            return None
        try:
            if not self._turn.is_marked():
                self._turn.mark(is_set=True)
            result = form(session, *args)
        except (sqlite3.Error, OSError):
            return None  # The caller uses a transaction then, which waits if the file is busy, or reports the error.
        if result is not None:
            self._added, self._last_at = added + 1, session.now
            self._since_checkpoint += 1
        return result

    @property
    def has_added(self) -> bool:
        """Whether the last operation of a caller has become an arrival."""
        return bool(self._added)

    def place(self) -> None:
        """Called when a transaction has begun."""
        self._added = None
        self._clears_mark = self._turn.is_marked()
        if self._clears_mark and self._session.one("has_arrivals"):
            self._session.run("place_arrivals")

    def committed(self, op: Callable[..., Any] | None = None) -> None:
        """Called when a transaction has been committed. `op` is the operation of a caller that has written by itself:
        its next enqueue may become an arrival."""
        if self._clears_mark:
            with contextlib.suppress(OSError):
                self._turn.mark(is_set=False)
        if op is not None and declared(op).arrival is not None and self._turn.is_there:
            self._added, self._last_at = 0, self._session.now
        if self._since_checkpoint >= MOST_ARRIVALS:
            self._since_checkpoint = 0
            # After a checkpoint the next commits use the WAL from its start: one that makes the file grow takes nearly
            # twice as long. SQLite checkpoints by itself at 8,000 pages, which suits transactions of many rows.
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint").fetchall()

    def are_placed(self, submit: Callable[[Callable[[Tx], None]], Submitted[None]]) -> bool:
        """Asked before a read: places the arrivals, and is False if that takes long or is not possible.

        The next enqueue of this process is placed directly.
        """
        self._added = None
        if not self._turn.is_marked():
            return True
        future = submit(_nothing)
        try:
            future.result(PLACING_S)
        except (StoreError, TimeoutError):
            future.cancel()
            return False
        return True


def _nothing(tx: Tx) -> None:
    """An operation whose transaction only places the arrivals."""
