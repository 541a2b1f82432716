"""A `Tx` over a connection that is not ours: an operation in the middle of somebody else's transaction.

Nothing of the caller's session is changed. Statements go through the interface of the caller's own library, so its
transaction is begun as the library begins it; there is no commit and no rollback here, and errors of the database are
raised as that library raises them. What may be refused half-way runs in a savepoint.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from uuid import UUID

import msgspec
import psycopg
from psycopg import pq
from psycopg.rows import tuple_row
from psycopg.types.numeric import Int8Dumper

from rota.clock import Clock, SystemClock
from rota.domain.errors import ArgumentsError, DefinitionError, StoreMismatch, StoreUnavailable
from rota.store import migrate, records, statements
from rota.store.hints import Hint, merged
from rota.store.port import Row, Tx, View
from rota.store.postgres.bus import MOST_BYTES
from rota.store.postgres.session import literal
from rota.store.postgres.url import Address
from rota.store.session import Session

P = ParamSpec("P")
T = TypeVar("T")

_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_NOTIFY = "SELECT pg_notify(%(channel)s, %(payload)s)"
_SAVE, _KEEP, _UNDO = "SAVEPOINT rota", "RELEASE SAVEPOINT rota", "ROLLBACK TO SAVEPOINT rota"
# From the catalogue: whoever asks for a table that is not there, or may not be seen, has lost the transaction.
_RIGHTS = """
SELECT current_database(), current_user, has_schema_privilege(n.oid, 'USAGE'), m.oid IS NOT NULL, (
    SELECT string_agg(may || ' on ' || c.relname, ', ' ORDER BY c.relname, may)
    FROM (VALUES ('migration', 'SELECT'), ('job', 'SELECT'), ('queue', 'SELECT INSERT'), ('lane', 'SELECT INSERT'),
                 ('execution', 'SELECT INSERT'), ('ready', 'SELECT INSERT DELETE'), ('expiry', 'INSERT'),
                 ('scheduled', 'SELECT INSERT UPDATE'), ('unique_key', 'SELECT INSERT UPDATE')) needed (name, rights)
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = needed.name
    CROSS JOIN string_to_table(needed.rights, ' ') may
    WHERE NOT has_table_privilege(c.oid, may))
FROM (SELECT %(schema)s AS name) wanted
LEFT JOIN pg_namespace n ON n.nspname = wanted.name
LEFT JOIN pg_class m ON m.relnamespace = n.oid AND m.relname = 'migration'
"""
_HISTORY = "SELECT number, checksum, applied_at FROM migration ORDER BY number"
_LIMIT = "SELECT set_config('idle_in_transaction_session_timeout', '20s', true)"
RESET_SETTINGS = b"RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL"
"""What a job set. Behind a pooler the rest of a session may be somebody else's by now."""
RESET = b"; ".join(
    (
        RESET_SETTINGS,
        b"CLOSE ALL; SELECT pg_advisory_unlock_all(); UNLISTEN *; DISCARD TEMP; DISCARD SEQUENCES",
    )
)
"""Everything of a session, but for the statements that were prepared in it: psycopg knows of those."""
BACKEND = b"SELECT pg_backend_pid()"
_PARAMETER = re.compile(r"(?<!:):([a-z_]\w*)")
_COLUMN = re.compile(r":(\w+)_(\d+) AS")
_UNKNOWN = pq.TransactionStatus.UNKNOWN


class Voice(Protocol):
    """How statements are said on somebody's connection."""

    def say(self, text: str, params: Mapping[str, Any] | None = None) -> tuple[list[Row], int]:
        """The rows, if there are any, and how many were touched."""

    def driver(self) -> Any:
        """The driver's own connection underneath, which lives as long as the session on the server."""


