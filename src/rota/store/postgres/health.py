"""Reads the health of a PostgreSQL server for `rota doctor`. An ordinary role may run all of these queries.

A role sees only its own sessions in full; `sees_all` says whether it may see all of them.
"""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import psycopg

from rota.clock import Clock
from rota.domain.errors import StoreError
from rota.domain.retention import day_of
from rota.ids import made_at
from rota.store.postgres import partitions
from rota.store.postgres import url as postgres_url
from rota.store.postgres.errors import first_line
from rota.store.postgres.link import Link, connected

Connection = psycopg.Connection[tuple[Any, ...]]
MOST_COUNTED = 100_000
HOT = ("ready", "running", "scheduled", "waiting", "blocker", "worker", "expiry", "unique_key", "dead")
SETTINGS = [
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "autovacuum",
    "shared_buffers",
    "max_connections",
    "max_locks_per_transaction",
    "statement_timeout",
    "transaction_timeout",
    "idle_session_timeout",
    "default_transaction_isolation",
    "default_transaction_read_only",
]


class Session(msgspec.Struct, frozen=True):
    """A session in a transaction. `query` is the last one, shortened."""

    pid: int
    application: str
    user: str
    state: str
    transaction_s: float
    query: str
    holds_back: int
    """The age of its oldest snapshot in transactions; vacuum cannot remove rows that died later."""

    @property
    def who(self) -> str:
        name = self.application or "no application name"
        return f"pid {self.pid} ({name}, user {self.user or '?'})"


class Holder(msgspec.Struct, frozen=True):
    """A prepared transaction, a replication slot or a standby that keeps vacuum from removing dead rows."""

    kind: str
    name: str
    age: int
    """In transactions."""
    remedy: str


class Blocked(msgspec.Struct, frozen=True):
    """A session that waits for a lock, and the one that holds it."""

    pid: int
    application: str
    waited_s: float
    by: Session


class Table(msgspec.Struct, frozen=True):
    """One of the tables with frequent changes."""

    name: str
    live: int
    dead: int
    vacuumed_s: float | None
    bytes: int
    is_vacuumed: bool


class Partitions(msgspec.Struct, frozen=True):
    """The days that have partitions, and the executions in the default partition."""

    days: list[int]
    strays: int
    stray_days: list[int]


class PostgresHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The findings."""

    shown: str
    version: str
    version_number: int
    is_pooled: bool
    write_s: float | None
    write_error: str
    settings: dict[str, str]
    connections: int
    role: str
    lacking: list[str]
    """The privileges that the role lacks."""
    owns: bool
    sees_all: bool
    sessions: list[Session]
    holders: list[Holder]
    blocked: list[Blocked]
    tables: list[Table]
    partitions: Partitions | None
    bytes: int


def examine(url: str, clock: Clock) -> PostgresHealth:
    """Examines a server and commits one write that changes nothing."""
    address = postgres_url.parse(url)
    with connected(address, "doctor") as link:
        return _examined(link, address, clock)


def unheard(listen_url: str) -> str:
    """Why no hints can arrive through this URL; empty if they can."""
    try:
        with connected(postgres_url.parse(listen_url), "doctor") as link:
            return "it leads through a pooler" if link.is_pooled else ""
    except StoreError as error:
        return str(error)


def _examined(link: Link, address: postgres_url.Address, clock: Clock) -> PostgresHealth:
    connection, schema = link.connection, address.schema
    write_s, write_error = _write(connection, clock)
    settings = dict(_rows(connection, _SETTINGS, SETTINGS))
    with connection.transaction():
        # The doctor must not wait for a lock that another session holds.
        for name, value in (("lock_timeout", "1s"), ("statement_timeout", "10s")):
            connection.execute("SELECT set_config(%s, %s, true)", (name, value), prepare=False)
        version, number, role, sees_all, connections, size = _one(connection, _SERVER)
        (is_there,) = _one(connection, _IS_THERE, schema)
        lacking, owns = _rights(connection, schema) if is_there else ([], True)
        return PostgresHealth(
            shown=address.shown,
            version=version,
            version_number=number,
            is_pooled=link.is_pooled,
            write_s=write_s,
            write_error=write_error,
            settings=settings,
            connections=connections,
            role=role,
            lacking=lacking,
            owns=owns,
            sees_all=sees_all,
            sessions=[Session(*row) for row in _rows(connection, _SESSIONS)],
            holders=_holders(connection),
            blocked=[Blocked(row[0], row[1], row[2], Session(*row[3:])) for row in _rows(connection, _BLOCKED)],
            tables=[Table(*row) for row in _rows(connection, _TABLES, schema, list(HOT))],
            partitions=_partitions(connection, schema) if is_there and not lacking else None,
            bytes=size,
        )


_IS_THERE = """
SELECT EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = %s AND c.relname = 'execution')
"""
_SERVER = """
SELECT current_setting('server_version'), current_setting('server_version_num')::int, current_user,
       pg_has_role('pg_read_all_stats', 'USAGE'),
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')::int,
       pg_database_size(current_database())
"""
# Rota sets the default_transaction_* settings for its own sessions; the doctor shows those of the role or database.
_SETTINGS = """
SELECT name, CASE WHEN name = 'shared_buffers' THEN (setting::bigint * 8192)::text
                  WHEN name LIKE 'default_transaction_%%' THEN reset_val ELSE setting END
