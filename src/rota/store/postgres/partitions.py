"""The days of `execution`, `finished` and `log` on PostgreSQL: made ahead, and dropped whole.

A day is one partition of each table, with the same bounds, made and dropped together. What no day covers, and what
outlives its day, is in the default partitions. An older node that still runs knows nothing of `log`: where it made a
day without one, that is added; where that cannot be, its lines are in the default partition, and go with the day.

Both need a lock that stops everybody for a moment: of the default partitions to add a day, of the tables to drop one.
So whoever wants it waits for a fraction of a second only, lets go, and tries again later; all other work is done before
the lock. Every change is one transaction under one advisory lock: a process that is killed leaves nothing half-made,
and ten nodes that try at once do not get into each other's way.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import sql

from rota.clock import Clock, SystemClock
from rota.domain import retention
from rota.domain.retention import DAY
from rota.ids import first_at
from rota.store.keeping import Dropped, Made
from rota.store.postgres import url as postgres_url
from rota.store.postgres.errors import translated
from rota.store.postgres.link import Link
from rota.store.statements import qualified

log = logging.getLogger("rota.store")

Connection = psycopg.Connection[tuple[Any, ...]]
R = TypeVar("R")
TABLES = ("log", "finished", "execution")
"""In the order in which most transactions lock them."""
HISTORY = frozenset({"finished", "execution"})
"""A day is one that can be dropped if these have it."""
QUICK_WAITS_MS = (50,)
PATIENT_WAITS_MS = (50, 50, 100, 100, 200, 200, 200)
PAUSE_S = 0.5
MOST_SURVIVORS = 2000
MOST_SURVIVING_PIECES = 20_000
MOST_SURVIVING_BYTES = 8 * 1024 * 1024
_BUSY = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)


class PostgresKeeper:
    """Implements `rota.store.keeping.Keeper`, on a connection of its own for each piece of work."""

    def __init__(self, url: str, clock: Clock, purpose: str = "janitor") -> None:
        self._address = postgres_url.parse(url)
        self._clock = clock
        self._purpose = purpose
        self._closing = threading.Event()
        self._link: Link | None = None

    def make_ahead(self) -> Made:
        return self._with_link(lambda link: self._make(link))

    def days(self) -> list[int]:
        return self._with_link(lambda link: days(link.connection, self._address.schema, HISTORY))

    def drop(self, day: int, cutoffs: Sequence[tuple[str, int]]) -> Dropped:
        return self._with_link(lambda link: _drop(link.connection, self._address.schema, day, cutoffs, self._pause))

    def close(self) -> None:
        self._closing.set()
        if (link := self._link) is not None:
            link.cut()

    def _make(self, link: Link) -> Made:
        now = _now(link, self._clock)
        return make_ahead(link.connection, self._address.schema, now, PATIENT_WAITS_MS, self._pause)

    def _pause(self) -> None:
        if self._closing.wait(PAUSE_S):
            raise psycopg.OperationalError("the janitor stops")

    def _with_link(self, work: Callable[[Link], R]) -> R:
        try:
            link = self._link = Link(self._address, self._purpose, planner=False)
            try:
                return work(link)
            finally:
                self._link = None
                link.close()
        except psycopg.Error as error:
            raise translated(error, self._address.shown) from error


def prepare(link: Link, schema: str, clock: Clock, *, is_new: bool) -> None:
    """When a store is opened: makes the days that are missing, if that is possible at once. The janitor tries again.

    In a new database it is, and nobody else is in it yet: the caller's transaction is the one that made it.
    """
    connection = link.connection
    now = _now(link, clock)
    if is_new:
        tables = list(_made(connection, schema))
        for day in retention.days_wanted(now):
            _create(connection, schema, day, tables)
            _attach(connection, schema, day, tables)
        return
    try:
        made = make_ahead(connection, schema, now, QUICK_WAITS_MS, lambda: None)
    except psycopg.Error as error:
        log.debug("no partitions were made: %s", error)
        if connection.closed:
            raise
    else:
        if made.waiting:
            log.debug("%d partitions could not be made at once", len(made.waiting))


def days(connection: Connection, schema: str, tables: Collection[str] = TABLES) -> list[int]:
    """The days that all of these tables have."""
    made = [days for table, days in _made(connection, schema).items() if table in tables]
    return sorted(set.intersection(*made)) if made else []


def strays(connection: Connection, schema: str, most: int) -> tuple[int, list[str]]:
    """How many executions no day's partition holds, up to a bound; and one id for each of some of their days."""
    default = sql.Identifier(schema, "execution_default")
    counted = "SELECT count(*) FROM (SELECT 1 FROM {default} LIMIT %(most)s) counted"
    ((count,),) = _run(connection, counted, {"most": most}, default=default).fetchall()
    sample = "SELECT DISTINCT ON (left(id::text, 6)) id FROM (SELECT id FROM {default} LIMIT 10000) some"
    return count, [row[0] for row in _run(connection, sample, default=default).fetchall()] if count else []


