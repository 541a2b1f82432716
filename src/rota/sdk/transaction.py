"""Operations in the caller's own transaction: they are committed or rolled back with it.

Rota does not import the libraries of callers. It recognizes connections by the names of their modules; a caller that
has a connection has imported its library already.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from rota.domain.errors import DefinitionError, UsageError
from rota.domain.url import masked
from rota.sdk.connection import Connection
from rota.store.hints import Hint
from rota.store.opening import is_server
from rota.store.port import Row, Store, Tx
from rota.store.postgres import url as postgres_url

if TYPE_CHECKING:
    from rota.store.postgres.borrowed import History, Voice

T = TypeVar("T")
After = Callable[[Callable[[], None]], object]

OVER_HTTP = (
    "`within` and `ctx.transaction` need the database itself, and this app reaches Rota over HTTP: give the app the "
    "URL of the database, or enqueue and emit without them"
)
_DRIVERS = ("psycopg", "psycopg2")
_UNDERSTOOD = "psycopg, SQLAlchemy (with psycopg) or Django"
_HINTS = "rota_hints"
_ours: weakref.WeakKeyDictionary[Store, History] = weakref.WeakKeyDictionary()
_checked: weakref.WeakKeyDictionary[Any, History] = weakref.WeakKeyDictionary()
after_commit: weakref.WeakKeyDictionary[Any, list[Callable[[], None]]] = weakref.WeakKeyDictionary()
"""Callbacks after the commit, for the connections of `ctx.transaction()`."""


class Caller(msgspec.Struct, frozen=True):
    """Whose transaction an operation joins.

    `guard`: the operation may be refused half-way, so it runs in a savepoint. `ends`: it ends an execution, so an idle
    transaction is ended by the server after a while, and no hints are sent: the worker's report sends them.
    """

    connection: Any
    notify: bool = False
    guard: bool = False
    ends: bool = False


class _Heard(msgspec.Struct, frozen=True):
    """A caller's connection, and how to add a callback after its commit, if its library has those."""

    voice: Voice
    after: After | None = None


def transact(link: Connection, caller: Caller, op: Callable[[Tx], T]) -> T:
    """Runs `op` in the caller's transaction. The app's jobs are registered before, on a connection of Rota's own."""
    ours = known(link)
    with _heard(caller.connection) as heard:
        return _run(link, ours, caller, heard, op)


async def atransact(link: Connection, caller: Caller, op: Callable[[Tx], T]) -> T:
    """`transact`, for async connections."""
    ours = await asyncio.to_thread(known, link)
    connection = caller.connection
    if "sqlalchemy" in _libraries(connection) and hasattr(connection, "run_sync"):

        def within(sync: Any) -> T:
            with _heard(sync) as heard:
                return _run(link, ours, caller, heard, op)

        return await connection.run_sync(within)  # type: ignore[no-any-return]
    voice = _AsyncVoice(_async_psycopg(connection))
    heard = _Heard(voice, _own(connection))
    work = asyncio.ensure_future(asyncio.to_thread(_run, link, ours, caller, heard, op))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        # The caller is about to roll back: a later statement would begin another transaction.
        voice.hush()
        await asyncio.wait([work])
        raise


def _run(link: Connection, ours: History, caller: Caller, heard: _Heard, op: Callable[[Tx], T]) -> T:
    from rota.store.postgres import borrowed  # lazy: only with PostgreSQL

    address = postgres_url.parse(link.settings.url)
    voice = heard.voice
    borrowed.check_transaction(voice)
    driver = voice.driver()
    if _checked.get(driver) != ours:
        borrowed.check(voice, address, ours)
        _checked[driver] = ours
    if caller.ends:
        borrowed.limit_idling(voice)
    try:
        with borrowed.savepoint(voice) if caller.guard else contextlib.nullcontext():
            answer, hints = borrowed.run(voice, address, link.clock, op)
    except UnicodeEncodeError as error:
        raise borrowed.unwritable(error) from None
    if caller.notify:
        borrowed.notify(voice, address, hints)
    elif hints and heard.after is not None and not caller.ends:
        heard.after(partial(_send, link, hints))
    return answer


def _send(link: Connection, hints: list[Hint]) -> None:
    with contextlib.suppress(Exception):  # Hints may be lost.
        link.store().bus.send(hints)


def check_database(link: Connection) -> None:
    """Refuses a database on which no transaction can be shared, before anything is opened."""
    if is_server(link.settings.url):
        raise UsageError(OVER_HTTP)
    if not postgres_url.is_postgres(link.settings.url):
        raise DefinitionError(
            f"only PostgreSQL can be worked on in a transaction of your own; the app is on {masked(link.settings.url)}"
        )


def known(link: Connection) -> History:
    """The app's own database, opened, with the app's jobs registered in it."""
    store = link.store()
    history = _ours.get(store)
    if history is None:
        check_database(link)
        from rota.store.postgres.borrowed import history as read  # lazy: only with PostgreSQL
        from rota.store.postgres.store import PostgresStore  # lazy: only with PostgreSQL

        if not isinstance(store, PostgresStore):
            raise DefinitionError(
                "a transaction of your own needs the app's PostgreSQL database: the test harness has none"
            )
        history = _ours[store] = store.read(read)
    return history


# --- Connections of other libraries -------------------------------------------------------------------


def _libraries(thing: object) -> set[str]:
    return {kind.__module__.partition(".")[0] for kind in type(thing).__mro__}


