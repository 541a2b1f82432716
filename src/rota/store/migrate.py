"""Forward-only, numbered migrations with checksums.

Each migration is one transaction together with its row in `migration`, so a process that is killed half-way leaves
either all of it or nothing. A database that is ahead of this version, or whose history differs from ours, is refused.
"""

from __future__ import annotations

import hashlib
import sqlite3
from functools import cache
from importlib import resources

import msgspec

from rota.domain.errors import StoreMismatch


class Migration(msgspec.Struct, frozen=True):
    """One numbered file."""

    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def known(dialect: str) -> tuple[Migration, ...]:
    """The migrations of this version of Rota, in order."""
    folder = resources.files("rota.store") / "migrations" / dialect
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return tuple(Migration(int(file.name[:4]), file.name.removesuffix(".sql"), file.read_text()) for file in files)


def pending(applied: dict[int, str], dialect: str) -> list[Migration]:
    """The migrations to apply; refuses a database with migrations of another version or build."""
    ours = {migration.number: migration for migration in known(dialect)}
    for number, checksum in applied.items():
        if number not in ours:
            raise StoreMismatch(
                f"the database has migration {number}, which this version of Rota does not know: upgrade Rota"
            )
        if ours[number].checksum != checksum:
            raise StoreMismatch(
                f"migration {ours[number].name} was applied with other contents: "
                "this database was made by another build of Rota"
            )
    return [migration for number, migration in sorted(ours.items()) if number not in applied]


def applied_sqlite(connection: sqlite3.Connection) -> dict[int, str]:
    """Number and checksum of every applied migration."""
    table = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migration'"
    if connection.execute(table).fetchone() is None:
        return {}
    return dict(connection.execute("SELECT number, checksum FROM migration ORDER BY number").fetchall())


def apply_sqlite(connection: sqlite3.Connection, now: int) -> list[Migration]:
    """Brings the database up to date; does not write if it already is."""
    if not pending(applied_sqlite(connection), "sqlite"):
        return []
    done = []
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS migration ("
            "number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL)"
        )
        for migration in pending(applied_sqlite(connection), "sqlite"):
            for statement in _split(migration.text):
                connection.execute(statement)
            row = (migration.number, migration.name, migration.checksum, now)
            connection.execute("INSERT INTO migration VALUES (?, ?, ?, ?)", row)
            done.append(migration)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # On a full disk SQLite has rolled back already.
            connection.execute("ROLLBACK")
        raise
    return done


def _split(script: str) -> list[str]:
    statements, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    assert not current.strip(), "the migration ends in the middle of a statement"
    return statements
