"""The daily partitions of `execution`, and of what belongs to executions: created ahead of time, dropped as a whole.

A day is one partition of each table, with the same bounds, created and dropped in one transaction. Rows of days without
partitions, and rows that must outlive their day, are in the default partitions.

Attaching a partition locks the default partitions, and detaching one locks the tables, against every reader and writer.
So all other work is done before the lock, the wait for the lock is limited to a fraction of a second, and a busy day is
tried again later. An advisory lock lets one process at a time work on the partitions.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg import sql

from rota.clock import Clock, SystemClock
from rota.domain import retention
from rota.domain.retention import DAY
from rota.ids import first_at
from rota.store.partitions import Dropped, Made
from rota.store.postgres import url as postgres_url
from rota.store.postgres.link import CLOCK, Link, connected
from rota.store.postgres.session import PostgresSession
from rota.store.statements import needless, qualified

log = logging.getLogger("rota.store")

Connection = psycopg.Connection[tuple[Any, ...]]
TABLES = {
    "log": "id",
    "finished": "id",
    "execution": "id",
    "run_ended": "id",
    "step": "run",
    "event": "id",
    "delivery": "event",
}
"""In the order in which most transactions lock them, each with the column that has the id of the execution or event."""
QUICK_WAITS_MS = (50,)
PATIENT_WAITS_MS = (50, 50, 100, 100, 200, 200, 200)
PAUSE_S = 0.5
MOST_SURVIVORS = 2000
MOST_SURVIVING_PIECES = 20_000
MOST_SURVIVING_BYTES = 8 * 1024 * 1024
_BUSY = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)


class PostgresKeeper:
    """Implements `rota.store.partitions.Keeper`. Each call opens a connection of its own."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._address = postgres_url.parse(url)
        self._clock = clock
        self._closing = threading.Event()
        self._link: Link | None = None

    def make_ahead(self) -> Made:
        with self._connected() as link:
            now = _now(link, self._clock)
            return make_ahead(link.connection, self._address.schema, now, PATIENT_WAITS_MS, self._pause)

    def days(self) -> list[int]:
        with self._connected() as link:
            return days(link.connection, self._address.schema)

    def drop(self, day: int, cutoffs: Sequence[tuple[str, int]]) -> Dropped:
        with self._connected() as link:
            session = PostgresSession(link, self._address.schema, self._clock)
            return _drop(link.connection, session, self._address.schema, day, cutoffs, self._pause)

    def close(self) -> None:
        self._closing.set()
        if (link := self._link) is not None:
            link.cut()

    def _pause(self) -> None:
        if self._closing.wait(PAUSE_S):
            raise psycopg.OperationalError("the janitor stops")

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Link]:
        with connected(self._address, "janitor") as link:
            self._link = link
            try:
                yield link
            finally:
                self._link = None


def prepare_new(link: Link, schema: str, clock: Clock) -> None:
    """Creates the first days, in the transaction that creates the tables: no other process has seen them yet."""
    for day in retention.days_wanted(_now(link, clock)):
        _create(link.connection, schema, day)
        _attach(link.connection, schema, day)


def prepare(link: Link, schema: str, clock: Clock) -> None:
    """Creates missing days when a store is opened, if that is possible without waiting. The janitor tries again."""
    try:
        made = make_ahead(link.connection, schema, _now(link, clock), QUICK_WAITS_MS, lambda: None)
        if made.waiting:
            log.debug("%d partitions could not be created at once", len(made.waiting))
    except psycopg.Error as error:
        log.debug("no partitions were created: %s", error)
        if link.connection.closed:
            raise


def days(connection: Connection, schema: str) -> list[int]:
    """The days that have partitions, oldest first."""
    query = """SELECT c.relname FROM pg_catalog.pg_class p
               JOIN pg_catalog.pg_inherits i ON i.inhparent = p.oid JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
               WHERE p.relnamespace = to_regnamespace(%s) AND p.relname = 'execution'"""
    names = [row[0] for row in connection.execute(query, (f'"{schema}"',), prepare=False)]
    found = [retention.day_named(name.removeprefix("execution_p")) for name in names]
    return sorted(day for day in found if day is not None)