def make_ahead(
    connection: Connection, schema: str, now: int, waits_ms: Sequence[int], pause: Callable[[], None]
) -> Made:
    """Makes the days that are missing from yesterday on. Days of which the default partition has rows stay there."""
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
                if not _is_ours(connection, schema) or not (lacking := _lacking(connection, schema, day)):
                    return  # Another node is at it, or was.
                if _has_rows(connection, schema, day, lacking):
                    made.left.append(day)
                    return
                _create(connection, schema, day, lacking)
                _set_lock_timeout(connection, wait_ms)
                _attach(connection, schema, day, lacking)
        except _BUSY:
            continue
        except (psycopg.errors.CheckViolation, psycopg.errors.DuplicateTable):
            # A row came in between, or a table that somebody detached by hand has the name.
            made.left.append(day)
            return
        made.made.append(day)
        return
    made.waiting.append(day)


def _create(connection: Connection, schema: str, day: int, tables: Sequence[str] = TABLES) -> None:
    """Like the parent, with its indexes, but not yet part of it: nobody notices."""
    for table in tables:
        parent = sql.Identifier(schema, table)
        _run(
            connection,
            "CREATE TABLE {part} (LIKE {parent} INCLUDING ALL)",
            part=_part(schema, table, day),
            parent=parent,
        )


def _attach(connection: Connection, schema: str, day: int, tables: Sequence[str] = TABLES) -> None:
    """Locks the default partition, which is searched for rows of the day: it is small."""
    for table in tables:
        _run(
            connection,
            "ALTER TABLE {parent} ATTACH PARTITION {part} FOR VALUES FROM ({low}) TO ({high})",
            parent=sql.Identifier(schema, table),
            part=_part(schema, table, day),
            low=sql.Literal(first_at(day)),
            high=sql.Literal(first_at(day + DAY)),
        )


def _has_rows(connection: Connection, schema: str, day: int, tables: Sequence[str]) -> bool:
    """Whether the default partitions have rows of this day."""
    for table in tables:
        found = _run(
            connection,
            "SELECT 1 FROM {default} WHERE id >= {low}::uuid AND id < {high}::uuid LIMIT 1",
            default=sql.Identifier(schema, f"{table}_default"),
            low=sql.Literal(first_at(day)),
            high=sql.Literal(first_at(day + DAY)),
        )
        if found.fetchone():
            return True
    return False


def _drop(
    connection: Connection, schema: str, day: int, cutoffs: Sequence[tuple[str, int]], pause: Callable[[], None]
) -> Dropped:
    dropped = Dropped("busy")
    with connection.transaction():
        if not _is_ours(connection, schema) or day not in days(connection, schema, HISTORY):
            raise psycopg.Rollback
        connection.execute("SELECT set_config('work_mem', '64MB', true)", prepare=False)  # A day is joined in one go.
        lacking = _lacking(connection, schema, day)
        parts = {table: _part(schema, table, day) for table in TABLES if table not in lacking}
        # No id of this day is accepted any more, and what has ended stays so: what is found now holds under the lock.
        keep = _survivors(connection, schema, parts, cutoffs)
        if keep is None:
            dropped = Dropped("crowded")
            raise psycopg.Rollback
        removed = _roll_up(connection, schema, day, parts, keep)
        if not _locked(connection, schema, parts, pause):
            raise psycopg.Rollback
        _replace(connection, schema, parts, keep)
        dropped = Dropped("", removed, len(keep))
    return dropped  # noqa: RET504 -- a rollback ends here too


