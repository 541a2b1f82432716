"""What SQLite and the disk can do at this moment without us, with the same settings as ours."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

BATCH = 100
_ROW = ("x" * 36, "y" * 60)


def commits_per_s(folder: Path, seconds: float) -> float:
    """Transactions of one row, each on the disk before the next begins."""
    return _per_s(folder / "raw-commits.db", 1, seconds)


def rows_per_s(folder: Path, seconds: float) -> float:
    """Rows in transactions of a hundred."""
    return _per_s(folder / "raw-rows.db", BATCH, seconds)


def _per_s(path: Path, batch: int, seconds: float) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE IF NOT EXISTS line (id TEXT, text TEXT)")
        return _measured(connection, batch, seconds)
    finally:
        connection.close()
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


def _measured(connection: sqlite3.Connection, batch: int, seconds: float) -> float:
    rows = [_ROW] * batch
    count, began = 0, time.perf_counter()
    while (passed := time.perf_counter() - began) < seconds:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO line VALUES (?, ?)", rows)
        connection.execute("COMMIT")
        count += batch
    return count / passed
