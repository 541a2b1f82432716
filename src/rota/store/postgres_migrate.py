"""Migrations on PostgreSQL: the same rules as everywhere, in one transaction under one lock.

Ten nodes that start at once take turns; the first does the work. PostgreSQL undoes a half-done change of the schema, so
a process that is killed on the way leaves nothing behind.
"""

from __future__ import annotations

import psycopg

from rota.clock import Clock
from rota.domain.errors import StoreUnavailable
from rota.store import migrate, postgres_partitions
from rota.store.migrate import Migration
from rota.store.postgres_link import Link

FIRST = 1
"""The migration that makes the database."""


def _lock(schema: str) -> str:
    return f"rota migrations of {schema}"


def applied(connection: psycopg.Connection[tuple[object, ...]], schema: str) -> dict[int, str]:
    """Number and checksum of every migration that the database has seen."""
    table = connection.execute("SELECT to_regclass(%s)", (f'"{schema}".migration',), prepare=False).fetchone()
    if table is None or table[0] is None:
        return {}
    query = "".join(('SELECT number, checksum FROM "', schema, '".migration ORDER BY number'))
    return dict(connection.execute(query.encode(), prepare=False).fetchall())  # type: ignore[arg-type]


def apply(link: Link, schema: str, clock: Clock) -> list[Migration]:
    """Brings the database up to date, with the days ahead; does not write if it already is."""
    done = _apply(link, schema, clock) if migrate.pending(applied(link.connection, schema), "postgres") else []
    if FIRST not in {migration.number for migration in done}:
        postgres_partitions.prepare(link, schema, clock, is_new=False)
    return done


def _apply(link: Link, schema: str, clock: Clock) -> list[Migration]:
    connection = link.connection
    done = []
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (_lock(schema),), prepare=False)
        _create_schema(connection, schema)
        connection.execute("SELECT set_config('search_path', %s, true)", (schema,), prepare=False)
        for migration in migrate.pending(applied(connection, schema), "postgres"):
            connection.execute(migration.text.encode(), prepare=False)
            row = (migration.number, migration.name, migration.checksum, clock.now())
            connection.execute("INSERT INTO migration VALUES (%s, %s, %s, %s)", row, prepare=False)
            done.append(migration)
        if FIRST in {migration.number for migration in done}:
            # Before anybody can put a row of today where no day's partition has it.
            postgres_partitions.prepare(link, schema, clock, is_new=True)
    return done


def _create_schema(connection: psycopg.Connection[tuple[object, ...]], schema: str) -> None:
    if applied(connection, schema):
        return
    known = connection.execute("SELECT to_regnamespace(%s) IS NOT NULL", (f'"{schema}"',), prepare=False).fetchone()
    try:
        if known is None or not known[0]:
            connection.execute("".join(('CREATE SCHEMA "', schema, '"')).encode(), prepare=False)
    except psycopg.errors.InsufficientPrivilege:
        user, database = connection.info.user, connection.info.dbname
        raise StoreUnavailable(_NO_SCHEMA.format(user=user, schema=schema, database=database)) from None
    connection.execute("".join(('CREATE TABLE "', schema, '".migration ', _TABLE)).encode(), prepare=False)


_TABLE = "(number integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at bigint NOT NULL)"
_NO_SCHEMA = (
    "{user} may not create the schema {schema} in the database {database}: have its owner run "
    "`CREATE SCHEMA {schema} AUTHORIZATION {user}`, then start again"
)
