"""Reads a SQLite database without creating or migrating it; see `rota.store.opening.ReadOnly`.

It writes only to place arrivals, which its queries would miss. If it cannot, because the user may not write or the lock
is busy, a query does not show them until another process has placed them, which a worker does at least every `poll_s`.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from rota.clock import Clock
from rota.domain.errors import StoreError, StoreMismatch, StoreUnavailable
from rota.store import migrate
from rota.store.migrate import Migration
from rota.store.port import View
from rota.store.sqlite.file import connect, file_of, translated
from rota.store.sqlite.session import SqliteSession

P = ParamSpec("P")
T = TypeVar("T")
PLACING_S = 1.0
"""How long a query waits for the turn lock: to open the store that places arrivals, and again to place them."""


class SqliteReadOnly:
    """Implements `rota.store.opening.ReadOnly`."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._path = file_of(url)
        if not Path(self._path).exists():
            raise StoreUnavailable(
                f"there is no database at {self._path} yet: start `rota dev MODULE:APP` or set ROTA_URL"
            )
        self._connection = connect(self._path, write=False)
        self._clock = clock
        self._session = SqliteSession(self._connection, clock)
        try:
            behind = _pending(self._connection, self._path)
        except BaseException:
            self.close()
            raise
        if behind:
            self.close()
            raise StoreMismatch(f"{self._path} lacks the migration {behind[0].name}: run `rota migrate`")

    def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            if self._session.one("has_arrivals"):
                self._place_arrivals()
            self._session.begin()
            self._connection.execute("BEGIN")
            try:
                return query(self._session, *args, **kwargs)
            finally:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise translated(error, self._path) from error

    def close(self) -> None:
        self._connection.close()

    def _place_arrivals(self) -> None:
        from rota.store.sqlite.arrivals import nothing  # lazy: most commands only read
        from rota.store.sqlite.store import SqliteStore  # lazy: see above

        with contextlib.suppress(StoreError):
            store = SqliteStore(f"sqlite:///{self._path}", self._clock, busy_s=PLACING_S)
            with contextlib.closing(store):
                store.transact(nothing)


def pending(url: str) -> list[Migration]:
    """The migrations that the database lacks; all of them if the file does not exist yet."""
    path = file_of(url)
    if not Path(path).exists():
        if not Path(path).parent.is_dir():
            raise StoreUnavailable(f"the folder {Path(path).parent} does not exist: create it or change the URL")
        return migrate.pending({}, "sqlite")
    connection = connect(path, write=False)
    try:
        return _pending(connection, path)
    finally:
        connection.close()


def _pending(connection: sqlite3.Connection, path: str) -> list[Migration]:
    try:
        return migrate.pending(migrate.applied_sqlite(connection), "sqlite")
    except sqlite3.Error as error:
        raise translated(error, path) from error
