"""Reads a SQLite database without creating, migrating or writing; see `rota.store.opening.ReadOnly`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from rota.clock import Clock
from rota.domain.errors import StoreMismatch, StoreUnavailable
from rota.store import migrate
from rota.store.migrate import Migration
from rota.store.port import View
from rota.store.sqlite.file import connect, file_of, translated
from rota.store.sqlite.readers import show_arrivals
from rota.store.sqlite.session import SqliteSession

P = ParamSpec("P")
T = TypeVar("T")


class SqliteReadOnly:
    """Implements `rota.store.opening.ReadOnly`."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._path = file_of(url)
        if not Path(self._path).exists():
            raise StoreUnavailable(
                f"there is no database at {self._path} yet: start `rota dev MODULE:APP` or set ROTA_URL"
            )
        self._connection = connect(self._path, write=False)
        self._shows_arrivals = False
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
            if not self._shows_arrivals and self._session.one("has_arrivals"):
                show_arrivals(self._connection)
                self._shows_arrivals = True
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
