"""The daily partitions of a database that has them (PostgreSQL), as the janitor sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from rota.clock import Clock
from rota.store.postgres.url import is_postgres


class Made(msgspec.Struct, frozen=True):
    """Days with new partitions, days whose rows are in the default partition already, and days to try again."""

    made: list[int] = []
    left: list[int] = []
    waiting: list[int] = []


class Dropped(msgspec.Struct, frozen=True):
    """How the drop of a day ended. `trouble` is empty if it succeeded, `busy` if a retry may succeed, and `crowded` if
    too many rows must be kept."""

    trouble: str = ""
    removed: int = 0
    kept: int = 0


class Keeper(Protocol):
    """Creates and drops the partitions of one database. Its calls block."""

    def make_ahead(self) -> Made:
        """Creates the missing partitions from yesterday on."""

    def days(self) -> list[int]:
        """The days that have partitions, oldest first."""

    def drop(self, day: int, cutoffs: Sequence[tuple[str, int]]) -> Dropped:
        """Drops a day. Executions that did not end before the cutoff of their namespace are kept."""

    def close(self) -> None:
        """From another thread: aborts the call in progress, whose transaction is rolled back."""


def open_keeper(url: str, clock: Clock) -> Keeper | None:
    """The keeper of this database; None if it has no partitions."""
    if not is_postgres(url):
        return None
    from rota.store.postgres.partitions import PostgresKeeper  # lazy: psycopg is needed for PostgreSQL only

    return PostgresKeeper(url, clock)