class PsycopgVoice:
    """A connection of psycopg. The cursor is ours, and so are its rows and its numbers."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._cursor = psycopg.Cursor(connection, row_factory=tuple_row)
        self._cursor.adapters.register_dumper(int, Int8Dumper)

    def say(self, text: str, params: Mapping[str, Any] | None = None) -> tuple[list[Row], int]:
        cursor = self._cursor.execute(text.encode(), params, prepare=False)
        return (cursor.fetchall() if cursor.description else []), cursor.rowcount

    def driver(self) -> Any:
        return self._connection


class CursorVoice:
    """Cursors as the DB-API has them: Django's, and psycopg2's."""

    def __init__(self, cursor: Any, driver: Any) -> None:
        self._cursor = cursor
        self._driver = driver

    def say(self, text: str, params: Mapping[str, Any] | None = None) -> tuple[list[Row], int]:
        with _unprepared(self._driver):
            self._cursor.execute(text, params)
        return (self._cursor.fetchall() if self._cursor.description else []), self._cursor.rowcount

    def driver(self) -> Any:
        return self._driver


class AlchemyVoice:
    """A Connection of SQLAlchemy, which begins its transaction when it is first used."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def say(self, text: str, params: Mapping[str, Any] | None = None) -> tuple[list[Row], int]:
        with _unprepared(self.driver()):
            result = self._connection.exec_driver_sql(text, params)
        return ([tuple(row) for row in result] if result.returns_rows else []), result.rowcount

    def driver(self) -> Any:
        return self._connection.connection.driver_connection


@contextlib.contextmanager
def _unprepared(driver: Any) -> Iterator[None]:
    """For one statement nothing is prepared: the session is the caller's, and behind a pooler maybe another one."""
    before = getattr(driver, "prepare_threshold", None)
    if before is None:
        yield
        return
    driver.prepare_threshold = None
    try:
        yield
    finally:
        driver.prepare_threshold = before


class BorrowedSession(Session):
    """Named statements through a `Voice`. Parameters have names here, as all these libraries understand them."""

    def __init__(self, voice: Voice, schema: str, clock: Clock) -> None:
        super().__init__()
        self._voice = voice
        self._statements = _load(schema)
        # Production goes by the database's clock; a test goes by its own.
        self.now = voice.say(_NOW)[0][0][0] if isinstance(clock, SystemClock) else clock.now()

    def run(self, name: str, /, **params: Any) -> int:
        texts, columns = self._statements[name]
        bound, touched = self._bound(params, columns), 0
        for text in texts:
            _, touched = self._voice.say(text, bound)
        return touched

    def rows(self, name: str, /, **params: Any) -> list[Row]:
        texts, columns = self._statements[name]
        bound = self._bound(params, columns)
        found, _ = self._voice.say(texts[0], bound)
        for text in texts[1:]:
            self._voice.say(text, bound)
        return [_plain(row) for row in found]

    def records(self, name: str, kind: type[T], /, **params: Any) -> list[T]:
        return records.converted(self.rows(name, **params), kind)

    def _bound(self, params: dict[str, Any], columns: dict[str, int]) -> dict[str, Any]:
        bound: dict[str, Any] = {"now": self.now}
        for name, value in params.items():
            if type(value) is dict:
                value = list(value.items() if name in columns else value.values())
            if type(value) is not list:
                bound[name] = value
            elif name not in columns:
                bound[name] = _array(value)
            else:
                rows = [row if isinstance(row, tuple) else msgspec.structs.astuple(row) for row in value]
                for index in range(columns[name]):
                    bound[f"{name}_{index}"] = _array([row[index] for row in rows])
        return bound


def _plain(row: Row) -> Row:
    """Ids are text. So is text, where psycopg gives bytes because the database says nothing of its encoding."""
    return tuple(
        str(value) if isinstance(value, UUID) else value.decode(errors="replace") if isinstance(value, bytes) else value
        for value in row
    )


def _array(values: list[Any]) -> str:
    return literal([None if value is None else str(value) for value in values], "text").decode()


@cache
def _load(schema: str) -> dict[str, tuple[tuple[str, ...], dict[str, int]]]:
    """The texts of every name, and how many columns each of its batches has."""
    loaded = {}
    for name, texts in statements.load("postgres", schema).items():
        columns: dict[str, int] = {}
        for batch, index in _COLUMN.findall(" ".join(texts)):
            columns[batch] = max(columns.get(batch, 0), int(index) + 1)
        loaded[name] = tuple(_PARAMETER.sub(r"%(\1)s", text.replace("%", "%%")) for text in texts), columns
    return loaded


class History(msgspec.Struct, frozen=True):
    """What tells one database from another: its name, and when each migration was applied to it."""

    database: str
    migrations: tuple[tuple[Any, ...], ...]


def history(view: View) -> History:
    """Of the database behind a view."""
    (name,) = view.rows("database_name")[0]
    return History(name, tuple(view.rows("migrations")))


