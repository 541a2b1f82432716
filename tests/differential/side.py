"""One database under comparison, and how what it says is freed of what may differ: the numbers that it gives out."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import psycopg
from psycopg.types.string import TextLoader

from rota.clock import ManualClock
from rota.domain.errors import RotaError, StoreError
from rota.ops.claim import Claimed, Mark
from rota.ops.upkeep import Chores
from rota.store.hints import CancelAsked, Due, Ended, EndWanted, Hint, Ready
from rota.store.port import Store
from rota.store.postgres.store import PostgresStore
from rota.store.reader import WorkerRow
from rota.store.sqlite.store import SqliteStore
from tests.support.databases import fresh_database
from tests.support.world import RecordingBus

TABLES = [
    "namespace",
    "queue",
    "lane",
    "job",
    "job_version",
    "app",
    "deploy",
    "execution",
    "scheduled",
    "waiting",
    "blocker",
    "lifted_blocker",
    "ready",
    "running",
    "finished",
    "dead",
    "unique_key",
    "expiry",
    "worker",
    "audit",
    "run",
    "run_ended",
    "step",
    "map_open",
    "map_tally",
    "event",
    "event_open",
    "subscription",
    "delivery",
]
NUMBERED = ("lane", "audit")
"""Tables whose own numbers mean nothing: they are left out, and where others name them, they are put into words."""


class Side(ABC):
    """A store on a clock of its own; both sides' clocks are moved together."""

    name: str
    store: Store

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.bus = RecordingBus()
        self.workers: list[int] = []
        """Their numbers here, in the order in which they joined: actions name them by their place in this list."""
        self.marks: dict[int, dict[int, tuple[int, str]]] = {}
        self._lanes: dict[int, str] = {}

    @abstractmethod
    def table(self, name: str) -> list[dict[str, Any]]:
        """All rows, read without Rota."""

    @abstractmethod
    def forget(self) -> None:
        """Drops what the writer remembers, such as the depth of a queue."""

    @abstractmethod
    def close(self) -> None: ...

    def ask(self, action: Callable[[Side], Any]) -> tuple[Any, ...]:
        """What the store answers, or how it refuses, and whom it would have woken."""
        self.bus.hints.clear()
        try:
            answer: tuple[Any, ...] = ("answered", self.plain(action(self)))
        except StoreError as error:
            # Each database complains in its own words.
            answer = ("refused", type(error).__name__, error.code)
        except RotaError as error:
            answer = ("refused", type(error).__name__, error.code, str(error))
        if answer[0] == "refused":
            # SQLite reads and writes through one session here, which forgets when a read is refused.
            self.forget()
        return *answer, [self._hint(hint) for hint in self.bus.hints]

    def state(self) -> dict[str, list[str]]:
        """Every table as sorted lines; the audit in its own order."""
        lines = {}
        for name in TABLES:
            rows = self.table(name)
            if name == "audit":
                rows.sort(key=lambda row: row["id"])
            told = [str(self._row(name, row)) for row in rows]
            lines[name] = told if name == "audit" else sorted(told)
        return lines

    def worker(self, place: int) -> int:
        """The number of the worker in this place; one that never joined has a number that no worker has."""
        return self.workers[place] if place < len(self.workers) else 10**9

    def marks_of(self, place: int) -> list[Mark]:
        return [(lane, *reached) for lane, reached in self.marks.get(place, {}).items()]

    def plain(self, value: Any) -> Any:
        """A value in words that both sides have."""
        if isinstance(value, Claimed):
            lanes = None if value.lanes is None else sorted(map(self._lane, value.lanes))
            marks = sorted((self._lane(lane), rank, id) for lane, rank, id in value.marks)
            return {"claims": self.plain(value.claims), "lanes": lanes, "marks": marks}
        if isinstance(value, msgspec.Struct):
            fields = msgspec.structs.asdict(value)
            if "lane" in fields:
                fields["lane"] = self._lane(fields["lane"])
            if isinstance(value, WorkerRow):
                fields["id"] = self._place(fields["id"])
            if isinstance(value, Chores):
                del fields["has_events"]  # PostgreSQL has waits to settle, SQLite never has.
            return {"": type(value).__name__, **{name: self.plain(field) for name, field in fields.items()}}
        if isinstance(value, list | tuple):
            return [self.plain(one) for one in value]
        if isinstance(value, set | frozenset):
            return sorted(self.plain(one) for one in value)
        return value

    def _hint(self, hint: Hint) -> Any:
        match hint:
            case Ready():
                return "ready", sorted((self._lane(lane), rank) for lane, rank in hint.lanes.items())
            case CancelAsked():
                return "cancel", self._place(hint.worker)
            case Ended() | EndWanted():
                return type(hint).__name__, sorted(hint.ids)
            case Due():
                return "due", hint.at

    def _row(self, table: str, row: dict[str, Any]) -> dict[str, Any]:
        plain = dict(sorted(row.items()))
        if table in NUMBERED:
            del plain["id"]
        if table == "worker":
            plain["id"] = self._place(row["id"])
        if table == "subscription":
            del plain["unsure"]  # Whether a wait may have missed an emit that ran beside it, on PostgreSQL only.
        if table in ("execution", "scheduled", "waiting", "ready", "running"):
            plain["lane"] = self._lane(row["lane"])
        if table in ("running", "finished") and row["worker"] is not None:
            plain["worker"] = self._place(row["worker"])
        return plain

    def _lane(self, number: int) -> str:
        if number not in self._lanes:
            rows = self.table("lane")
            self._lanes = {row["id"]: f"{row['namespace']} {row['app']} {row['job']} {row['queue']}" for row in rows}
        return self._lanes[number]

    def _place(self, number: int) -> int:
        return self.workers.index(number) if number in self.workers else -1


class SqliteSide(Side):
    name = "sqlite"

    def __init__(self) -> None:
        super().__init__()
        self._store = SqliteStore("sqlite://:memory:", self.clock, inline=True)
        self.store = self._store
        self.store.bus = self.bus

    def table(self, name: str) -> list[dict[str, Any]]:
        cursor = self._connection().execute(f"SELECT * FROM {name}")
        return _named([column[0] for column in cursor.description], cursor.fetchall())

    def forget(self) -> None:
        self._store._session.forget()

    def close(self) -> None:
        self.store.close()

    def _connection(self) -> sqlite3.Connection:
        return self._store._connection


class PostgresSide(Side):
    name = "postgres"

    def __init__(self) -> None:
        super().__init__()
        url = fresh_database()
        self.store = self._store = PostgresStore(url, self.clock, inline=True)
        self.store.bus.close()
        self.store.bus = self.bus
        self._connection = psycopg.connect(url, autocommit=True, options="-c search_path=rota")
        self._connection.adapters.register_loader("uuid", TextLoader)

    def table(self, name: str) -> list[dict[str, Any]]:
        cursor = self._connection.execute(f"SELECT * FROM {name}".encode())
        assert cursor.description is not None
        return _named([column.name for column in cursor.description], cursor.fetchall())

    def forget(self) -> None:
        for writer in self._store._writers:
            if writer._session is not None:
                writer._session.forget()

    def close(self) -> None:
        self._connection.close()
        self.store.close()


def _named(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in rows]
