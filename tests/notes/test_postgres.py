"""What only PostgreSQL can do: several write at the same time, and a database was made before there were logs."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from rota.clock import ManualClock
from rota.domain import retention
from rota.store import migrate
from rota.store.keeping import Made
from rota.store.postgres import migrate as postgres_migrate
from rota.store.postgres import partitions as postgres_partitions
from rota.store.postgres import url as postgres_url
from rota.store.postgres.link import Link
from rota.store.postgres.partitions import PostgresKeeper
from rota.store.postgres.store import PostgresStore
from tests.notes.telling import lines, some_lines, tell, told, write
from tests.support import postgres
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


def parts(url: str, table: str) -> dict[str, str]:
    """The bounds of each partition, by the rest of its name."""
    query = """SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i
               JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = %s::regclass"""
    with psycopg.connect(url) as connection:
        rows = connection.execute(query, (f"rota.{table}",)).fetchall()
    return {name.removeprefix(table): bounds for name, bounds in rows}


def test_telling_waits_for_nobody_who_is_about_to_end_the_attempt(url: str, world: World) -> None:
    _, attempt = world.start()
    with psycopg.connect(url) as other:
        other.execute("DELETE FROM rota.running")
        assert write(world, some_lines(attempt, 1)) == []
        assert tell(world, attempt, done=1) == []
    assert tell(world, attempt, done=2) == [attempt.id]
    assert told(world, attempt.id) == (1, None, None, None)


def test_what_a_later_attempt_wrote_at_the_same_moment_is_left_as_it_is(url: str, world: World) -> None:
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


def test_a_database_that_is_upgraded_gets_the_days_of_the_others(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrate.known("postgres")
    with postgres.shared().database() as url:
        link = Link(postgres_url.parse(url), "test", planner=False)
        with monkeypatch.context() as patch:
            patch.setattr(migrate, "known", lambda dialect: known[:4])
            postgres_migrate.apply(link, "rota", clock)
        assert len(parts(url, "execution")) == 10
        postgres_migrate.apply(link, "rota", clock)
        link.close()
        assert parts(url, "log") == parts(url, "execution") == parts(url, "finished")
        assert set(retention.days_wanted(clock.now())) <= set(PostgresKeeper(url, clock).days())


def test_a_day_that_an_older_node_made_without_a_log_gets_one(url: str, world: World) -> None:
    keeper = PostgresKeeper(url, world.clock)
    world.clock.advance(20 * retention.DAY_S)
    wanted = retention.days_wanted(world.clock.now())
    with psycopg.connect(url) as older:
        for day in wanted:
            postgres_partitions._create(older, "rota", day, ["finished", "execution"])
            postgres_partitions._attach(older, "rota", day, ["finished", "execution"])
    _, attempt = world.start()
    write(world, some_lines(attempt, 2))
    made = keeper.make_ahead()
    assert made == Made(made=[day for day in wanted if day != wanted[1]], left=[wanted[1]])
    assert parts(url, "execution").keys() - parts(url, "log").keys() == {f"_p{retention.day_name(wanted[1])}"}
    assert len(lines(world, attempt.id)) == 2