def strays(connection: Connection, schema: str, most: int) -> tuple[int, list[str]]:
    """How many executions are in the default partition, up to `most`; and one id for each of some of their days."""
    default = sql.Identifier(schema, "execution_default")
    counted = "SELECT count(*) FROM (SELECT 1 FROM {default} LIMIT %(most)s) counted"
    ((count,),) = _run(connection, counted, {"most": most}, default=default).fetchall()
    sample = "SELECT DISTINCT ON (left(id::text, 6)) id FROM (SELECT id FROM {default} LIMIT 10000) some"
    return count, [row[0] for row in _run(connection, sample, default=default).fetchall()] if count else []


def make_ahead(
    connection: Connection, schema: str, now: int, waits_ms: Sequence[int], pause: Callable[[], None]
) -> Made:
    """Creates the missing days from yesterday on, except days that already have rows in the default partition."""
    there = set(days(connection, schema))
    made = Made()
    for day in retention.days_wanted(now):
        if day not in there:
            _make_one(connection, schema, day, waits_ms, pause, made)
    return made


def _make_one(
    connection: Connection, schema: str, day: int, waits_ms: Sequence[int], pause: Callable[[], None], made: Made
) -> None:
    for attempt, wait_ms in enumerate(waits_ms):
        if attempt:
            pause()
        try:
            with connection.transaction():
                if not _is_only_node(connection, schema) or day in days(connection, schema):
                    return
                if _has_strays(connection, schema, day):
                    made.left.append(day)
                    return
                _create(connection, schema, day)
                _set_lock_timeout(connection, wait_ms)
                _attach(connection, schema, day)
        except _BUSY:
            continue
        except (psycopg.errors.CheckViolation, psycopg.errors.DuplicateTable):
            # A row of the day arrived meanwhile, or a partition that was detached by hand still has the name.
            made.left.append(day)
            return
        made.made.append(day)
        return
    made.waiting.append(day)


def _create(connection: Connection, schema: str, day: int) -> None:
    """Creates tables like the parents, with their indexes. They are not partitions yet, so this locks nothing."""
    for table in TABLES:
        part, parent = _part(schema, table, day), sql.Identifier(schema, table)
        _run(connection, "CREATE TABLE {part} (LIKE {parent} INCLUDING ALL)", part=part, parent=parent)


def _attach(connection: Connection, schema: str, day: int) -> None:
    """Locks the default partitions and scans them for rows of the day; they are small."""
    for table in TABLES:
        _run(
            connection,
            "ALTER TABLE {parent} ATTACH PARTITION {part} FOR VALUES FROM ({low}) TO ({high})",
            parent=sql.Identifier(schema, table),
            part=_part(schema, table, day),
            low=sql.Literal(first_at(day)),
            high=sql.Literal(first_at(day + DAY)),
        )


def _has_strays(connection: Connection, schema: str, day: int) -> bool:
    """Whether the default partition has executions of this day, so that the day cannot be attached."""
    query = "SELECT 1 FROM {default} WHERE id >= %(low)s::uuid AND id < %(high)s::uuid LIMIT 1"
    default = sql.Identifier(schema, "execution_default")
    return _run(connection, query, _bounds(day), default=default).fetchone() is not None


