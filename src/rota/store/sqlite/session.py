"""One SQLite connection as a `View` or a `Tx`.

Python's sqlite3 releases the interpreter lock at every step of a statement and competes with busy threads to get it
back. So a batch is passed as one JSON value and returned as one JSON value: a statement takes one step, however many
rows it moves.
"""

from __future__ import annotations

import sqlite3
from typing import Any, TypeVar

import msgspec

from rota.clock import Clock
from rota.store import statements
from rota.store.port import Row
from rota.store.statements import on_table
from rota.store.transaction_base import Session, decoder

T = TypeVar("T")
_encode = msgspec.json.Encoder().encode


class SqliteSession(Session):
    """Runs named statements on one connection; its owner begins and ends the transactions."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        super().__init__()
        self._connection = connection
        self._clock = clock
        self._statements = statements.load("sqlite")
        self._gathering: dict[str, str] = {}

    def begin(self) -> None:
        """Called once for each operation: reads the clock for it."""
        self.now = self._clock.now()
        self.hints = []

    def changed(self, name: str, /, **params: Any) -> int:
        bound = self._bound(params)
        changed = 0
        for text in self._statements[name]:
            changed = self._connection.execute(text, bound).rowcount
        return changed

    def rows(self, name: str, /, **params: Any) -> list[Row]:
        bound = self._bound(params)
        first, *rest = self._statements[name]
        found = self._connection.execute(first, bound).fetchall()
        for text in rest:
            self._connection.execute(text, bound)
        return found

    def records(self, name: str, kind: type[T], /, **params: Any) -> list[T]:
        bound = self._bound(params)
        first, *rest = self._statements[name]
        text = self._gathering.get(name) or self._gather(name, first, bound)
        (gathered,) = self._connection.execute(text, bound).fetchone()
        found = decoder(kind).decode(gathered)
        if rest:
            bound["returned"] = _encode([row[0] for row in found]).decode()  # type: ignore[index]
        for text in rest:
            self._connection.execute(text, bound)
        return found

    def on_table(self, name: str, table: str) -> str:
        derived = f"{name} {table}"
        if derived not in self._statements:
            self._statements[derived] = tuple(on_table(text, table) for text in self._statements[name])
        return derived

    def _bound(self, params: dict[str, Any]) -> dict[str, Any]:
        for name, value in params.items():
            if type(value) in (list, dict):
                params[name] = _encode(value).decode()
        params["now"] = self.now
        return params

    def _gather(self, name: str, text: str, bound: dict[str, Any]) -> str:
        """`text` turned into a statement that returns all its rows as one JSON array of arrays."""
        head = self._connection.execute(text, bound)
        names = [column[0] for column in head.description]
        assert len(set(names)) == len(names), f"two columns of {name} have one name"
        columns = ", ".join(f'"{one}"' for one in names)
        head.close()
        self._gathering[name] = " ".join(("SELECT json_group_array(json_array(", columns, ")) FROM (", text, ")"))
        return self._gathering[name]
