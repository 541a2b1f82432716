"""A `Tx` over the caller's own connection: an operation inside a transaction that the caller began and will end.

The caller's session is not changed. Statements go through the interface of the caller's own library, so the library
begins the transaction in its usual way and raises its usual errors. There is no commit and no rollback here. An
operation that may be refused after its first write runs in a savepoint.
"""

from __future__ import annotations

import contextlib
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
from rota.store import migrate
from rota.store.hints import Hint, merged
from rota.store.port import Row, Tx, View
from rota.store.postgres.bus import MOST_BYTES
from rota.store.postgres.link import CLOCK
from rota.store.postgres.session import PARAMETER, Statement, bind, load
from rota.store.postgres.url import Address
from rota.store.transaction_base import Session

P = ParamSpec("P")
T = TypeVar("T")

_NOW = " ".join(("SELECT", CLOCK))
_NOTIFY = "SELECT pg_notify(%(channel)s, %(payload)s)"
_SAVE, _KEEP, _UNDO = "SAVEPOINT rota", "RELEASE SAVEPOINT rota", "ROLLBACK TO SAVEPOINT rota"
# From the catalogue, because a query of a missing or forbidden table would abort the caller's transaction.
_RIGHTS = """
SELECT current_database(), current_user, has_schema_privilege(n.oid, 'USAGE'), m.oid IS NOT NULL, (
    SELECT string_agg(may || ' on ' || c.relname, ', ' ORDER BY c.relname, may)
    FROM (VALUES ('migration', 'SELECT'), ('job', 'SELECT'), ('queue', 'SELECT INSERT'), ('lane', 'SELECT INSERT'),
                 ('execution', 'SELECT INSERT'), ('ready', 'SELECT INSERT DELETE'), ('expiry', 'INSERT'),
                 ('scheduled', 'SELECT INSERT UPDATE'), ('unique_key', 'SELECT INSERT UPDATE'),
                 ('event', 'INSERT'), ('event_open', 'SELECT INSERT UPDATE'),
                 ('stat_delta', 'INSERT')) needed (name, rights)
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = needed.name
    CROSS JOIN string_to_table(needed.rights, ' ') may
    WHERE NOT has_table_privilege(c.oid, may))
FROM (SELECT %(schema)s AS name) wanted
LEFT JOIN pg_namespace n ON n.nspname = wanted.name
LEFT JOIN pg_class m ON m.relnamespace = n.oid AND m.relname = 'migration'
"""
_LIMIT = "SELECT set_config('idle_in_transaction_session_timeout', '20s', true)"
RESET_SETTINGS = b"RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL"
"""Resets settings only. Behind a pooler, the rest of the session may belong to another client."""
RESET = b"; ".join(
    (
        RESET_SETTINGS,
        b"CLOSE ALL; SELECT pg_advisory_unlock_all(); UNLISTEN *; DISCARD TEMP; DISCARD SEQUENCES",
    )
)
"""Resets the session except its prepared statements, which psycopg keeps track of."""
BACKEND = b"SELECT pg_backend_pid()"
_UNKNOWN = pq.TransactionStatus.UNKNOWN


class Voice(Protocol):
    """Executes statements on a connection of the caller's library."""

    def say(self, text: str, params: Mapping[str, Any] | None = None) -> tuple[list[Row], int]:
        """The rows, if the statement returns any, and the number of rows that it changed."""

    def driver(self) -> Any:
        """The driver's connection below the library, which lives as long as the session on the server."""


class PsycopgVoice:
    """A psycopg connection, with a cursor of our own row and number format."""

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
    """A DB-API cursor: Django's or psycopg2's."""

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
    """A SQLAlchemy Connection, which begins its transaction when it is first used."""

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
    """Switches prepared statements off for one statement: behind a pooler the next one may run in another session."""
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
    """Named statements through a `Voice`, with named parameters, which all these libraries understand."""

    def __init__(self, voice: Voice, schema: str, clock: Clock) -> None:
        super().__init__()
        self._voice = voice
        self._statements = _load(schema)
        # Production uses the database's clock, a test its own.
        self._now = voice.say(_NOW)[0][0][0] if isinstance(clock, SystemClock) else clock.now()

    def changed(self, name: str, /, **params: Any) -> int:
        return self._say(name, params)[-1][1]

    def rows(self, name: str, /, **params: Any) -> list[Row]:
        return [_plain(row) for row in self._say(name, params)[0][0]]

    def _say(self, name: str, params: dict[str, Any]) -> list[tuple[list[Row], int]]:
        texts, statement = self._statements[name]
        bound: dict[str, Any] = {"now": self.now}
        bind(bound, params, statement, lambda value: value)
        values = {name: value.decode() if isinstance(value, bytes) else value for name, value in bound.items()}
        return [self._voice.say(text, values) for text in texts]


