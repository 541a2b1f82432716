"""One PostgreSQL connection as a `View` or a `Tx`.

A batch goes in as one array literal for each column, built here: far cheaper than having each value adapted.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, TypeVar

import msgspec

from rota.clock import Clock, SystemClock
from rota.store import statements
from rota.store.port import Row
from rota.store.postgres_link import Link
from rota.store.session import Session

T = TypeVar("T")
_PARAMETER = re.compile(r"(?<!:):([a-z_]\w*)")
_COLUMN = re.compile(r":(\w+)_(\d+) AS")


class Statement(msgspec.Struct, frozen=True):
    """The texts of one name in psycopg's notation, and how many columns each batch has."""

    first: str
    rest: tuple[str, ...]
    columns: dict[str, int]


@cache
def load(schema: str) -> dict[str, Statement]:
    return {name: _statement(texts) for name, texts in statements.load("postgres", schema).items()}


def _statement(texts: tuple[str, ...]) -> Statement:
    columns: dict[str, int] = {}
    for text in texts:
        for name, index in _COLUMN.findall(text):
            columns[name] = max(columns.get(name, 0), int(index) + 1)
    first, *rest = (_PARAMETER.sub(r"%(\1)s", text.replace("%", "%%")) for text in texts)
    return Statement(first, tuple(rest), columns)


class PostgresSession(Session):
    """Runs named statements on one connection; the owner opens and ends the transactions."""

    def __init__(self, link: Link, schema: str, clock: Clock) -> None:
        super().__init__()
        self._cursor = link.connection.cursor()
        self._statements = load(schema)
        # Production goes by the database's clock; a test goes by its own.
        self._clock = None if isinstance(clock, SystemClock) else clock

    def begin(self, now: int) -> None:
        """To be called once per operation: `now` is what the database said when the transaction began."""
        self.now = now if self._clock is None else self._clock.now()
        self.hints = []

    def run(self, name: str, /, **params: Any) -> int:
        statement = self._statements[name]
        bound = self._bound(params, statement.columns)
        for text in (statement.first, *statement.rest):
            self._cursor.execute(text, bound)
        return self._cursor.rowcount

    def rows(self, name: str, /, **params: Any) -> list[Row]:
        statement = self._statements[name]
        bound = self._bound(params, statement.columns)
        found = self._cursor.execute(statement.first, bound).fetchall()
        for text in statement.rest:
            self._cursor.execute(text, bound)
        return found

    def records(self, name: str, kind: type[T], /, **params: Any) -> list[T]:
        return msgspec.convert(self.rows(name, **params), list[kind])  # type: ignore[valid-type]

    def _bound(self, params: dict[str, Any], columns: dict[str, int]) -> dict[str, Any]:
        for name, value in list(params.items()):
            if type(value) is list:
                count = columns.get(name)
                if count is None:
                    params[name] = literal(value)
                else:
                    del params[name]
                    transposed = zip(*map(_values, value), strict=True) if value else [()] * count
                    for index, column in enumerate(transposed):
                        params[f"{name}_{index}"] = literal(column)
        params["now"] = self.now
        return params


def _values(row: Any) -> Any:
    return msgspec.structs.astuple(row) if isinstance(row, msgspec.Struct) else row


def literal(values: Any) -> str:
    """A list of values as PostgreSQL writes an array."""
    return "".join(("{", ",".join(map(_quoted, values)), "}"))


def _quoted(value: Any) -> str:
    if type(value) is str:
        return "".join(('"', value.replace("\\", "\\\\").replace('"', '\\"'), '"'))
    return "NULL" if value is None else str(value)
