"""The rates of the database and the disk at this moment without Rota, with the same settings."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.postgres import Server
from benchmarks.site import Site

BATCH = 100
_ROW = ("x" * 36, "y" * 60)
Write = Callable[[int], None]


def commits_per_s(site: Site, seconds: float) -> float:
    """Transactions of one row, each on the disk before the next begins."""
    return _per_s(site, 1, seconds)


def rows_per_s(site: Site, seconds: float) -> float:
    """Rows in transactions of a hundred."""
    return _per_s(site, BATCH, seconds)


def _per_s(site: Site, batch: int, seconds: float) -> float:
    with _sqlite(site.folder) if site.server is None else _postgres(site.server) as write:
        count, began = 0, time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds:
            write(batch)
            count += batch
    return count / passed


@contextlib.contextmanager
def _sqlite(folder: Path) -> Iterator[Write]:
    path = folder / "raw.db"
    connection = sqlite3.connect(path, isolation_level=None)

    def write(batch: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO line VALUES (?, ?)", [_ROW] * batch)
        connection.execute("COMMIT")

    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE IF NOT EXISTS line (id TEXT, text TEXT)")
        yield write
    finally:
        connection.close()
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextlib.contextmanager
def _postgres(server: Server) -> Iterator[Write]:
    """One statement, and so one transaction, for a batch: arrays go over the wire, as Rota's batches do."""
    name = server.create_database()
    connection = server.connect(name)

    def write(batch: int) -> None:
        connection.execute("INSERT INTO line SELECT * FROM unnest(%s::text[], %s::text[])", columns[batch])

    columns = {batch: [[value] * batch for value in _ROW] for batch in (1, BATCH)}
    try:
        connection.execute("CREATE TABLE line (id TEXT, text TEXT)")
        yield write
    finally:
        connection.close()
        server.drop_database(name)