def _plain(row: Row) -> Row:
    """Ids as text; and text as text, where psycopg returns bytes because the database has the encoding SQL_ASCII."""
    return tuple(
        str(value) if isinstance(value, UUID) else value.decode(errors="replace") if isinstance(value, bytes) else value
        for value in row
    )


@cache
def _load(schema: str) -> dict[str, tuple[tuple[str, ...], Statement]]:
    return {
        name: (tuple(PARAMETER.sub(r"%(\1)s", text.replace("%", "%%")) for text in statement.texts), statement)
        for name, statement in load(schema).items()
    }


class History(msgspec.Struct, frozen=True):
    """Identifies a database: its name, and when each migration was applied to it."""

    database: str
    migrations: tuple[tuple[Any, ...], ...]


def history(view: View) -> History:
    """The history of the database behind a view."""
    (name,) = view.rows("database_name")[0]
    return History(name, tuple(view.rows("migrations")))


def check(voice: Voice, address: Address, ours: History) -> None:
    """Refuses a connection to another database, or one without the rights that an enqueue needs."""
    check_transaction(voice)
    found = voice.say(_RIGHTS, {"schema": address.schema})[0][0]
    database, user, may_use, is_there, missing = _plain(found)
    check_transaction(voice, begun=True)
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
    ((text,), _) = _load(address.schema)["migrations"]
    theirs = History(database, tuple(_plain(row) for row in voice.say(text)[0]))
    if theirs != ours:
        raise StoreMismatch(
            f"the connection is to the database {database!r} with {_described(theirs)}; the app is on {address.shown} "
            f"with {_described(ours)}. Enqueue in a transaction of the app's own database"
        )


def check_transaction(voice: Voice, *, begun: bool = False) -> None:
    """Refuses a connection in autocommit mode, in a failed transaction, or in pipeline mode.

    `begun` if a statement was executed, so that a transaction should be open.
    """
    driver = voice.driver()
    raw = getattr(driver, "pgconn", None)
    if raw is not None and raw.pipeline_status != pq.PipelineStatus.OFF:
        raise DefinitionError(
            "the connection is in pipeline mode, where results arrive later, and Rota needs them at once: do this "
            "before or after the block `with connection.pipeline():`"
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


def run(
    voice: Voice,
    address: Address,
    clock: Clock,
    op: Callable[Concatenate[Tx, P], T],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> tuple[T, list[Hint]]:
    """Runs the operation; returns its result and the hints to send after the caller's commit."""
    session = BorrowedSession(voice, address.schema, clock)
    return op(session, *args, **kwargs), session.hints


def unwritable(error: UnicodeEncodeError) -> ArgumentsError:
    """The encoder found the character before anything was sent, so the caller's transaction is still usable."""
    return ArgumentsError(
        f"{error.object[error.start]!r} cannot be written on this connection, whose encoding is {error.encoding}: "
        "nothing was accepted. Use a database and a connection in UTF8, or leave the character out"
    )


@contextlib.contextmanager
def savepoint(voice: Voice) -> Iterator[None]:
    """Rolls back what was done inside if it raises, so that the caller's transaction stays usable."""
    voice.say(_SAVE)
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):  # On a broken connection this fails too; the first error is raised.
            voice.say(_UNDO)
            voice.say(_KEEP)
        raise
    voice.say(_KEEP)


def limit_idling(voice: Voice) -> None:
    """Limits how long the transaction may be idle, because other transactions wait for the rows that it has locked."""
    voice.say(_LIMIT)


def notify(voice: Voice, address: Address, hints: list[Hint]) -> None:
    """Sends the hints with the caller's commit."""
    payload = msgspec.json.encode(merged(hints)).decode()
    if hints and len(payload) <= MOST_BYTES:  # Hints may be lost: workers also poll.
        voice.say(_NOTIFY, {"channel": f"{address.schema}_hints", "payload": payload})


def _described(history: History) -> str:
    if not history.migrations:
        return "no migrations of Rota"
    number, _, at = history.migrations[-1]
    known = {migration.number for migration in migrate.known("postgres")}
    return f"Rota's migration {number} applied at {at}{'' if number in known else ', which is not known here'}"
