"""Every kind of connection that a caller may have, each with a transaction that is open and what ends it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import psycopg
import psycopg2
import sqlalchemy
from django import setup
from django.conf import settings
from django.db import connections, transaction
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.utils import DEFAULT_DB_ALIAS
from psycopg.rows import dict_row, tuple_row
from sqlalchemy import orm


class Caller(NamedTuple):
    """`connection` is what is given to Rota; `run` is a statement of the caller's own in the same transaction."""

    connection: Any
    run: Callable[[str], Any]
    commit: Callable[[], None]
    rollback: Callable[[], None]


def _of_psycopg(connection: psycopg.Connection[Any], given: Any = None) -> Caller:
    def run(text: str) -> Any:
        # Whatever the connection is set to, this cursor gives tuples.
        cursor = psycopg.Cursor(connection, row_factory=tuple_row).execute(text.encode())
        return cursor.fetchall() if cursor.description else None

    return Caller(given or connection, run, connection.commit, connection.rollback)


@contextlib.contextmanager
def plain(url: str) -> Iterator[Caller]:
    with psycopg.connect(url) as connection:
        yield _of_psycopg(connection)


@contextlib.contextmanager
def with_dicts(url: str) -> Iterator[Caller]:
    with psycopg.connect(url, row_factory=dict_row, cursor_factory=psycopg.ClientCursor) as connection:
        yield _of_psycopg(connection)


@contextlib.contextmanager
def with_raw_cursors(url: str) -> Iterator[Caller]:
    with psycopg.connect(url, cursor_factory=psycopg.RawCursor, prepare_threshold=None) as connection:
        yield _of_psycopg(connection)


@contextlib.contextmanager
def cursor(url: str) -> Iterator[Caller]:
    with psycopg.connect(url) as connection, connection.cursor() as own:
        yield _of_psycopg(connection, own)


@contextlib.contextmanager
def in_a_block(url: str) -> Iterator[Caller]:
    """In autocommit mode, between a BEGIN and its end."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("BEGIN")

        def end(word: str) -> None:
            connection.execute(word.encode())
            connection.execute("BEGIN")

        yield _of_psycopg(connection)._replace(commit=lambda: end("COMMIT"), rollback=lambda: end("ROLLBACK"))


@contextlib.contextmanager
def older_psycopg(url: str) -> Iterator[Caller]:
    connection = psycopg2.connect(url)

    def run(text: str) -> Any:
        with connection.cursor() as own:
            own.execute(text)
            return own.fetchall() if own.description else None

    try:
        yield Caller(connection, run, connection.commit, connection.rollback)
    finally:
        connection.close()


@contextlib.contextmanager
def _engine(url: str, driver: str) -> Iterator[sqlalchemy.Engine]:
    engine = sqlalchemy.create_engine(url.replace("postgresql", f"postgresql+{driver}", 1))
    try:
        yield engine
    finally:
        engine.dispose()


def _rows(result: Any) -> Any:
    return [tuple(row) for row in result] if result.returns_rows else None


def alchemy_connection(driver: str) -> Callable[[str], contextlib.AbstractContextManager[Caller]]:
    @contextlib.contextmanager
    def opened(url: str) -> Iterator[Caller]:
        with _engine(url, driver) as engine, engine.connect() as connection:
            run = lambda text: _rows(connection.execute(sqlalchemy.text(text)))  # noqa: E731
            yield Caller(connection, run, connection.commit, connection.rollback)

    return opened


def alchemy_session(driver: str, *, scoped: bool = False) -> Callable[[str], contextlib.AbstractContextManager[Caller]]:
    @contextlib.contextmanager
    def opened(url: str) -> Iterator[Caller]:
        with _engine(url, driver) as engine:
            factory = orm.scoped_session(orm.sessionmaker(engine)) if scoped else orm.sessionmaker(engine)
            session = factory()
            run = lambda text: _rows(session.execute(sqlalchemy.text(text)))  # noqa: E731
            try:
                yield Caller(factory if scoped else session, run, session.commit, session.rollback)
            finally:
                session.close()

    return opened


def django_connection(url: str) -> DatabaseWrapper:
    """A connection as `django.db.connection` is one, without a project around it."""
    if not settings.configured:
        settings.configure(USE_TZ=True)
        setup()
    parts = psycopg.conninfo.conninfo_to_dict(url)
    return DatabaseWrapper(
        {
            "NAME": parts["dbname"],
            "USER": parts["user"],
            "PASSWORD": "",
            "HOST": parts["host"],
            "PORT": parts["port"],
            "OPTIONS": {},
            "TIME_ZONE": None,
            "CONN_MAX_AGE": None,
            "CONN_HEALTH_CHECKS": False,
            "AUTOCOMMIT": True,
            "ATOMIC_REQUESTS": False,
        },
        DEFAULT_DB_ALIAS,
    )


def _of_django(connection: DatabaseWrapper, commit: Callable[[], None], rollback: Callable[[], None]) -> Caller:
    def run(text: str) -> Any:
        with connection.cursor() as own:
            own.execute(text)
            return own.fetchall() if own.description else None

    return Caller(connection, run, commit, rollback)


@contextlib.contextmanager
def django_by_hand(url: str) -> Iterator[Caller]:
    connection = django_connection(url)
    connection.set_autocommit(False)
    try:
        yield _of_django(connection, connection.commit, connection.rollback)
    finally:
        connection.close()


@contextlib.contextmanager
def django_atomic(url: str) -> Iterator[Caller]:
    connection = connections["shop"] = django_connection(url)
    blocks = [transaction.atomic(using="shop")]

    def end(*raised: Any) -> None:
        blocks.pop().__exit__(*raised)
        blocks.append(transaction.atomic(using="shop"))
        blocks[0].__enter__()

    blocks[0].__enter__()
    try:
        yield _of_django(
            connection, lambda: end(None, None, None), lambda: end(ValueError, ValueError("rolled back"), None)
        )
    finally:
        blocks.pop().__exit__(ValueError, ValueError("the end"), None)
        connection.close()
        del connections["shop"]


CALLERS: dict[str, Callable[[str], contextlib.AbstractContextManager[Caller]]] = {
    "psycopg": plain,
    "psycopg with dicts": with_dicts,
    "psycopg with raw cursors": with_raw_cursors,
    "psycopg cursor": cursor,
    "psycopg in a block": in_a_block,
    "psycopg2": older_psycopg,
    "alchemy connection": alchemy_connection("psycopg"),
    "alchemy connection psycopg2": alchemy_connection("psycopg2"),
    "alchemy session": alchemy_session("psycopg"),
    "alchemy session psycopg2": alchemy_session("psycopg2"),
    "alchemy scoped session": alchemy_session("psycopg", scoped=True),
    "django": django_atomic,
    "django by hand": django_by_hand,
}
