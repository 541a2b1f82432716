"""The database as it was after each operation, rebuilt from what the witness saw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rota.domain.status import Status
from tests.simulation.history import Change, History, Operation, Row
from tests.simulation.witness import TABLES

STATES = ("scheduled", "waiting", "ready", "running")


class Ledger:
    """Every table at one moment; rows by their key."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[Any, Row]] = {name: {} for name in TABLES}
        self.ended: dict[str, Row] = {}
        """The final row of every execution that has ended."""

    def __getitem__(self, table: str) -> dict[Any, Row]:
        return self.tables[table]

    def apply(self, operation: Operation) -> None:
        for change in operation.changes:
            rows, key = self.tables[change.table], key_of(change.table, change.row)
            if change.kind == "-":
                rows.pop(key, None)
            else:
                rows[key] = change.row
            if change.table == "finished" and change.row["final"]:
                self.ended[change.row["id"]] = change.row

    def status(self, id: str) -> Status | None:
        if id in self.ended:
            return Status(self.ended[id]["status"])
        return next((arrival(table, self[table][id]) for table in STATES if id in self[table]), None)

    def places(self, id: str) -> list[str]:
        """Every table that says where the execution stands; there should be one."""
        return [table for table in STATES if id in self[table]] + (["finished"] if id in self.ended else [])

    def ready_in(self, queue: str) -> int:
        return sum(self["execution"][id]["queue"] == queue for id in self["ready"])


def key_of(table: str, row: Row) -> Any:
    if table == "finished":
        return row["id"], row["fence"]
    if table in ("blocker", "lifted_blocker"):
        return row.get("execution"), row["kind"], row["key"]
    if table == "step":
        return row["run"], row["number"], row["item"]
    if table == "event_open":
        return row["event"]
    if table == "subscription":
        return row["name"], row["subject"], row["subscriber"]
    if table == "delivery":
        return row["event"], row["subscriber"]
    return row["name"] if table in ("queue", "job") else row["id"]


def arrival(table: str, row: Row) -> Status | None:
    """The status that a row in this table stands for; None for a row that says nothing of the kind."""
    match table:
        case "scheduled":
            return Status.RETRYING if row["attempts"] > 0 else Status.SCHEDULED
        case "waiting":
            return Status.WAITING
        case "ready":
            return Status.QUEUED
        case "running":
            return Status.RUNNING
        case "finished":
            return Status(row["status"]) if row["final"] else None
        case _:
            return None


def replay(history: History) -> Iterator[tuple[Operation, Ledger, Ledger]]:
    """Every operation, with the tables before and after it. The two ledgers move on together with the iteration."""
    before, after = Ledger(), Ledger()
    for operation in history.operations:
        after.apply(operation)
        yield operation, before, after
        before.apply(operation)


def moves(history: History) -> Iterator[tuple[Operation, str, Status | None, Status]]:
    """Every move of every execution, also those that one operation makes one after the other."""
    current: dict[str, Status] = {}
    for operation in history.operations:
        for change in operation.changes:
            target = arrival(change.table, change.row)
            if target is None or change.kind == "-" or (change.kind == "~" and change.table != "scheduled"):
                continue
            id = change.row["id"]
            yield operation, id, current.get(id), target
            current[id] = target


def changes(history: History, table: str, kind: str) -> Iterator[tuple[Operation, Change]]:
    for operation in history.operations:
        for change in operation.changes:
            if change.table == table and change.kind == kind:
                yield operation, change


def attempts(history: History) -> dict[str, list[Row]]:
    """The kept attempts of every execution, in the order of their fences."""
    found: dict[str, list[Row]] = {}
    for row in sorted(history.tables["finished"], key=lambda row: (row["id"], row["fence"])):
        found.setdefault(row["id"], []).append(row)
    return found


def endings(history: History) -> dict[str, Row]:
    return {row["id"]: row for row in history.tables["finished"] if row["final"]}