def _replace(connection: Connection, schema: str, parts: dict[str, sql.Identifier], keep: list[str]) -> None:
    """Under the lock: the day's partitions are gone afterwards, and what must be kept of it is in the default ones."""
    for table, part in parts.items():
        parent = sql.Identifier(schema, table)
        _run(connection, "ALTER TABLE {parent} DETACH PARTITION {part}", parent=parent, part=part)
    for table, part in parts.items() if keep else ():
        default = sql.Identifier(schema, f"{table}_default")
        command = "INSERT INTO {default} SELECT * FROM {part} WHERE id = ANY(%(keep)s::uuid[])"
        _run(connection, command, {"keep": keep}, default=default, part=part)
    _run(connection, "DROP TABLE {tables}", tables=sql.SQL(", ").join(parts.values()))


_SURVIVORS = """
SELECT x.id FROM {execution} x
LEFT JOIN {finished} f ON f.id = x.id AND f.final = 1
LEFT JOIN unnest(%(names)s::text[], %(cutoffs)s::bigint[]) AS c (namespace, cutoff) ON c.namespace = x.namespace
WHERE f.finished_at IS NULL OR c.cutoff IS NULL OR f.finished_at >= c.cutoff
   OR EXISTS (SELECT 1 FROM dead d WHERE d.id = x.id)
LIMIT %(most)s
"""
_WEIGHT = """
SELECT (SELECT count(*) FROM {finished} WHERE id = ANY(%(keep)s::uuid[])),
       (SELECT coalesce(sum(octet_length(arguments)), 0) FROM {execution} WHERE id = ANY(%(keep)s::uuid[]))
     + (SELECT coalesce(sum(octet_length(result)), 0) + coalesce(sum(octet_length(error)), 0) FROM {finished}
        WHERE id = ANY(%(keep)s::uuid[]))
"""
_PIECES = """
SELECT count(*), coalesce(sum(octet_length(text)), 0) FROM (
    SELECT text FROM {log} WHERE id = ANY(%(keep)s::uuid[]) LIMIT %(most)s) counted
"""
_PIECES_APART = """
DELETE FROM log WHERE id >= %(low)s::uuid AND id < %(high)s::uuid AND NOT id = ANY(%(keep)s::uuid[])
"""
_ROLL_UP = """
WITH gone AS (
    SELECT x.namespace, x.app, x.job, x.queue, f.finished_at - f.finished_at %% 3600000000 AS hour, f.status,
           count(*) AS executions, coalesce(sum(greatest(0, f.finished_at - f.started_at)), 0)::bigint AS ran_us,
           coalesce(max(greatest(0, f.finished_at - f.started_at)), 0) AS longest_us
    FROM {execution} x JOIN {finished} f ON f.id = x.id AND f.final = 1
    WHERE NOT EXISTS (SELECT 1 FROM unnest(%(keep)s::uuid[]) AS k (id) WHERE k.id = x.id)
    GROUP BY 1, 2, 3, 4, 5, 6),
added AS (
    INSERT INTO summary AS s (namespace, app, job, queue, hour, status, executions, ran_us, longest_us)
    SELECT namespace, app, job, queue, hour, status, executions, ran_us, longest_us FROM gone
    ON CONFLICT (namespace, job, hour, app, queue, status) DO UPDATE SET
        executions = s.executions + excluded.executions, ran_us = s.ran_us + excluded.ran_us,
        longest_us = greatest(s.longest_us, excluded.longest_us)),
settled AS (
    UPDATE tick t SET ended = f.status
    FROM {execution} x JOIN {finished} f ON f.id = x.id AND f.final = 1
    JOIN schedule s ON s.name = x.schedule AND s.app = x.app AND s.namespace = x.namespace
    WHERE x.schedule IS NOT NULL AND t.schedule = s.id AND t.at = x.tick AND t.execution = x.id
      AND NOT EXISTS (SELECT 1 FROM unnest(%(keep)s::uuid[]) AS k (id) WHERE k.id = x.id)),
forgotten AS (
    DELETE FROM expiry e WHERE e.id >= %(low)s::uuid AND e.id < %(high)s::uuid
       AND NOT EXISTS (SELECT 1 FROM unnest(%(keep)s::uuid[]) AS k (id) WHERE k.id = e.id)),
untold AS (
    DELETE FROM note n WHERE n.id >= %(low)s::uuid AND n.id < %(high)s::uuid
       AND NOT EXISTS (SELECT 1 FROM unnest(%(keep)s::uuid[]) AS k (id) WHERE k.id = n.id))
SELECT coalesce(sum(executions), 0)::bigint FROM gone
"""


