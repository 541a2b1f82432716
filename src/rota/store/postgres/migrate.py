"""Migrations on PostgreSQL, in one transaction under one advisory lock.

Processes that start at the same time take turns, and the first one migrates. If it is killed, PostgreSQL rolls the
migration back.
"""

from __future__ import annotations

from typing import Any

import psycopg

from rota.clock import Clock
from rota.domain.errors import StoreMismatch, StoreUnavailable
from rota.store import migrate
from rota.store.migrate import Migration
from rota.store.postgres import partitions
from rota.store.postgres.errors import first_line
from rota.store.postgres.link import Link

FIRST = 1
"""The migration that creates the tables."""
ENCODING = "UTF8"
_TAKEN = (psycopg.errors.DuplicateTable, psycopg.errors.DuplicateObject, psycopg.errors.DuplicateFunction)


def _lock(schema: str) -> str:
    return f"rota migrations of {schema}"


def applied(connection: psycopg.Connection[tuple[Any, ...]], schema: str) -> dict[int, str]:
    """Number and checksum of every applied migration; refuses another program's table of that name."""
    if not connection.execute(_HAS_TABLE, (schema,), prepare=False).fetchall():
        return {}
    query = "".join(('SELECT number, checksum FROM "', schema, '".migration ORDER BY number'))
    try:
        return dict(connection.execute(query.encode(), prepare=False).fetchall())
    except (psycopg.errors.UndefinedColumn, psycopg.errors.WrongObjectType) as error:
        raise _foreign(connection, schema, first_line(error)) from error


def check_encoding(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    """Refuses a database that cannot store every text. The encoding is fixed when the database is created."""
    (encoding,) = connection.execute("SHOW server_encoding", prepare=False).fetchone() or ("",)
    if encoding != ENCODING:
        raise StoreUnavailable(
            f"the database {connection.info.dbname} has the encoding {encoding}, and Rota needs {ENCODING}: make one "
            f"with `CREATE DATABASE name ENCODING '{ENCODING}' LOCALE 'C' TEMPLATE template0`, and name it in the URL"
        )


def apply(link: Link, schema: str, clock: Clock) -> list[Migration]:
    """Brings the database up to date and creates missing partitions; does not write if there is nothing to do."""
    done: list[Migration] = []
    if migrate.pending(applied(link.connection, schema), "postgres"):
        try:
            done = _apply_in_turn(link, schema, clock)
        except _TAKEN as error:
            raise _foreign(link.connection, schema, first_line(error)) from error
    if FIRST not in {migration.number for migration in done}:
        partitions.prepare(link, schema, clock)
    return done


def _apply_in_turn(link: Link, schema: str, clock: Clock) -> list[Migration]:
    connection = link.connection
    done = []
    with connection.transaction():
        # After the wait for the lock this process must see the migrations that the one before it committed, also if the
        # role has a stricter default.
        connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", prepare=False)
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (_lock(schema),), prepare=False)
        _create_schema(connection, schema)
        connection.execute("SELECT set_config('search_path', %s, true)", (schema,), prepare=False)
        for migration in migrate.pending(applied(connection, schema), "postgres"):
            connection.execute(migration.text.encode(), prepare=False)
            row = (migration.number, migration.name, migration.checksum, clock.now())
            connection.execute("INSERT INTO migration VALUES (%s, %s, %s, %s)", row, prepare=False)
            done.append(migration)
        if FIRST in {migration.number for migration in done}:
            # In the same transaction: with a row of today in the default partition, today could not be attached.
            partitions.prepare_new(link, schema, clock)
    return done


def _create_schema(connection: psycopg.Connection[tuple[Any, ...]], schema: str) -> None:
    if applied(connection, schema):
        return
    check_encoding(connection)
    known = connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", (schema,), prepare=False).fetchall()
    try:
        if not known:
            connection.execute("".join(('CREATE SCHEMA "', schema, '"')).encode(), prepare=False)
    except psycopg.errors.InsufficientPrivilege:
        user, database = connection.info.user, connection.info.dbname
        raise StoreUnavailable(_NO_SCHEMA.format(user=user, schema=schema, database=database)) from None
    connection.execute("".join(('CREATE TABLE "', schema, '".migration ', _TABLE)).encode(), prepare=False)


def _foreign(connection: psycopg.Connection[tuple[Any, ...]], schema: str, found: str) -> StoreMismatch:
    return StoreMismatch(
        f"the schema {schema} of the database {connection.info.dbname} holds something that is not Rota's ({found}): "
        "choose another schema with `?schema=name` in the URL, or move it away"
    )


_TABLE = "(number integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at bigint NOT NULL)"
# Not `to_regclass`: within a transaction it may answer from a cache from before the wait for the lock.
_HAS_TABLE = (
    "SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
    " WHERE nspname = %s AND relname = 'migration'"
)
_NO_SCHEMA = (
    "{user} may not create the schema {schema} in the database {database}: have its owner run "
    "`CREATE SCHEMA {schema} AUTHORIZATION {user}`, then start again"
)
