"""Fresh PostgreSQL databases with Rota's schema, each a copy of one that was migrated once."""

from __future__ import annotations

from functools import cache

from rota.clock import ManualClock
from rota.store.postgres import PostgresStore
from tests.support import postgres


def fresh_database() -> str:
    """The URL of a database that is empty and up to date."""
    return postgres.shared().create_database(template=_template())


@cache
def _template() -> str:
    url = postgres.shared().create_database("rota_template")
    # With the days of today, and of the day at which a manual clock starts.
    PostgresStore(url, inline=True).close()
    PostgresStore(url, ManualClock(), inline=True).close()
    return "rota_template"