def _survivors(
    connection: Connection, schema: str, parts: dict[str, sql.Identifier], cutoffs: Sequence[tuple[str, int]]
) -> list[str] | None:
    """What must be kept of the day; None if that is too much to be copied while everybody waits."""
    names, instants = [name for name, _ in cutoffs], [cutoff for _, cutoff in cutoffs]
    values = {"names": names, "cutoffs": instants, "most": MOST_SURVIVORS + 1}
    keep = [row[0] for row in _run(connection, qualified(_SURVIVORS, schema), values, **parts)]
    if len(keep) > MOST_SURVIVORS:
        return None
    rows, size = _run(connection, _WEIGHT, {"keep": keep}, **parts).fetchone() or (0, 0)
    if rows > MOST_SURVIVORS or size > MOST_SURVIVING_BYTES:
        return None
    most = {"keep": keep, "most": MOST_SURVIVING_PIECES + 1}
    pieces, text = (_run(connection, _PIECES, most, **parts).fetchone() if "log" in parts else None) or (0, 0)
    return keep if pieces <= MOST_SURVIVING_PIECES and size + text <= MOST_SURVIVING_BYTES else None


def _roll_up(connection: Connection, schema: str, day: int, parts: dict[str, sql.Identifier], keep: list[str]) -> int:
    """Adds up what goes, in the transaction in which it goes. Returns how many executions that are."""
    values = {"keep": keep, "low": first_at(day), "high": first_at(day + DAY)}
    if "log" not in parts:
        _run(connection, qualified(_PIECES_APART, schema), values)
    found = _run(connection, qualified(_ROLL_UP, schema), values, **parts).fetchone()
    return int(found[0]) if found else 0


def _locked(connection: Connection, schema: str, parts: dict[str, sql.Identifier], pause: Callable[[], None]) -> bool:
    """Gets the locks for which everybody stops; lets go and tries again if somebody is in the way.

    A vacuum of the day would not give way within our time. So first a lock is taken that it alone objects to, and
    nobody stops for one that could not be had anyway.
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


def _set_lock_timeout(connection: Connection, wait_ms: int) -> None:
    connection.execute("SELECT set_config('lock_timeout', %s, true)", (str(wait_ms),), prepare=False)


def _is_ours(connection: Connection, schema: str) -> bool:
    """Whether no other node works on the partitions; until the end of the transaction."""
    query = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
    found = connection.execute(query, (f"rota partitions of {schema}",), prepare=False).fetchone()
    return bool(found and found[0])


def _made(connection: Connection, schema: str) -> dict[str, set[int]]:
    """The days of each table. A database that is not up to date may lack a table."""
    query = """SELECT p.relname, c.relname FROM pg_catalog.pg_class p
               JOIN pg_catalog.pg_inherits i ON i.inhparent = p.oid JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
               WHERE p.relnamespace = to_regnamespace(%s) AND p.relname = ANY(%s)"""
    made: dict[str, set[int]] = {}
    for table, part in connection.execute(query, (f'"{schema}"', list(TABLES)), prepare=False).fetchall():
        day = retention.day_named(str(part).removeprefix(f"{table}_p"))
        made.setdefault(table, set()).update(() if day is None else (day,))
    return {table: made[table] for table in TABLES if table in made}


def _lacking(connection: Connection, schema: str, day: int) -> list[str]:
    """The tables that do not have this day."""
    return [table for table, days in _made(connection, schema).items() if day not in days]


def _part(schema: str, table: str, day: int) -> sql.Identifier:
    return sql.Identifier(schema, f"{table}_p{retention.day_name(day)}")


def _run(
    connection: Connection, text: str, values: dict[str, Any] | None = None, /, **names: sql.Composable
) -> psycopg.Cursor[tuple[Any, ...]]:
    """A statement with names of tables in it, which cannot be parameters: psycopg quotes them."""
    statement = sql.SQL(text).format(**names)
    return connection.execute(statement, values, prepare=False)


def _now(link: Link, clock: Clock) -> int:
    """The database's time; a test goes by its own."""
    if not isinstance(clock, SystemClock):
        return clock.now()
    query = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    found = link.connection.execute(query, prepare=False).fetchone()
    return int(found[0]) if found else clock.now()