FROM pg_settings WHERE name = ANY(%s)
"""
# The sessions of this database that are in a transaction, except this one.
_SESSIONS = """
SELECT pid, coalesce(application_name, ''), coalesce(usename::text, ''), coalesce(state, 'unknown'),
       coalesce(extract(epoch FROM clock_timestamp() - xact_start), 0)::float8, left(coalesce(query, ''), 100),
       greatest(coalesce(age(backend_xmin), 0), coalesce(age(backend_xid), 0))
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
  AND xact_start IS NOT NULL
ORDER BY xact_start
"""
_BLOCKED = """
SELECT w.pid, coalesce(a.application_name, ''),
       coalesce(extract(epoch FROM clock_timestamp() - w.waitstart), 0)::float8,
       b.pid, coalesce(b.application_name, ''), coalesce(b.usename::text, ''), coalesce(b.state, 'unknown'),
       coalesce(extract(epoch FROM clock_timestamp() - b.xact_start), 0)::float8, left(coalesce(b.query, ''), 100), 0
FROM (SELECT pid, min(waitstart) AS waitstart FROM pg_locks
      WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      GROUP BY pid) w
JOIN pg_stat_activity a ON a.pid = w.pid
CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS p (pid)
JOIN pg_stat_activity b ON b.pid = p.pid
ORDER BY 3 DESC
"""
# Sizes from the statistics: measuring a table would wait for its lock.
_TABLES = """
SELECT s.relname::text, s.n_live_tup, s.n_dead_tup,
       extract(epoch FROM now() - greatest(s.last_autovacuum, s.last_vacuum))::float8,
       8192 * (c.relpages + (SELECT coalesce(sum(x.relpages), 0) FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
                             WHERE i.indrelid = c.oid))::bigint,
       NOT coalesce(c.reloptions && ARRAY['autovacuum_enabled=false', 'autovacuum_enabled=off'], false)
FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
WHERE s.schemaname = %s AND s.relname = ANY(%s) ORDER BY s.n_dead_tup DESC
"""
_PREPARED = """
SELECT 'prepared transaction', gid, age(transaction), 'rollback prepared ''' || gid || ''''
FROM pg_prepared_xacts WHERE database = current_database()
"""
_SLOTS = """
SELECT 'replication slot', slot_name::text, greatest(coalesce(age(xmin), 0), coalesce(age(catalog_xmin), 0)),
       'select pg_drop_replication_slot(''' || slot_name || ''')'
FROM pg_replication_slots WHERE xmin IS NOT NULL
"""
_STANDBYS = """
SELECT 'standby', coalesce(application_name, '') || ' (pid ' || pid || ')', age(backend_xmin),
       'end its long query, or set hot_standby_feedback = off there'
FROM pg_stat_replication WHERE backend_xmin IS NOT NULL
"""


def _write(connection: Connection, clock: Clock) -> tuple[float | None, str]:
    """Times a durable commit: a WAL message without a reader, which changes nothing."""
    try:
        started_at = clock.monotonic()
        connection.execute("SELECT pg_logical_emit_message(true, 'rota', 'doctor')", prepare=False)
        return clock.monotonic() - started_at, ""
    except psycopg.Error as error:
        if connection.closed:
            raise
        return None, first_line(error)


def _holders(connection: Connection) -> list[Holder]:
    found: list[Holder] = []
    for query in (_PREPARED, _SLOTS, _STANDBYS):
        with contextlib.suppress(psycopg.errors.InsufficientPrivilege), connection.transaction():
            found += [Holder(*row) for row in _rows(connection, query)]
    return found


_OWNS = """
SELECT bool_and(pg_has_role(c.relowner, 'USAGE')) FROM pg_class c WHERE c.oid IN (to_regclass(%s), to_regclass(%s))
"""
_LACKING = """
SELECT c.relname || ' (' || p.name || ')' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p (name)
WHERE n.nspname = %s AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> 'migration'
  AND NOT has_table_privilege(c.oid, p.name)
ORDER BY 1
"""


def _rights(connection: Connection, schema: str) -> tuple[list[str], bool]:
    """The privileges that the role lacks, and whether it owns the tables, as creating partitions needs."""
    (usage,) = _one(connection, "SELECT has_schema_privilege(%s, 'USAGE')", schema)
    if not usage:
        return [f"schema {schema} (USAGE)"], False
    (owns,) = _one(connection, _OWNS, f'"{schema}".execution', f'"{schema}".finished')
    return [row[0] for row in _rows(connection, _LACKING, schema)], bool(owns)


def _partitions(connection: Connection, schema: str) -> Partitions:
    days = partitions.days(connection, schema)
    count, ids = 0, list[str]()
    # A session that holds the lock is among `blocked`.
    with contextlib.suppress(psycopg.errors.LockNotAvailable), connection.transaction():
        count, ids = partitions.strays(connection, schema, MOST_COUNTED)
    return Partitions(days, count, sorted({day_of(made_at(id)) for id in ids}))


def _rows(connection: Connection, query: str, *values: Any) -> list[tuple[Any, ...]]:
    return connection.execute(query.encode(), values or None, prepare=False).fetchall()


def _one(connection: Connection, query: str, *values: Any) -> tuple[Any, ...]:
    (row,) = _rows(connection, query, *values)
    return row