def check(voice: Voice, address: Address, ours: History) -> None:
    """Refuses a connection to another database, or one without the rights that an enqueue needs."""
    _check_transaction(voice.driver())
    found = voice.say(_RIGHTS, {"schema": address.schema})[0][0]
    database, user, may_use, is_there, missing = _plain(found)
    _check_transaction(voice.driver(), begun=True)
    if not is_there:
        raise StoreMismatch(
            f"the connection is to the database {database!r}, which has no schema {address.schema!r} of Rota; the app "
            f"is on {address.shown}. Enqueue in a transaction of the app's own database"
        )
    if missing or not may_use:
        lacks = ", ".join(filter(None, ["" if may_use else f"USAGE on the schema {address.schema}", missing]))
        raise StoreUnavailable(
            f"{user} may not enqueue in the database {database!r}: GRANT it USAGE on the schema {address.schema} and "
            f"SELECT, INSERT, UPDATE, DELETE on its tables. It lacks {lacks}"
        )
    text = statements.qualified(_HISTORY, address.schema)
    theirs = History(database, tuple(_plain(row) for row in voice.say(text)[0]))
    if theirs != ours:
        raise StoreMismatch(
            f"the connection is to the database {database!r} with {_described(theirs)}; the app is on {address.shown} "
            f"with {_described(ours)}. Enqueue in a transaction of the app's own database"
        )


def check_transaction(voice: Voice) -> None:
    """Refuses a connection where every statement would be committed at once, or none can be, or answers come later."""
    _check_transaction(voice.driver())


def run(
    voice: Voice,
    address: Address,
    clock: Clock,
    op: Callable[Concatenate[Tx, P], T],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> tuple[T, list[Hint]]:
    """The operation's answer, and the hints to send when the caller has committed."""
    session = BorrowedSession(voice, address.schema, clock)
    return op(session, *args, **kwargs), session.hints


def unwritable(error: UnicodeEncodeError) -> ArgumentsError:
    """What a connection cannot say is found before it is sent, so the transaction goes on."""
    return ArgumentsError(
        f"{error.object[error.start]!r} cannot be written on this connection, whose encoding is {error.encoding}: "
        "nothing was accepted. Use a database and a connection in UTF8, or leave the character out"
    )


@contextlib.contextmanager
def savepoint(voice: Voice) -> Iterator[None]:
    """What is refused inside has not happened, and the caller's transaction goes on."""
    voice.say(_SAVE)
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):  # A broken connection has no savepoints; the first error is the news.
            voice.say(_UNDO)
            voice.say(_KEEP)
        raise
    voice.say(_KEEP)


def limit_idling(voice: Voice) -> None:
    """Until its end the transaction may not stand still for long: others wait for the rows that it holds."""
    voice.say(_LIMIT)


def notify(voice: Voice, address: Address, hints: list[Hint]) -> None:
    """Sends the hints with the caller's commit."""
    payload = msgspec.json.encode(merged(hints)).decode()
    if hints and len(payload) <= MOST_BYTES:  # Hints may be lost: what does not fit is left to polling.
        voice.say(_NOTIFY, {"channel": f"{address.schema}_hints", "payload": payload})


def _check_transaction(driver: Any, *, begun: bool = False) -> None:
    raw = getattr(driver, "pgconn", None)
    if raw is not None and raw.pipeline_status != pq.PipelineStatus.OFF:
        raise DefinitionError(
            "the connection is in pipeline mode, where answers come later, and Rota needs them at once: do this before "
            "`with connection.pipeline():` or after it"
        )
    info = getattr(driver, "info", None)
    status = pq.TransactionStatus(getattr(info, "transaction_status", _UNKNOWN))
    if status is pq.TransactionStatus.INERROR:
        raise DefinitionError("the transaction has failed already: roll it back before you enqueue in it")
    if status is pq.TransactionStatus.IDLE and (begun or getattr(driver, "autocommit", False)):
        raise DefinitionError(
            "the connection is in autocommit mode and in no transaction: there is nothing to enqueue in. Open one "
            "(`with connection.transaction():`), or use enqueue() without within()"
        )


def _described(history: History) -> str:
    if not history.migrations:
        return "no migrations of Rota"
    number, _, at = history.migrations[-1]
    known = {migration.number for migration in migrate.known("postgres")}
    return f"Rota's migration {number} applied at {at}{'' if number in known else ', which is not known here'}"
