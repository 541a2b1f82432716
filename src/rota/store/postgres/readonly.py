"""Reads a PostgreSQL database without creating, migrating or writing; see `rota.store.opening.ReadOnly`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import psycopg

from rota.clock import Clock
from rota.domain.errors import StoreMismatch, StoreUnavailable
from rota.store import migrate
from rota.store.migrate import Migration
from rota.store.port import View
from rota.store.postgres import migrate as postgres_migrate
from rota.store.postgres import url as postgres_url
from rota.store.postgres.errors import translated
from rota.store.postgres.link import Link, connected
from rota.store.postgres.session import PostgresSession
from rota.store.postgres.url import Address

P = ParamSpec("P")
T = TypeVar("T")
READ_S = 60.0


class PostgresReadOnly:
    """Implements `rota.store.opening.ReadOnly`."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._address = address = postgres_url.parse(url)
        try:
            self._link = Link(address, "cli")
            try:
                _check(self._link, address)
                self._session = PostgresSession(self._link, address.schema, clock)
            except BaseException:
                self.close()
                raise
        except psycopg.Error as error:
            raise translated(error, address.shown) from error

    def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            with self._link.within(READ_S):
                self._session.begin(self._link.begin_reading())
                try:
                    return query(self._session, *args, **kwargs)
                finally:
                    self._link.rollback()
        except psycopg.Error as error:
            raise translated(error, self._address.shown) from error

    def close(self) -> None:
        self._link.close()


def pending(url: str) -> list[Migration]:
    """The migrations that the database lacks; all of them if it has no schema of Rota yet."""
    address = postgres_url.parse(url)
    with connected(address, "cli") as link:
        applied = postgres_migrate.applied(link.connection, address.schema)
        if not applied:
            postgres_migrate.check_encoding(link.connection)
        return migrate.pending(applied, "postgres")


def _check(link: Link, address: Address) -> None:
    """Refuses a database without Rota's schema, or with an older one than this version needs."""
    applied = postgres_migrate.applied(link.connection, address.schema)
    if not applied:
        raise StoreUnavailable(
            f"{address.shown} has no schema {address.schema!r} of Rota yet: start `rota worker MODULE:APP` "
            "or run `rota migrate`"
        )
    if behind := migrate.pending(applied, "postgres"):
        raise StoreMismatch(f"{address.shown} lacks the migration {behind[0].name}: run `rota migrate`")