def _drop(
    connection: Connection,
    session: PostgresSession,
    schema: str,
    day: int,
    cutoffs: Sequence[tuple[str, int]],
    pause: Callable[[], None],
) -> Dropped:
    dropped = Dropped("busy")
    with connection.transaction():
        if not _is_only_node(connection, schema) or day not in days(connection, schema):
            raise psycopg.Rollback
        # `settle_ticks_of_day` joins the whole day at once.
        connection.execute("SELECT set_config('work_mem', '64MB', true)", prepare=False)
        parts = {table: _part(schema, table, day) for table in TABLES}
        # Ids of this day are no longer accepted, and ended executions stay ended: this list still holds under the lock.
        keep = _survivors(connection, schema, parts, cutoffs)
        if keep is None:
            dropped = Dropped("crowded")
            raise psycopg.Rollback
        removed = _settle(session, day, keep)
        if not _locked(connection, schema, parts, pause):
            raise psycopg.Rollback
        if _is_wanted(connection, schema, day, keep):  # A run was retried meanwhile.
            raise psycopg.Rollback
        _replace(connection, schema, parts, keep)
        dropped = Dropped("", removed, len(keep))
    return dropped  # noqa: RET504 -- psycopg.Rollback leaves the block and arrives here too


_SURVIVORS = """
SELECT x.id FROM {execution} x
LEFT JOIN {finished} f ON f.id = x.id AND f.final = 1
LEFT JOIN unnest(%(names)s::text[], %(cutoffs)s::bigint[]) AS c (namespace, cutoff) ON c.namespace = x.namespace
WHERE f.finished_at IS NULL OR c.cutoff IS NULL OR f.finished_at >= c.cutoff
   OR EXISTS (SELECT 1 FROM dead d WHERE d.id = x.id) OR NOT NEEDLESS(x)
LIMIT %(most)s
"""
_WEIGHT = """
SELECT f.rows + s.rows, l.pieces, x.bytes + f.bytes + l.bytes
FROM (SELECT coalesce(sum(octet_length(arguments)), 0) AS bytes FROM {execution} WHERE id = ANY(%(keep)s::uuid[])) x,
     (SELECT count(*) AS rows, coalesce(sum(octet_length(result)), 0) + coalesce(sum(octet_length(error)), 0) AS bytes
      FROM {finished} WHERE id = ANY(%(keep)s::uuid[])) f,
     (SELECT count(*) AS rows FROM (
          SELECT 1 FROM {step} WHERE run = ANY(%(keep)s::uuid[]) LIMIT %(most)s) first_steps) s,
     (SELECT count(*) AS pieces, coalesce(sum(octet_length(text)), 0) AS bytes
      FROM (SELECT text FROM {log} WHERE id = ANY(%(keep)s::uuid[]) LIMIT %(most)s) first_pieces) l
"""


_WANTED = """
SELECT 1 FROM run n JOIN step s ON s.run = n.id
WHERE n.retry_of IS NOT NULL AND s.execution >= %(low)s::uuid AND s.execution < %(high)s::uuid
  AND s.execution <> ALL(%(keep)s::uuid[]) LIMIT 1
"""


def _survivors(
    connection: Connection, schema: str, parts: dict[str, sql.Identifier], cutoffs: Sequence[tuple[str, int]]
) -> list[str] | None:
    """The executions to keep; None if they are too many to be copied while the tables are locked."""
    names, instants = [name for name, _ in cutoffs], [cutoff for _, cutoff in cutoffs]
    values = {"names": names, "cutoffs": instants, "most": MOST_SURVIVORS + 1}
    keep = [row[0] for row in _run(connection, qualified(needless(_SURVIVORS), schema), values, **parts)]
    if len(keep) > MOST_SURVIVORS:
        return None
    most = {"keep": keep, "most": MOST_SURVIVING_PIECES + 1}
    ((rows, pieces, size),) = _run(connection, _WEIGHT, most, **parts).fetchall()
    fits = rows <= MOST_SURVIVORS and pieces <= MOST_SURVIVING_PIECES and size <= MOST_SURVIVING_BYTES
    return keep if fits else None


def _is_wanted(connection: Connection, schema: str, day: int, keep: list[str]) -> bool:
    """Whether a retry has begun to refer to an execution of the day that is not kept."""
    values = {**_bounds(day), "keep": keep}
    return _run(connection, qualified(_WANTED, schema), values).fetchone() is not None


