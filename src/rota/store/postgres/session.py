"""One PostgreSQL connection as a `View` or a `Tx`.

Calls libpq directly: a statement is prepared once for each connection, its parameters are sent as text, and a batch is
sent as one array literal for each column. That costs a third of what a psycopg cursor costs, and a queue runs mostly
small statements.
"""

from __future__ import annotations

import contextlib
import re
import select
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg import pq
from psycopg.adapt import Transformer

from rota.clock import Clock, SystemClock
from rota.store import statements
from rota.store.port import Row
from rota.store.postgres.link import BEGIN, CLOCK, TIME_AND_XID, Link, check_committed, checked, time_and_xid
from rota.store.transaction_base import Session

T = TypeVar("T")
PIECE = 2000
"""A large batch is sent in pieces of this many rows: the next one is encoded while the server works on the last."""
PARAMETER = re.compile(r"(?<!:):([a-z_]\w*)")
_COLUMN = re.compile(r":(\w+)_(\d+) AS (\w+)\[\]")
_LIST = re.compile(r":(\w+) AS (\w+)\[\]")
_NOW = re.compile(r":now\b")


class Text(msgspec.Struct, frozen=True):
    """One statement with numbered parameters, and the names of these in order."""

    name: bytes
    words: bytes
    parameters: tuple[str, ...]
    autocommit: Text | None = None
    """The same statement with the database's clock for `:now`, for use outside a transaction."""


class Statement(msgspec.Struct, frozen=True):
    """The texts of one name; the types of the columns of each batch, and of the values of each list."""

    texts: tuple[str, ...]
    first: Text
    rest: tuple[Text, ...]
    columns: dict[str, tuple[str, ...]]
    lists: dict[str, str]
    names: frozenset[str]
    """The parameters that it uses. Callers may pass more."""


@cache
def load(schema: str, *, is_live: bool = True) -> dict[str, Statement]:
    """The statements by name. With `is_live`, `:clock` reads the database's clock; else it is the time of a test."""
    clock = CLOCK if is_live else ":now"
    return {
        name: _statement(name, tuple(text.replace(":clock", clock) for text in texts))
        for name, texts in statements.load("postgres", schema).items()
    }


def _statement(name: str, texts: tuple[str, ...]) -> Statement:
    kinds: dict[str, dict[int, str]] = {}
    lists: dict[str, str] = {}
    for text in texts:
        for batch, index, kind in _COLUMN.findall(text):
            kinds.setdefault(batch, {})[int(index)] = kind
        lists.update(_LIST.findall(text))
    columns = {batch: tuple(kind for _, kind in sorted(indices.items())) for batch, indices in kinds.items()}
    first, *rest = (
        _numbered(f"rota_{name}_{index}", text, _numbered(f"rota_{name}_{index}_autocommit", _NOW.sub(CLOCK, text)))
        for index, text in enumerate(texts)
    )
    names = {name for text in (first, *rest) for name in text.parameters}
    return Statement(texts, first, tuple(rest), columns, lists, frozenset({*names, *columns}))


def _numbered(name: str, text: str, autocommit: Text | None = None) -> Text:
    parameters = tuple(dict.fromkeys(PARAMETER.findall(text)))
    numbers = {parameter: f"${index}" for index, parameter in enumerate(parameters, start=1)}
    words = PARAMETER.sub(lambda found: numbers[found[1]], text)
    return Text(name.encode(), words.encode(), parameters, autocommit)


Call = tuple[Text, list[bytes | None]]
"""A statement and its parameters."""
_BEGINNING: list[Call] = [(_numbered("rota_begin", BEGIN), []), (_numbered("rota_now", TIME_AND_XID), [])]
_COMMIT: Call = (_numbered("rota_commit", "COMMIT"), [])


