"""Opens the store or the reader at the URL of a database, or lists its pending migrations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from rota.clock import Clock
from rota.domain.errors import DefinitionError
from rota.domain.url import masked
from rota.store.migrate import Migration
from rota.store.port import Store, View
from rota.store.postgres import url as postgres_url
from rota.store.postgres.url import is_postgres

P = ParamSpec("P")
T = TypeVar("T")
# The modules of a database are imported only when it is used.


class ReadOnly(Protocol):
    """The reading half of a `Store`, for the commands that only show something. The database must be up to date.

    Nothing is created, migrated or written: with a wrong URL a command creates no database, and a newer version of Rota
    does not change the schema under older workers.
    """

    def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `query` over one consistent state."""

    def close(self) -> None: ...


def open_store(
    url: str,
    clock: Clock | None = None,
    *,
    busy_s: float = 30.0,
    listen_url: str | None = None,
    purpose: str = "",
    callers_write: bool = True,
) -> Store:
    """Opens the database behind `url` and brings its schema up to date.

    `listen_url` is a direct URL of the same PostgreSQL database, for hints, if `url` leads through a pooler. Without
    `callers_write`, only the writer thread of an SQLite store writes.
    """
    if is_postgres(url):
        from rota.store.postgres.store import PostgresStore  # lazy: see above

        return PostgresStore(url, clock, busy_s=busy_s, listen_url=listen_url, purpose=purpose)
    _check_scheme(url)
    from rota.store.sqlite.store import SqliteStore  # lazy: see above

    return SqliteStore(url, clock, busy_s=busy_s, callers_write=callers_write)


def open_reader(url: str, clock: Clock) -> ReadOnly:
    if is_postgres(url):
        from rota.store.postgres.readonly import PostgresReadOnly  # lazy: see above

        return PostgresReadOnly(url, clock)
    _check_scheme(url)
    from rota.store.sqlite.readonly import SqliteReadOnly  # lazy: see above

    return SqliteReadOnly(url, clock)


def pending(url: str) -> list[Migration]:
    """The migrations that the database behind `url` lacks; all of them if it does not exist yet."""
    if is_postgres(url):
        from rota.store.postgres import readonly as postgres_readonly  # lazy: see above

        return postgres_readonly.pending(url)
    _check_scheme(url)
    from rota.store.sqlite import readonly as sqlite_readonly  # lazy: see above

    return sqlite_readonly.pending(url)


def is_server(url: str) -> bool:
    """Whether the URL is that of a server of Rota, not of a database."""
    return url.split(":", 1)[0].lower() in ("http", "https")


def place_of(url: str) -> str:
    """Where the database is, without secrets; refuses a database in memory."""
    if is_postgres(url):
        return postgres_url.parse(url).shown
    _check_scheme(url)
    from rota.store.sqlite.file import file_of  # lazy: see above

    return file_of(url)


def _check_scheme(url: str) -> None:
    scheme = url.split(":", 1)[0]
    if is_server(url):
        raise DefinitionError(
            f"{masked(url)} is a server of Rota, and this needs the database itself: an app reaches a server to "
            "enqueue, wait and operate; workers and commands take the URL of the database (ROTA_URL, --url or url=)"
        )
    if scheme != "sqlite":
        raise DefinitionError(
            f"no database for {masked(url)!r}: use sqlite:///file.db or postgresql://user:password@host/database "
            "(ROTA_URL, --url or url=)"
        )
