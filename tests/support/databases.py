"""Fresh databases with Rota's schema.

A SQLite file is a copy of one that was migrated once, which takes an eighth of the time of the migrations.

The first PostgreSQL databases are copies of a database that was migrated once. A database that a test has used is
emptied and renamed for the next test, which takes a fraction of the time of a copy. If a test has changed the schema or
has filled a table, the database is dropped instead.
"""

from __future__ import annotations

import atexit
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg import sql

from rota.clock import ManualClock
from rota.store.postgres.store import PostgresStore
from rota.store.sqlite.store import SqliteStore
from tests.support import ownership, postgres

TEMPLATE = "rota_template"
MOST_BYTES = 300_000
"""A table that has grown beyond this would slow the next test down."""

of_test: list[str] = []
of_module: list[str] = []
_used: list[str] = []

# A change of the schema adds rows to the catalog or removes some. ANALYZE and VACUUM do not: they update in place.
_CATALOG = """
    SELECT count(*), max(xmin::text::bigint) FROM pg_class
    UNION ALL SELECT count(*), max(xmin::text::bigint) FROM pg_constraint
    UNION ALL SELECT count(*), max(xmin::text::bigint) FROM pg_trigger
    UNION ALL SELECT count(*), max(xmin::text::bigint) FROM pg_namespace
    UNION ALL SELECT count(*), max(oid::bigint) FROM pg_proc
    UNION ALL SELECT count(*), sum(atttypid::bigint + atthasdef::int + 2 * attnotnull::int) FROM pg_attribute
    UNION ALL SELECT count(*), 0 FROM pg_default_acl
    UNION ALL SELECT 0, count(*) FROM pg_database JOIN pg_roles ON datdba = pg_roles.oid AND rolname = 'rota'
        WHERE datname = current_database() AND datacl IS NULL AND datconnlimit = -1
        AND NOT EXISTS (SELECT FROM pg_db_role_setting WHERE setdatabase = pg_database.oid)
"""
# pg_relation_size would open each of the tables, which takes twice as long.
_FILLED = """
    SELECT format('rota.%I', relname), size FROM pg_class CROSS JOIN pg_database
    CROSS JOIN LATERAL pg_stat_file(format('base/%s/%s', pg_database.oid, relfilenode))
    WHERE datname = current_database() AND relnamespace = 'rota'::regnamespace AND relkind = 'r' AND size > 0
"""
_SEQUENCES = "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'rota'::regnamespace AND relkind = 'S'"


class _Pristine(NamedTuple):
    """The database as the migrations leave it."""

    catalog: list[tuple[object, ...]]
    rows: dict[str, bytes]
    sequences: dict[str, tuple[int, bool]]


def fresh_database() -> str:
    """The URL of a database that is empty and up to date. It belongs to the test, or to the fixture that asks."""
    url = _reused() or postgres.shared().create_database(template=_template())
    (of_module if ownership.is_shared() else of_test).append(url)
    return url


def fresh_file(folder: Path, name: str = "rota.db") -> str:
    """The URL of a SQLite file in this folder that is empty and up to date. A file that is there already is kept."""
    path = folder / name
    if not path.exists():
        path.write_bytes(_template_file())
        path.chmod(0o600)
    return f"sqlite:///{path}"


def release(urls: list[str]) -> None:
    """Their owner has ended, so that the next test may have them."""
    _used.extend(urls)
    urls.clear()


def _reused() -> str | None:
    while _used:
        name = _used.pop().rpartition("/")[2]
        try:
            if renamed := _emptied(name):
                return postgres.shared().url(renamed)
        except psycopg.Error:
            pass  # The test has dropped or locked it, or a client came back before the new name.
        postgres.shared().drop_database(name)
    return None


def _emptied(name: str) -> str | None:
    """Its new name; `None` if it is not worth emptying. A client that still uses the old name finds nothing there."""
    server = postgres.shared()
    renamed = server.new_name()
    names = sql.Identifier(name), sql.Identifier(renamed)
    connection = _administrator()
    connection.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", [name])
    connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*names))
    with server.connect(renamed) as client:
        if _empty(client):
            return renamed
    server.drop_database(renamed)
    return None


def _empty(connection: psycopg.Connection) -> bool:
    pristine = _pristine()
    if connection.execute(_CATALOG).fetchall() != pristine.catalog:
        return False
    filled = connection.execute(_FILLED).fetchall()
    if any(size > MOST_BYTES for _, size in filled):
        return False
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")  # Without it, foreign keys dictate an order.
        for table, _ in filled:
            cursor.execute(f"DELETE FROM {table}".encode())
        for table, rows in pristine.rows.items():
            with cursor.copy(f"COPY {table} FROM STDIN".encode()) as copy:
                copy.write(rows)
        for sequence, (value, is_called) in pristine.sequences.items():
            cursor.execute("SELECT setval(%s::regclass, %s, %s)", [sequence, value, is_called])
    return True


@cache
def _administrator() -> psycopg.Connection:
    """The connection of this process that renames databases."""
    connection = psycopg.connect(postgres.shared().url("postgres", postgres.SUPERUSER), autocommit=True)
    atexit.register(connection.close)
    return connection


@cache
def _pristine() -> _Pristine:
    with postgres.shared().connect(_template()) as connection:
        cursor = connection.cursor()
        rows = {table: _copied(cursor, table) for (table, _) in cursor.execute(_FILLED).fetchall()}
        sequences = {}
        for (name,) in cursor.execute(_SEQUENCES).fetchall():
            value = cursor.execute(f"SELECT last_value, is_called FROM {name}".encode()).fetchone()
            assert value is not None
            sequences[name] = (int(value[0]), bool(value[1]))
        return _Pristine(cursor.execute(_CATALOG).fetchall(), rows, sequences)


def _copied(cursor: psycopg.Cursor, table: str) -> bytes:
    with cursor.copy(f"COPY {table} TO STDOUT".encode()) as copy:
        return b"".join(bytes(part) for part in copy)


@cache
def _template_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rota.db"
        SqliteStore(f"sqlite:///{path}", ManualClock(), inline=True).close()
        return path.read_bytes()


@cache
def _template() -> str:
    url = postgres.shared().create_database(TEMPLATE)
    # With the days of today, and of the day at which a manual clock starts.
    PostgresStore(url, inline=True).close()
    PostgresStore(url, ManualClock(), inline=True).close()
    return TEMPLATE
