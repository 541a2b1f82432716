"""From a URL to a store."""

from __future__ import annotations

from rota.clock import Clock
from rota.domain.errors import DefinitionError
from rota.domain.url import masked
from rota.store.port import Store
from rota.store.postgres.url import is_postgres


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

    `listen_url` is a direct way to the same PostgreSQL database, for hints, if `url` leads through a pooler. Without
    `callers_write`, only the writer thread of an SQLite store writes.
    """
    scheme = url.split(":", 1)[0]
    if scheme == "sqlite":
        from rota.store.sqlite.store import SqliteStore  # lazy: the other database need not be loaded

        return SqliteStore(url, clock, busy_s=busy_s, callers_write=callers_write)
    if is_postgres(url):
        from rota.store.postgres.store import PostgresStore  # lazy: the other database need not be loaded

        return PostgresStore(url, clock, busy_s=busy_s, listen_url=listen_url, purpose=purpose)
    raise unknown_scheme(url)


def unknown_scheme(url: str) -> DefinitionError:
    return DefinitionError(
        f"no database for {masked(url)!r}: use sqlite:///file.db or postgresql://user:password@host/database "
        "(ROTA_URL, --url or url=)"
    )
