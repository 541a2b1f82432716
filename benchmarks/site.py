"""Where databases are made: a folder on a disk, and for PostgreSQL a server."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import postgres
from benchmarks.database import Database
from benchmarks.database_postgres import PostgresDatabase
from benchmarks.database_sqlite import SqliteDatabase
from benchmarks.postgres import Server

KINDS = ("sqlite", "postgresql")


class Site:
    """All that a section needs to make the databases that it measures."""

    def __init__(self, folder: Path, server: Server | None = None) -> None:
        self.folder = folder
        self.server = server

    @property
    def kind(self) -> str:
        return "sqlite" if self.server is None else "postgresql"

    def describe(self) -> str:
        """The database and what makes its commits durable."""
        if self.server is None:
            return f"SQLite {sqlite3.sqlite_version} (synchronous FULL)"
        return self.server.describe()

    @contextlib.contextmanager
    def fresh(self) -> Iterator[Database]:
        """An empty database that is deleted afterwards."""
        with self.new_folder("database-") as folder:
            database: Database = (
                SqliteDatabase(folder) if self.server is None else PostgresDatabase(folder, self.server)
            )
            try:
                yield database
            finally:
                database.close()

    @contextlib.contextmanager
    def new_folder(self, prefix: str) -> Iterator[Path]:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=self.folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def opened(kind: str, folder: Path) -> Iterator[Site]:
    """A site for databases of this kind; a server lives as long as the site."""
    if kind == "sqlite":
        yield Site(folder)
    else:
        with postgres.running() as server:
            yield Site(folder, server)
