"""Fresh PostgreSQL databases with Rota's schema, each a copy of one that was migrated once."""

from __future__ import annotations

from functools import cache

from rota.clock import ManualClock
from rota.store.postgres import PostgresStore
from tests.support import postgres

_made: list[str] = []


def fresh_database() -> str:
    """The URL of a database that is empty and up to date. It goes with the module of the test."""
    _made.append(postgres.shared().create_database(template=_template()))
    return _made[-1]


def drop_databases() -> None:
    """Of those that were made, which are thousands in a run: together they would fill a disk."""
    while _made:
        postgres.shared().drop_database(_made.pop())


@cache
def _template() -> str:
    url = postgres.shared().create_database("rota_template")
    # With the days of today, and of the day at which a manual clock starts.
    PostgresStore(url, inline=True).close()
    PostgresStore(url, ManualClock(), inline=True).close()
    return "rota_template"
