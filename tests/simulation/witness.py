"""The database as a witness: every changed row of every transaction that commits, in order.

Triggers report, so what is recorded is what the database did, not what an operation says that it did; and what a
transaction undoes is forgotten. In SQLite they call back into Python, in PostgreSQL they write to a table.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import psycopg

from tests.simulation.history import Change, Operation, Row

TABLES: dict[str, tuple[str, ...]] = {
    "execution": (
        "id",
        "job",
        "queue",
        "lane",
        "priority",
        "arguments",
        "key",
        "created_at",
        "run_at",
        "deadline",
        "replay_of",
        "run",
        "event",
    ),
    "scheduled": ("id", "lane", "priority", "run_at", "fence", "attempts", "crashes", "first_start_at"),
    "waiting": ("id", "lane", "rank", "fence", "attempts", "crashes", "first_start_at"),
    "blocker": ("execution", "kind", "key", "rank"),
    "lifted_blocker": ("kind", "key"),
    "ready": ("id", "lane", "rank", "fence", "attempts", "crashes", "first_start_at"),
    "running": (
        "id",
        "lane",
        "rank",
        "worker",
        "fence",
        "attempts",
        "crashes",
        "first_start_at",
        "started_at",
        "cancel_at",
        "cancel_reason",
    ),
    "finished": (
        "id",
        "fence",
        "final",
        "status",
        "reason",
        "attempts",
        "crashes",
        "worker",
        "started_at",
        "finished_at",
        "result",
    ),
    "dead": ("id", "reason"),
    "worker": ("id", "name", "state", "heartbeat_at", "lease_until", "stopped_at"),
    "queue": ("name", "policy", "max_depth", "paused_at"),
    "job": ("name", "paused_at"),
    "run": ("id", "parent", "job", "letters", "stopping", "paused_at", "opened_at", "undo_of"),
    "run_ended": ("id", "parent", "letters", "opened_at", "undo_of"),
    "step": ("run", "number", "item", "execution"),
    "event": ("id", "name", "subject", "key", "payload", "emitted_at"),
    "event_open": ("event", "after", "is_replay"),
    "subscription": ("name", "subject", "subscriber", "since_at", "execution", "filter", "target"),
    "delivery": ("event", "subscriber", "execution"),
}
_EVENTS = (("+", "INSERT", "NEW"), ("~", "UPDATE", "NEW"), ("-", "DELETE", "OLD"))


class Witness(ABC):
    """Writes down what commits."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []

    @abstractmethod
    def begin(self) -> None:
        """An operation is about to run."""

    @abstractmethod
    def seen(self) -> list[Change]:
        """What the operation that was just committed has changed."""

    @abstractmethod
    def rows(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]: ...

    def commit(self, operation: Operation) -> None:
        """The operation is durable: what was seen since `begin` is its work."""
        operation.changes = _without_undone_claims(self.seen())
        if operation.changes or (operation.name in ("finish", "enqueue", "answer") and operation.result):
            self.operations.append(operation)

    def table(self, name: str) -> list[Row]:
        """All rows as they are now."""
        columns = TABLES[name]
        return [dict(zip(columns, row, strict=True)) for row in self.rows(name, columns)]


def _without_undone_claims(changes: list[Change]) -> list[Change]:
    """A claim may put an execution back in the same transaction, with the fence that it had: it has not started."""
    undone = set()
    claimed: set[tuple[str, int]] = set()
    for change in changes:
        if change.table == "running" and change.kind == "+":
            claimed.add((change.row["id"], change.row["fence"]))
        elif change.table in ("waiting", "ready") and change.kind == "+":
            undone |= claimed & {(change.row["id"], change.row["fence"] + 1)}
    return [one for one in changes if one.table != "running" or (one.row["id"], one.row["fence"]) not in undone]


def _when(event: str, columns: Sequence[str]) -> str:
    """An update of other columns is no event: a replay is noted in the row of an execution that has ended."""
    return f"UPDATE OF {', '.join(columns)}" if event == "UPDATE" else event


class SqliteWitness(Witness):
    """Temporary triggers on the one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__()
        self._connection = connection
        self._changes: list[Change] = []
        connection.create_function("witness", -1, self._see)
        for table, columns in TABLES.items():
            for kind, event, row in _EVENTS:
                values = ", ".join(f"{row}.{column}" for column in columns)
                connection.execute(
                    f"CREATE TEMP TRIGGER witness_{event}_{table} AFTER {_when(event, columns)} ON main.{table} "
                    f"BEGIN SELECT witness('{table}', '{kind}', {values}); END"
                )

    def begin(self) -> None:
        self._changes = []

    def seen(self) -> list[Change]:
        changes, self._changes = self._changes, []
        return changes

    def rows(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        return self._connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()

    def _see(self, table: str, kind: str, *values: Any) -> None:
        self._changes.append(Change(table, kind, dict(zip(TABLES[table], values, strict=True))))


class PostgresWitness(Witness):
    """Triggers that came with the template of the database; read on a connection of its own after each commit."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)
        self._connection.adapters.register_loader("uuid", psycopg.types.string.TextLoader)

    @staticmethod
    def install(url: str) -> None:
        """Prepares a database, to be done once for all that are copied from it."""
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_LOG)
            for table, columns in TABLES.items():
                for kind, event, row in _EVENTS:
                    name = f"witness_{event}_{table}".lower()
                    see = f"EXECUTE FUNCTION rota.witness_{row}('{table}', '{kind}')".lower()
                    when = f"AFTER {_when(event, columns)} ON rota.{table}"
                    connection.execute(f"CREATE TRIGGER {name} {when} FOR EACH ROW {see}".encode())

    def begin(self) -> None:
        """What was undone has left nothing in the table."""

    def seen(self) -> list[Change]:
        query = "WITH gone AS (DELETE FROM rota.witness RETURNING *) SELECT of, kind, row FROM gone ORDER BY number"
        return [
            Change(table, kind, {column: row[column] for column in TABLES[table]})
            for table, kind, row in self._connection.execute(query).fetchall()
        ]

    def rows(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        return self._connection.execute(f"SELECT {', '.join(columns)} FROM rota.{table}".encode()).fetchall()

    def close(self) -> None:
        self._connection.close()


_LOG = b"""
CREATE TABLE rota.witness (number bigint GENERATED ALWAYS AS IDENTITY, of text, kind text, row jsonb);
CREATE FUNCTION rota.witness_new() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO rota.witness (of, kind, row) VALUES (TG_ARGV[0], TG_ARGV[1], to_jsonb(NEW)); RETURN NULL; END $$;
CREATE FUNCTION rota.witness_old() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO rota.witness (of, kind, row) VALUES (TG_ARGV[0], TG_ARGV[1], to_jsonb(OLD)); RETURN NULL; END $$;
"""
