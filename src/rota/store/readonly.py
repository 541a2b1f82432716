"""Reads a database without creating, migrating or writing anything.

For the commands that only show something: with a wrong URL they create no database, and a newer version of Rota does
not change the schema under older workers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from rota.clock import Clock
from rota.domain.errors import DefinitionError, StoreMismatch, StoreUnavailable
from rota.store import migrate
from rota.store.migrate import Migration
from rota.store.opening import unknown_scheme
from rota.store.port import View
from rota.store.postgres import url as postgres_url
from rota.store.postgres.url import is_postgres
from rota.store.sqlite.file import MEMORY, connect, path_of, translated
from rota.store.sqlite.session import SqliteSession

P = ParamSpec("P")
T = TypeVar("T")


class ReadOnly(Protocol):
    """The reading half of a `Store`. The database must exist and be up to date."""

    def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `query` over one consistent state."""

    def close(self) -> None: ...


def open_reader(url: str, clock: Clock) -> ReadOnly:
    if is_postgres(url):
        from rota.store.postgres.readonly import PostgresReadOnly  # lazy: the other database need not be loaded

        return PostgresReadOnly(url, clock)
    return SqliteReadOnly(url, clock)


def place_of(url: str) -> str:
    """Where the database is, without secrets; refuses a database in memory."""
    return postgres_url.parse(url).shown if is_postgres(url) else file_of(url)


class SqliteReadOnly:
    """Implements `ReadOnly`."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._path = file_of(url)
        if not Path(self._path).exists():
            raise StoreUnavailable(
                f"there is no database at {self._path} yet: start `rota dev MODULE:APP` or set ROTA_URL"
            )
        self._connection = connect(self._path, write=False)
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
        """Runs `query` over one consistent state."""
        try:
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
    """The migrations that the database behind `url` lacks; all of them if it does not exist yet."""
    if is_postgres(url):
        from rota.store.postgres import readonly as postgres_readonly  # lazy: the other database need not be loaded

        return postgres_readonly.pending(url)
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


def file_of(url: str) -> str:
    """The file behind a URL; refuses a database in memory."""
    if url.split(":", 1)[0] != "sqlite":
        raise unknown_scheme(url)
    path = path_of(url)
    if path == MEMORY:
        raise DefinitionError("a database in memory belongs to one process: use sqlite:///file.db (ROTA_URL or --url)")
    return path


def _pending(connection: sqlite3.Connection, path: str) -> list[Migration]:
    try:
        return migrate.pending(migrate.applied_sqlite(connection), "sqlite")
    except sqlite3.Error as error:
        raise translated(error, path) from error
