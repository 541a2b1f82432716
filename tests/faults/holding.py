"""Holding a database at a point: processes that want to write wait, and can be seen waiting."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import psycopg
from psycopg import sql


class Hold(Protocol):
    """A lock that is held until it is released."""

    def waiting(self) -> int:
        """How many processes or sessions wait for it."""

    def drop_the_waiting(self) -> None:
        """Ends statements of dead clients: a server may still run the statement of a client that is gone."""

    def release(self) -> None: ...


@contextlib.contextmanager
def hold(url: str, tables: Sequence[str]) -> Iterator[Hold]:
    held: _File | _Tables = _File(url) if url.startswith("sqlite:") else _Tables(url, tables)
    try:
        yield held
    finally:
        held.release()


class _File:
    """A file locked by a program without the turn lock: the first writer waits for it, holding the turn lock."""

    def __init__(self, url: str) -> None:
        path = url.removeprefix("sqlite:///")
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        self._connection.execute("BEGIN IMMEDIATE")
        self._inode = str(Path(f"{path}-turn").stat().st_ino)

    def waiting(self) -> int:
        """The number of processes that hold the turn lock or wait for it, according to the kernel."""
        lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        return sum("FLOCK" in words and words[-3].rpartition(":")[2] == self._inode for words in lines)

    def drop_the_waiting(self) -> None:
        """A dead process waits for nothing."""

    def release(self) -> None:
        self._connection.close()


class _Tables:
    """Tables of a server that may be read and not written."""

    _MINE = "FROM pg_locks WHERE NOT granted AND %s = ANY (pg_blocking_pids(pid))"

    def __init__(self, url: str, tables: Sequence[str]) -> None:
        self._holder = psycopg.connect(url)
        self._looker = psycopg.connect(url, autocommit=True)
        names = sql.SQL(", ").join(sql.Identifier("rota", table) for table in tables)
        self._holder.execute(sql.SQL("LOCK TABLE {} IN SHARE MODE").format(names))
        self._pid = self._holder.info.backend_pid

    def waiting(self) -> int:
        row = self._looker.execute(f"SELECT count(DISTINCT pid) {self._MINE}".encode(), [self._pid]).fetchone()
        return int(row[0]) if row else 0

    def drop_the_waiting(self) -> None:
        self._looker.execute(f"SELECT pg_terminate_backend(pid, 10000) {self._MINE}".encode(), [self._pid])

    def release(self) -> None:
        self._holder.close()
        self._looker.close()
