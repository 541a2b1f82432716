"""Notes and logs on PostgreSQL, where several transactions write at the same time."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from rota.clock import ManualClock
from rota.domain import retention
from rota.store.postgres.store import PostgresStore
from tests.notes.telling import some_lines, tell, told, write
from tests.support.databases import fresh_database
from tests.support.world import World


@pytest.fixture
def url() -> str:
    return fresh_database()


@pytest.fixture
def store(url: str, clock: ManualClock) -> Iterator[PostgresStore]:
    store = PostgresStore(url, clock, inline=True)
    yield store
    store.close()


def test_writing_notes_does_not_wait_for_a_transaction_that_ends_the_attempt(url: str, world: World) -> None:
    _, attempt = world.start()
    with psycopg.connect(url) as other:
        other.execute("DELETE FROM rota.running")
        assert write(world, some_lines(attempt, 1)) == []
        assert tell(world, attempt, done=1) == []
    assert tell(world, attempt, done=2) == [attempt.id]
    assert told(world, attempt.id) == (1, None, None, None)


def test_a_note_does_not_overwrite_a_concurrent_note_of_a_later_attempt(url: str, world: World) -> None:
    _, attempt = world.start()
    tell(world, attempt, done=1)
    with psycopg.connect(url) as other:
        other.execute("UPDATE rota.note SET fence = 9, checkpoint = '9'")
    assert tell(world, attempt, done=2, checkpoint="2") == [attempt.id]
    assert told(world, attempt.id) == (1, None, None, "9")


def test_lines_are_in_the_partition_of_their_day(url: str, world: World) -> None:
    _, attempt = world.start()
    write(world, some_lines(attempt, 3))
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT DISTINCT tableoid::regclass::text FROM rota.log").fetchall()
    assert found == [(f"rota.log_p{retention.day_name(retention.day_of(world.clock.now()))}",)]
