"""What the rest of Rota knows of partitions, which not every database has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from rota.clock import Clock
from rota.store.postgres.url import is_postgres


class Made(msgspec.Struct, frozen=True):
    """The days that were made; those that stay in the default partition, which has rows of them; those to try again."""

    made: list[int] = []
    left: list[int] = []
    waiting: list[int] = []


class Dropped(msgspec.Struct, frozen=True):
    """What became of a day: dropped, or why not (`busy`: try again; `crowded`: too much of it must be kept)."""

    trouble: str = ""
    removed: int = 0
    kept: int = 0


class Keeper(Protocol):
    """Looks after the partitions of one database. Its calls block."""

    def make_ahead(self) -> Made:
        """Makes the days that are missing from yesterday on."""

    def days(self) -> list[int]:
        """The days that have a partition, oldest first."""

    def drop(self, day: int, cutoffs: Sequence[tuple[str, int]]) -> Dropped:
        """Drops a day but for what must be kept of it: what did not end before the cutoff of its namespace."""

    def close(self) -> None:
        """From another thread: ends what is being done, which then has not happened."""


def open_keeper(url: str, clock: Clock) -> Keeper | None:
    """Whoever looks after the partitions of this database; None if it has none."""
    if not is_postgres(url):
        return None
    from rota.store.postgres.partitions import PostgresKeeper  # lazy: the other database need not be loaded

    return PostgresKeeper(url, clock)