class PostgresSession(Session):
    """Runs named statements on one connection.

    After `begin_writing` the session begins the transaction itself. In all other cases its owner does.
    """

    waits = False  # A wait for a lock would block one of the few connections.

    def __init__(self, link: Link, schema: str, clock: Clock) -> None:
        super().__init__()
        self._is_begun = True
        self.xid = 0
        self._link = link
        self._pgconn = link.connection.pgconn
        self._is_pooled = link.is_pooled
        self._poll = select.poll()
        self._prepared: set[bytes] = set()
        self._transformer = Transformer(link.connection)
        self._is_autocommit = False
        self._postponed: list[Call] = []
        # Production uses the database's clock, a test its own.
        self._clock = None if isinstance(clock, SystemClock) else clock
        self._statements = load(schema, is_live=self._clock is None)

    def begin(self, now: int) -> None:
        """Called when the owner has begun a transaction, with the database's time at that moment."""
        self._note_begin(now)
        self._postpones, self._postponed = False, []
        self.hints = []
        self._is_autocommit = False

    def begin_writing(self) -> None:
        """Called instead of `begin` for an operation that writes. If it `needs_commit`, its owner then calls
        `ensure_begun` and `commit`.

        BEGIN is sent in one round trip with the first statement whose result is needed. It is sent alone if the time is
        read before that, or behind a pooler, where it comes with the settings. Statements whose result is not needed
        are sent together with the next statement whose result is, or with COMMIT.
        """
        self.begin(0)
        self._postpones, self._is_begun, self.xid = True, False, 0

    @property
    def needs_commit(self) -> bool:
        """Whether a transaction has begun, or statements are postponed."""
        return self._is_begun or bool(self._postponed)

    @property
    def now(self) -> int:
        """The database's time when the transaction began, or the time of a test's clock. Begins it if necessary."""
        self.ensure_begun()
        return self._now

    def ensure_begun(self) -> None:
        """Begins the transaction if no statement has begun it yet."""
        if not self._is_begun:
            self._note_begin(*self._link.begin())

    def _note_begin(self, time: int, xid: int = 0) -> None:
        self._now = time if self._clock is None else self._clock.now()
        self._is_begun, self.xid = True, xid

    def begin_autocommit(self) -> None:
        """Called instead of `begin` if the operation is one statement, which is its own transaction."""
        self.begin(0)
        self._is_autocommit = self._clock is None

    def run(self, name: str, /, **params: Any) -> None:
        statement = self._statements[name]
        bound = self._bound(params, statement)
        for text in (statement.first, *statement.rest):
            self._postpone(text, bound)

    def changed(self, name: str, /, **params: Any) -> int:
        statement = self._statements[name]
        bound = self._bound(params, statement)
        result = self._execute(statement.first, bound)
        for text in statement.rest:
            result = self._execute(text, bound)
        return result.command_tuples or 0

    def commit(self) -> None:
        """Commits, in one round trip with the postponed statements."""
        if self._postponed:
            calls, self._postponed = [*self._postponed, _COMMIT], []
            check_committed(self._pipelined(calls)[-1])
        else:
            self._link.commit()

    def forget(self) -> None:
        super().forget()
        self._postponed = []

    def rows(self, name: str, /, **params: Any) -> list[Row]:
        statement = self._statements[name]
        if self._is_autocommit and (large := _large(statement, params)) is not None:
            return self._in_pieces(statement, large, params)
        bound = self._bound(params, statement)
        result = self._execute(statement.first, bound)
        found = self._loaded(result)
        for text in statement.rest:
            self._postpone(text, bound)
        return found

    def on_table(self, name: str, table: str) -> str:
        derived = f"{name} {table}"
        if derived not in self._statements:
            texts = tuple(statements.on_table(text, table) for text in self._statements[name].texts)
            self._statements[derived] = _statement(derived, texts)
        return derived

    def _in_pieces(self, statement: Statement, large: str, params: dict[str, Any]) -> list[Row]:
        """Runs a large batch piece by piece in one transaction.

        If the statement returns no row for one of the pieces, the transaction is rolled back and the result is empty.
        """
        text = statement.first.autocommit
        assert text is not None
        self._prepare(text)
        self._say(b"BEGIN")
        try:
            found = self._pieces(text, statement, large, params)
        except psycopg.Error:
            with contextlib.suppress(psycopg.Error):  # The caller needs the first error.
                self._say(b"ROLLBACK")
            raise
        self._say(b"COMMIT" if found else b"ROLLBACK")
        return found

    def _pieces(self, text: Text, statement: Statement, large: str, params: dict[str, Any]) -> list[Row]:
        found: list[Row] = []
        items = list(params[large].items() if type(params[large]) is dict else params[large])
        fixed = self._bound({**params, large: []}, statement)
        for start in range(0, len(items), PIECE):
            bound = fixed | self._bound({large: items[start : start + PIECE]}, statement)
            if start and not self._receive(found):
                return []
            self._pgconn.send_query_prepared(text.name, [bound[name] for name in text.parameters])
        return found if self._receive(found) else []

    def _receive(self, found: list[Row]) -> bool:
        """Waits for the result of the piece that was sent and adds its rows; False if it has none."""
        results: list[pq.abc.PGresult] = []
        while (result := self._next_result()) is not None:
            results.append(result)
        rows = self._loaded(checked(results[-1]))
        found += rows
        return bool(rows)

    def _loaded(self, result: pq.abc.PGresult) -> list[Row]:
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, tuple)

    def _say(self, words: bytes) -> None:
        checked(self._pgconn.exec_(words))

    def _prepare(self, text: Text) -> None:
        if text.name not in self._prepared:
            checked(self._pgconn.prepare(text.name, text.words))
            self._prepared.add(text.name)

    def _postpone(self, text: Text, bound: dict[str, bytes | None]) -> None:
        if self._postpones:
            self._postponed.append((text, [bound[name] for name in text.parameters]))
        else:
            self._execute(text, bound)

    def _execute(self, text: Text, bound: dict[str, bytes | None]) -> pq.abc.PGresult:
        if self._is_autocommit and text.autocommit is not None:
            text = text.autocommit
        return self._run_with_postponed(text, [bound[name] for name in text.parameters])

    def _run_with_postponed(self, text: Text, values: list[bytes | None]) -> pq.abc.PGresult:
        """Executes the postponed statements and then this one; returns the result of this one."""
        if not self._is_begun and not self._is_pooled:
            calls, self._postponed = [*_BEGINNING, *self._postponed, (text, values)], []
            self._is_begun = True  # Also if one of the statements fails.
            results = self._pipelined(calls)
            self._note_begin(*time_and_xid(results[1]))
            return results[-1]
        self.ensure_begun()
        if self._postponed:
            calls, self._postponed = [*self._postponed, (text, values)], []
            return self._pipelined(calls)[-1]
        if self._is_pooled:
            return checked(self._pgconn.exec_params(text.words, values))
        self._prepare(text)
        return checked(self._pgconn.exec_prepared(text.name, values))  # type: ignore[arg-type]

    def _pipelined(self, calls: Sequence[Call]) -> list[pq.abc.PGresult]:
        """Sends several statements in one round trip. After an error the server skips those that follow."""
        pgconn = self._pgconn
        if not self._is_pooled:
            for text, _ in calls:
                self._prepare(text)
        pgconn.enter_pipeline_mode()
        try:
            for text, values in calls:
                if self._is_pooled:
                    pgconn.send_query_params(text.words, values)
                else:
                    pgconn.send_query_prepared(text.name, values)
            pgconn.pipeline_sync()
            results = [self._next_result() for _ in range(2 * len(calls) + 1)][0:-1:2]
        finally:
            with contextlib.suppress(psycopg.Error):  # The connection is broken: the caller gets that error.
                pgconn.exit_pipeline_mode()
        answers: list[pq.abc.PGresult] = []
        for result in results:
            if result is None:
                raise psycopg.OperationalError("the connection was lost")
            answers.append(checked(result))
        return answers

    def _next_result(self) -> pq.abc.PGresult | None:
        """The next result of the connection. Waits without holding the interpreter lock, unlike libpq's own wait, and
        sends the rest of a message that did not fit into the socket's buffer."""
        pgconn = self._pgconn
        while pgconn.is_busy():
            is_unsent = pgconn.flush() != 0
            self._poll.register(pgconn.socket, select.POLLIN | select.POLLOUT if is_unsent else select.POLLIN)
            self._poll.poll()
            pgconn.consume_input()
        return pgconn.get_result()

    def _bound(self, params: dict[str, Any], statement: Statement) -> dict[str, bytes | None]:
        bound: dict[str, bytes | None] = {"now": str(self.now).encode()} if "now" in statement.names else {}
        bind(bound, params, statement, _plain)
        return bound