def bare(connection: Any) -> Any:
    """A cursor of psycopg is as good as its connection."""
    return getattr(connection, "connection", connection) if "psycopg" in _libraries(connection) else connection


@contextlib.contextmanager
def _heard(connection: Any) -> Iterator[_Heard]:
    from rota.store.postgres import borrowed  # lazy: only with PostgreSQL

    libraries = _libraries(connection)
    if "psycopg" in libraries:
        connection = bare(connection)
        if hasattr(connection, "__aenter__"):
            raise DefinitionError("this connection is async: use `await job.within(connection).aenqueue(…)`")
        yield _Heard(borrowed.PsycopgVoice(connection), _own(connection))
    elif "sqlalchemy" in libraries:
        yield _of_alchemy(connection)
    elif "django" in libraries:
        if connection.vendor != "postgresql":
            raise DefinitionError(f"the app is on PostgreSQL, the Django connection is to {connection.vendor}")
        with connection.cursor() as cursor:
            voice = borrowed.CursorVoice(cursor, connection.connection)
            # Outside of atomic() Django has no hooks.
            hooks = connection.in_atomic_block
            yield _Heard(voice, (lambda send: connection.on_commit(send, robust=True)) if hooks else None)
    elif "psycopg2" in libraries:
        with connection.cursor(cursor_factory=sys.modules["psycopg2.extensions"].cursor) as cursor:
            yield _Heard(borrowed.CursorVoice(cursor, connection))
    else:
        raise _not_understood(connection)


def _of_alchemy(connection: Any) -> _Heard:
    from rota.store.postgres import borrowed  # lazy: only with PostgreSQL

    if hasattr(connection, "run_sync"):
        raise DefinitionError("this connection is async: use `await job.within(connection).aenqueue(…)`")
    if hasattr(connection, "registry"):  # A scoped_session, called, returns the session of this thread.
        connection = connection()
    session = connection if hasattr(connection, "get_bind") else None
    if session is not None:
        connection = session.connection()
    if not hasattr(connection, "exec_driver_sql"):
        raise _not_understood(connection)
    dialect = connection.dialect
    if dialect.name != "postgresql" or dialect.driver.removesuffix("_async") not in _DRIVERS:
        raise DefinitionError(
            f"SQLAlchemy is connected by {dialect.name}+{dialect.driver}; Rota can join transactions of "
            "postgresql+psycopg and postgresql+psycopg2"
        )
    after = None if session is None else lambda send: _after_session(session, send)
    return _Heard(borrowed.AlchemyVoice(connection), after)


def _after_session(session: Any, send: Callable[[], None]) -> None:
    """The listeners stay with the session: SQLAlchemy cannot remove one while it is called."""
    waiting = session.info.get(_HINTS)
    if waiting is None:
        waiting = session.info[_HINTS] = []
        event = sys.modules["sqlalchemy.event"]
        event.listen(session, "after_commit", _session_committed)
        event.listen(session, "after_rollback", _session_rolled_back)
    waiting.append(send)


def _session_committed(session: Any) -> None:
    if not session.in_nested_transaction():  # The release of a savepoint is not a commit yet.
        sends, session.info[_HINTS] = session.info[_HINTS], []
        for send in sends:
            send()


def _session_rolled_back(session: Any) -> None:
    if not session.in_nested_transaction():
        session.info[_HINTS] = []


def _own(connection: Any) -> After | None:
    hooks = after_commit.get(bare(connection))
    return None if hooks is None else hooks.append


def _async_psycopg(connection: Any) -> Any:
    if "psycopg" in _libraries(connection):
        connection = bare(connection)
        if hasattr(connection, "__aenter__"):
            return connection
    if _libraries(connection) & {"psycopg", "psycopg2", "sqlalchemy", "django"}:
        raise DefinitionError(
            "this connection is not async: use enqueue() instead of aenqueue(), in Django behind sync_to_async"
        )
    raise _not_understood(connection)


def _not_understood(connection: Any) -> DefinitionError:
    kind = type(connection)
    return DefinitionError(
        f"a {kind.__module__}.{kind.__qualname__} is not a connection that Rota can work on: give a connection, cursor "
        f"or session of {_UNDERSTOOD}"
    )


class _AsyncVoice:
    """An async connection of psycopg: the operation runs in a thread, its statements on the event loop."""

    def __init__(self, connection: Any) -> None:
        import psycopg  # lazy: only with PostgreSQL
        from psycopg.rows import tuple_row  # lazy: only with PostgreSQL
        from psycopg.types.numeric import Int8Dumper  # lazy: only with PostgreSQL

        self._connection = connection
        self._cursor = psycopg.AsyncCursor(connection, row_factory=tuple_row)
        self._cursor.adapters.register_dumper(int, Int8Dumper)
        self._loop = asyncio.get_running_loop()
        self._is_hushed = False

    def say(self, text: str, params: Mapping[str, Any] | None = None) -> tuple[list[Row], int]:
        return asyncio.run_coroutine_threadsafe(self._say(text, params), self._loop).result()

    def driver(self) -> Any:
        return self._connection

    def hush(self) -> None:
        self._is_hushed = True

    async def _say(self, text: str, params: Mapping[str, Any] | None) -> tuple[list[Row], int]:
        if self._is_hushed:
            raise asyncio.CancelledError
        cursor = await self._cursor.execute(text.encode(), params, prepare=False)
        return (await cursor.fetchall() if cursor.description else []), cursor.rowcount