def _settle(session: PostgresSession, day: int, keep: list[str]) -> int:
    """Copies how the executions that are dropped have ended into the ledger; returns how many they are.

    Rows about them in tables without partitions are deleted.
    """
    which: dict[str, Any] = {**_bounds(day), "kept": [(id,) for id in keep]}
    session.begin(0)
    session.run("settle_ticks_of_day", **which)
    session.run("forget_day", **which)
    return int(session.rows("executions_between", **_bounds(day))[0][0]) - len(keep)


def _locked(connection: Connection, schema: str, parts: dict[str, sql.Identifier], pause: Callable[[], None]) -> bool:
    """Locks the tables and the day's partitions; releases and retries while another transaction uses them.

    A vacuum of the day would not end within the lock timeout. So a weaker lock is taken first, which conflicts with a
    vacuum and with no query: while a vacuum runs, no query has to wait behind our lock request.
    """
    parents = [sql.Identifier(schema, table) for table in parts]
    children = [*parts.values(), *(sql.Identifier(schema, f"{table}_default") for table in parts)]
    below = sql.SQL(", ").join(children)
    above = sql.SQL("ONLY ") + sql.SQL(", ONLY ").join(parents)
    for attempt, wait_ms in enumerate(PATIENT_WAITS_MS):
        if attempt:
            pause()
        with contextlib.suppress(*_BUSY), connection.transaction():
            _run(connection, "LOCK TABLE {below} IN SHARE UPDATE EXCLUSIVE MODE NOWAIT", below=below)
            _set_lock_timeout(connection, wait_ms)
            _run(connection, "LOCK TABLE {above}, {below} IN ACCESS EXCLUSIVE MODE", above=above, below=below)
            return True
    return False


def _replace(connection: Connection, schema: str, parts: dict[str, sql.Identifier], keep: list[str]) -> None:
    """Under the lock: detaches the partitions, copies the rows to keep into the default partitions, drops the rest."""
    for table, part in parts.items():
        parent = sql.Identifier(schema, table)
        _run(connection, "ALTER TABLE {parent} DETACH PARTITION {part}", parent=parent, part=part)
    for table, part in parts.items() if keep else ():
        default, column = sql.Identifier(schema, f"{table}_default"), sql.Identifier(TABLES[table])
        command = "INSERT INTO {default} SELECT * FROM {part} WHERE {column} = ANY(%(keep)s::uuid[])"
        _run(connection, command, {"keep": keep}, default=default, part=part, column=column)
    _run(connection, "DROP TABLE {tables}", tables=sql.SQL(", ").join(parts.values()))


def _set_lock_timeout(connection: Connection, wait_ms: int) -> None:
    connection.execute("SELECT set_config('lock_timeout', %s, true)", (str(wait_ms),), prepare=False)


def _is_only_node(connection: Connection, schema: str) -> bool:
    """Takes the advisory lock until the end of the transaction; False if another process holds it."""
    query = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
    found = connection.execute(query, (f"rota partitions of {schema}",), prepare=False).fetchone()
    return bool(found and found[0])


def _bounds(day: int) -> dict[str, str]:
    return {"low": first_at(day), "high": first_at(day + DAY)}


def _part(schema: str, table: str, day: int) -> sql.Identifier:
    return sql.Identifier(schema, f"{table}_p{retention.day_name(day)}")


def _run(
    connection: Connection, text: str, values: dict[str, Any] | None = None, /, **names: sql.Composable
) -> psycopg.Cursor[tuple[Any, ...]]:
    """A statement with table names in it, which cannot be parameters: psycopg quotes them."""
    statement = sql.SQL(text).format(**names)
    return connection.execute(statement, values, prepare=False)


def _now(link: Link, clock: Clock) -> int:
    """The database's time; in tests the time of their own clock."""
    if not isinstance(clock, SystemClock):
        return clock.now()
    ((now,),) = link.connection.execute(" ".join(("SELECT", CLOCK)).encode(), prepare=False).fetchall()
    return int(now)
