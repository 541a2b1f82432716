"""The database as a witness: every changed row of every transaction that commits, in order.

Temporary triggers call back into Python, so what is recorded is what the database did, not what an operation says that
it did; and what a transaction undoes is forgotten.
"""

from __future__ import annotations

import sqlite3
from typing import Any

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
    ),
    "scheduled": ("id", "lane", "priority", "run_at", "fence", "attempts", "crashes", "first_start_at"),
    "waiting": ("id", "lane", "fence", "attempts", "crashes", "first_start_at"),
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
}
_EVENTS = (("+", "INSERT", "NEW"), ("~", "UPDATE", "NEW"), ("-", "DELETE", "OLD"))


class Witness:
    """Writes down what commits."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._changes: list[Change] = []
        self.operations: list[Operation] = []
        connection.create_function("witness", -1, self._see)
        for table, columns in TABLES.items():
            for kind, event, row in _EVENTS:
                values = ", ".join(f"{row}.{column}" for column in columns)
                connection.execute(
                    f"CREATE TEMP TRIGGER witness_{event}_{table} AFTER {event} ON main.{table} "
                    f"BEGIN SELECT witness('{table}', '{kind}', {values}); END"
                )

    def begin(self) -> None:
        self._changes = []

    def commit(self, operation: Operation) -> None:
        """The operation is durable: what was seen since `begin` is its work."""
        operation.changes, self._changes = self._changes, []
        if operation.changes or (operation.name == "finish" and operation.result):
            self.operations.append(operation)

    def table(self, name: str) -> list[Row]:
        """All rows as they are now."""
        columns = TABLES[name]
        rows = self._connection.execute(f"SELECT {', '.join(columns)} FROM {name}").fetchall()
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def _see(self, table: str, kind: str, *values: Any) -> None:
        self._changes.append(Change(table, kind, dict(zip(TABLES[table], values, strict=True))))
