"""One SQLite connection as a `View` or a `Tx`.

Python's sqlite3 gives up the interpreter lock at every step of a statement and must win it back from busy threads
afterwards. So a batch goes in as one JSON value and comes out as one JSON value: a statement is one step, however many
rows it moves.
"""

from __future__ import annotations

import sqlite3
from typing import Any, TypeVar

import msgspec

from rota.clock import Clock
from rota.store import statements
from rota.store.hints import Hint
from rota.store.port import Row

T = TypeVar("T")
_encode = msgspec.json.Encoder().encode
_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}


class SqliteSession:
    """Runs named statements on one connection; the owner opens and ends the transactions."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._statements = statements.load("sqlite")
        self._gathering: dict[str, str] = {}
        self._remembered: dict[tuple[Any, ...], tuple[int, list[Any]]] = {}
        self.now = 0
        self.hints: list[Hint] = []

    def begin(self) -> None:
        """To be called once per operation: fixes its `now`."""
        self.now = self._clock.now()
        self.hints = []

    def run(self, name: str, /, **params: Any) -> int:
        bound = self._bound(params)
        changed = 0
        for text in self._statements[name]:
            changed = self._connection.execute(text, bound).rowcount
        return changed

    def rows(self, name: str, /, **params: Any) -> list[Row]:
        (text,) = self._statements[name]
        return self._connection.execute(text, self._bound(params)).fetchall()

    def one(self, name: str, /, **params: Any) -> Row | None:
        found = self.rows(name, **params)
        return found[0] if found else None

    def records(self, name: str, kind: type[T], /, **params: Any) -> list[T]:
        bound = self._bound(params)
        first, *rest = self._statements[name]
        text = self._gathering.get(name) or self._gather(name, first, bound)
        (found,) = self._connection.execute(text, bound).fetchone()
        for text in rest:
            self._connection.execute(text, bound)
        return _decoder(kind).decode(found)

    def tell(self, hint: Hint) -> None:
        self.hints.append(hint)

    def recent(self, name: str, max_age_s: float, /, **params: Any) -> list[Any]:
        key = (name, *params.values())
        known = self._remembered.get(key)
        if known is None or not 0 <= self.now - known[0] <= max_age_s * 1_000_000:
            if len(self._remembered) >= 1000:
                self._remembered.clear()
            known = self._remembered[key] = (self.now, list(self.one(name, **params) or ()))
        return known[1]

    def forget(self) -> None:
        """An operation was undone: what it adjusted in remembered rows did not happen."""
        self._remembered.clear()

    def _bound(self, params: dict[str, Any]) -> dict[str, Any]:
        for name, value in params.items():
            if type(value) is list:
                params[name] = _encode(value).decode()
        params["now"] = self.now
        return params

    def _gather(self, name: str, text: str, bound: dict[str, Any]) -> str:
        """`text` turned into a statement that returns all its rows as one JSON array of arrays."""
        head = self._connection.execute(text, bound)
        columns = ", ".join(f'"{column[0]}"' for column in head.description)
        head.close()
        self._gathering[name] = " ".join(("SELECT json_group_array(json_array(", columns, ")) FROM (", text, ")"))
        return self._gathering[name]


def _decoder(kind: type[T]) -> msgspec.json.Decoder[list[T]]:
    known = _decoders.get(kind)
    if known is None:
        known = _decoders[kind] = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
    return known
