"""From a URL to a store."""

from __future__ import annotations

from rota.clock import Clock
from rota.domain.errors import DefinitionError
from rota.store.port import Store
from rota.store.sqlite import SqliteStore


def open_store(url: str, clock: Clock | None = None, *, busy_s: float = 30.0) -> Store:
    """Opens the database behind `url` and brings its schema up to date."""
    scheme = url.split(":", 1)[0]
    if scheme == "sqlite":
        return SqliteStore(url, clock, busy_s=busy_s)
    raise DefinitionError(f"no database for {scheme!r} URLs: use sqlite:///file.db (ROTA_URL or url=)")
