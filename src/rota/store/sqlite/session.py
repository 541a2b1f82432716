"""One SQLite connection as a `View` or a `Tx`.

Python's sqlite3 releases the interpreter lock at every step of a statement and competes with busy threads to get it
back. So a batch is passed as one JSON value and returned as one JSON value: a statement takes one step, however many
rows it moves.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import msgspec

from rota.clock import Clock
from rota.store import statements
from rota.store.port import Row
from rota.store.statements import on_table
from rota.store.transaction_base import Session, decoder

T = TypeVar("T")
Params = dict[str, Any]
_encode = msgspec.json.Encoder().encode
_NAMED = re.compile(r"'[^']*'|:(\w+)")
_LIST = re.compile(r"json_each\(:(\w+)\)")


class Prepared(NamedTuple):
    """A statement whose parameters have numbers: sqlite3 takes a tuple in a third of the time of a dictionary."""

    texts: list[tuple[str, Callable[[Params], tuple[Any, ...]]]]
    """Each with what picks its values from the parameters."""
    lists: set[str]
    """The parameters that may be lists or dictionaries."""


class SqliteSession(Session):
    """Runs named statements on one connection; its owner begins and ends the transactions."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        super().__init__()
        self._connection = connection
        self._clock = clock
        self._statements = statements.load("sqlite")
        self._prepared: dict[str, Prepared] = {}
        self._gathering: dict[str, str] = {}

    def begin(self) -> None:
        """Called once for each operation: reads the clock for it."""
        self._now = self._clock.now()
        self.hints = []

    def changed(self, name: str, /, **params: Any) -> int:
        changed = 0
        for text, values in self._texts(name, params):
            changed = self._connection.execute(text, values(params)).rowcount
        return changed

    def rows(self, name: str, /, **params: Any) -> list[Row]:
        return self._rows(name, params)

    def one(self, name: str, /, **params: Any) -> Row | None:
        found = self._rows(name, params)
        return found[0] if found else None

    def records(self, name: str, kind: type[T], /, **params: Any) -> list[T]:
        (first, values), *rest = self._texts(name, params)
        bound = values(params)
        text = self._gathering.get(name) or self._gather(name, first, bound)
        (gathered,) = self._connection.execute(text, bound).fetchone()
        found = decoder(kind).decode(gathered)
        if rest:
            params["returned"] = _encode([row[0] for row in found]).decode()  # type: ignore[index]
        for text, values in rest:
            self._connection.execute(text, values(params))
        return found

    def on_table(self, name: str, table: str) -> str:
        derived = f"{name} {table}"
        if derived not in self._statements:
            self._statements[derived] = tuple(on_table(text, table) for text in self._statements[name])
        return derived

    def _rows(self, name: str, params: Params) -> list[Row]:
        texts = self._texts(name, params)
        text, values = texts[0]
        found = self._connection.execute(text, values(params)).fetchall()
        for text, values in texts[1:]:
            self._connection.execute(text, values(params))
        return found

    def _texts(self, name: str, params: Params) -> list[tuple[str, Callable[[Params], tuple[Any, ...]]]]:
        """The texts of a statement; adds the time to the parameters, and encodes the lists among them."""
        prepared = self._prepared.get(name)
        if prepared is None:
            prepared = self._prepared[name] = _prepared(self._statements[name])
        params["now"] = self._now
        for each in prepared.lists:
            if type(value := params.get(each)) in (list, dict):
                params[each] = _encode(value).decode()
        return prepared.texts

    def _gather(self, name: str, text: str, bound: tuple[Any, ...]) -> str:
        """`text` turned into a statement that returns all its rows as one JSON array of arrays."""
        head = self._connection.execute(text, bound)
        names = [column[0] for column in head.description]
        assert len(set(names)) == len(names), f"two columns of {name} have one name"
        columns = ", ".join(f'"{one}"' for one in names)
        head.close()
        self._gathering[name] = " ".join(("SELECT json_group_array(json_array(", columns, ")) FROM (", text, ")"))
        return self._gathering[name]


def _prepared(texts: tuple[str, ...]) -> Prepared:
    return Prepared([_numbered(text) for text in texts], {name for text in texts for name in _LIST.findall(text)})


def _numbered(text: str) -> tuple[str, Callable[[Params], tuple[Any, ...]]]:
    """`:name` becomes `?1`, and the function picks the values in the order of the numbers."""
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return f"?{numbers.setdefault(found[1], len(numbers) + 1)}" if found[1] else found[0]

    numbered = _NAMED.sub(number, text)
    names = list(numbers)
    if len(names) > 1:
        return numbered, itemgetter(*names)
    return numbered, lambda params: tuple(params[name] for name in names)