def bind(bound: dict[str, Any], params: dict[str, Any], statement: Statement, plain: Callable[[Any], Any]) -> None:
    """Adds the parameters: lists and the columns of batches as array literals, other values as `plain` encodes them."""
    names = statement.names
    for name, value in params.items():
        if name not in names:
            continue
        if value is None:
            bound[name] = None
            continue
        if type(value) is dict:
            value = list(value.items() if name in statement.columns else value.values())
        if type(value) is not list:
            bound[name] = plain(value)
        elif name in statement.lists:
            bound[name] = literal(value, statement.lists[name])
        else:
            kinds = statement.columns[name]
            rows = value if not value or type(value[0]) is tuple else map(msgspec.structs.astuple, value)
            columns = zip(*rows, strict=True) if value else ((),) * len(kinds)
            # A row may have more values than the statement has columns.
            for index, (column, kind) in enumerate(zip(columns, kinds, strict=False)):
                bound[f"{name}_{index}"] = literal(column, kind)


def _large(statement: Statement, params: dict[str, Any]) -> str | None:
    for name in statement.columns:
        if len(params[name]) > 2 * PIECE:
            return name
    return None


def _plain(value: Any) -> bytes | None:
    kind = type(value)
    if kind is str:
        return value.encode()  # type: ignore[no-any-return]
    if kind is bool:
        return b"t" if value else b"f"
    return str(value).encode()


def literal(values: Collection[Any], kind: str) -> bytes:
    """Values as a PostgreSQL array literal. Quoting each value is slow, and most columns need no quotes."""
    if None in values:
        inside = ",".join("NULL" if value is None else _quoted(str(value)) for value in values)
    elif kind != "text":
        inside = ",".join(values if kind == "uuid" else map(str, values))
    else:
        inside = _all_quoted(values)
    return "".join(("{", inside, "}")).encode()


def _all_quoted(values: Collection[str]) -> str:
    """Quotes all values at once, joined by NUL. The server refuses a value that contains one."""
    joined = "\0".join(values)
    if not values or joined.count("\0") >= len(values):
        return ",".join(map(_quoted, values))
    return f'"{_escaped(joined)}"'.replace("\0", '","')


def _quoted(value: str) -> str:
    return f'"{_escaped(value)}"'


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"') if "\\" in value or '"' in value else value
