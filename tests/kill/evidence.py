"""What the database says, read without Rota: the third witness must not be asked through the accused."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import msgspec
import psycopg
from psycopg.types.string import TextLoader

Connection = Any
"""Of SQLite or PostgreSQL: what is asked here, both answer in the same way."""
PENDING = ("scheduled", "waiting", "ready", "running")


class Execution(msgspec.Struct, frozen=True):
    """An accepted call, or the execution of a tick, which has no ticket."""

    id: str
    job: str
    ticket: str | None
    schedule: str | None = None
    tick: int | None = None


class Attempt(msgspec.Struct, frozen=True):
    """A row of history. The end of an execution that was not running has no process, and starts when it ends."""

    id: str
    fence: int
    final: bool
    status: str
    reason: str
    attempts: int
    crashes: int
    pid: int | None
    started_at: int
    finished_at: int
    result: str | None
    error: str | None


class Tick(msgspec.Struct, frozen=True):
    """An entry of the ledger of a schedule: one nominal instant, or a range of `count` that shared their outcome."""

    schedule: str
    at: int
    until: int
    count: int
    outcome: str
    execution: str | None


class Evidence(msgspec.Struct, frozen=True):
    """The whole database, as far as it matters here."""

    executions: list[Execution]
    attempts: dict[str, list[Attempt]]
    """By execution, lowest fence first."""
    pending: dict[str, int]
    dead: set[str]
    live_workers: int
    integrity: str
    ticks: list[Tick] = []


def read(url: str) -> Evidence:
    with _open(url) as connection:
        every = connection.execute("SELECT id, job, arguments, schedule, tick FROM execution").fetchall()
        executions = [Execution(id, job, _ticket(arguments), *tick) for id, job, arguments, *tick in every]
        ticks = connection.execute(
            "SELECT s.name, t.at, t.until, t.count, t.outcome, t.execution FROM tick t"
            " JOIN schedule s ON s.id = t.schedule ORDER BY s.name, t.at"
        ).fetchall()
        history = connection.execute(
            "SELECT f.id, f.fence, f.final = 1, f.status, f.reason, f.attempts, f.crashes, w.pid,"
            " coalesce(f.started_at, f.finished_at), f.finished_at, f.result, f.error"
            " FROM finished f LEFT JOIN worker w ON w.id = f.worker"
            " ORDER BY f.id, f.fence"
        )
        attempts: dict[str, list[Attempt]] = {}
        for row in history:
            attempts.setdefault(row[0], []).append(Attempt(*row))
        return Evidence(
            executions,
            attempts,
            pending=_pending(connection),
            dead={row[0] for row in connection.execute("SELECT id FROM dead")},
            live_workers=_live_workers(connection),
            integrity=_integrity(connection),
            ticks=[Tick(*row) for row in ticks],
        )


def is_quiet(url: str, live_workers: int) -> bool:
    """Nothing left to do, the dead among the workers have been declared dead, and all others are there."""
    with _open(url) as connection:
        return not any(_pending(connection).values()) and _live_workers(connection) == live_workers


def _ticket(arguments: str) -> str | None:
    given = msgspec.json.decode(arguments)
    # A job that takes any arguments has them in one of that name.
    found = given.get("arguments", given).get("ticket")
    return None if found is None else str(found)


def _pending(connection: Connection) -> dict[str, int]:
    return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in PENDING}


def _live_workers(connection: Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM worker WHERE stopped_at IS NULL").fetchone()[0])


def _integrity(connection: Connection) -> str:
    if isinstance(connection, sqlite3.Connection):
        return ", ".join(row[0] for row in connection.execute("PRAGMA integrity_check"))
    # An index that has lost a row would give another count than the table.
    tables = ("execution", "finished", *PENDING)
    damaged = [table for table in tables if _count(connection, table, "seqscan") != _count(connection, table, "index")]
    return ", ".join(damaged) or "ok"


def _count(connection: Connection, table: str, by: str) -> int:
    for way in ("seqscan", "indexscan", "indexonlyscan", "bitmapscan"):
        connection.execute(f"SET LOCAL enable_{way} = {'on' if way.startswith(by) else 'off'}")
    return int(connection.execute(f"SELECT count(id) FROM {table}").fetchone()[0])


@contextmanager
def _open(url: str) -> Iterator[Connection]:
    """One state of the database for all questions."""
    if url.startswith("sqlite:///"):
        path = url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as connection:
            connection.execute("BEGIN")
            yield connection
    else:
        with closing(psycopg.connect(url, options="-c search_path=rota")) as session:
            session.adapters.register_loader("uuid", TextLoader)
            session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield session
