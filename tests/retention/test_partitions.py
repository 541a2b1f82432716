"""Partitions by day on PostgreSQL: created ahead, dropped whole, and no row that must be kept is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from rota.clock import ManualClock
from rota.domain import retention as domain
from rota.domain.outcome import Outcome, Succeeded
from rota.domain.retention import DAY
from rota.domain.status import Status
from rota.ids import made_at
from rota.ops import control, notes, retention
from rota.store import retention_reader
from rota.store.partitions import Dropped, Made
from rota.store.postgres import partitions as postgres_partitions
from rota.store.postgres.partitions import PostgresKeeper
from rota.store.postgres.store import PostgresStore
from tests.notes import telling
from tests.retention.passes import DAY_S, begin, ended, finish_all, policy, sweep_through
from tests.schedules.timetable import Timetable, every
from tests.support import postgres
from tests.support.databases import fresh_database
from tests.support.world import FAILED, NAMESPACE, World

OUTCOMES: list[Outcome] = [FAILED, Succeeded("1"), Succeeded("1")]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def url() -> str:
    return fresh_database()


@pytest.fixture
def world(url: str, clock: ManualClock) -> Iterator[World]:
    world = World(PostgresStore(url, clock, inline=True), clock)
    yield world
    world.store.close()


@pytest.fixture
def keeper(url: str, clock: ManualClock) -> PostgresKeeper:
    return PostgresKeeper(url, clock)


def drop(world: World, keeper: PostgresKeeper) -> list[Dropped]:
    kept, now = policy(world.store), world.clock.now()
    return [keeper.drop(day, kept.cutoffs(now)) for day in domain.days_to_drop(keeper.days(), kept, now)]


def in_default(url: str) -> int:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT count(*) FROM rota.execution_default").fetchone()
    assert found is not None
    return int(found[0])


def move_on(world: World, keeper: PostgresKeeper, days: int) -> None:
    """Moves the clock, and runs the janitor."""
    for _ in range(days):
        world.clock.advance(DAY_S)
        keeper.make_ahead()


def test_a_new_database_has_its_partitions_at_once(url: str, clock: ManualClock, keeper: PostgresKeeper) -> None:
    wanted = domain.days_wanted(clock.now())
    assert set(wanted) <= set(keeper.days())
    assert keeper.make_ahead() == Made()


def test_partitions_are_created_ahead_and_contain_new_executions(
    url: str, world: World, keeper: PostgresKeeper
) -> None:
    world.clock.advance(20 * DAY_S)
    made = keeper.make_ahead()
    assert made.made == domain.days_wanted(world.clock.now())
    ids = world.enqueue_many(3)
    world.clock.advance(DAY_S)
    ids += world.enqueue_many(2)
    assert in_default(url) == 0
    assert world.executions() == sorted(ids, reverse=True)


def test_opening_a_store_creates_missing_partitions(url: str, world: World, keeper: PostgresKeeper) -> None:
    world.clock.advance(20 * DAY_S)
    PostgresStore(url, world.clock, inline=True).close()
    assert set(domain.days_wanted(world.clock.now())) <= set(keeper.days())


def test_a_store_opens_even_if_no_partition_can_be_created(url: str, world: World, keeper: PostgresKeeper) -> None:
    world.clock.advance(20 * DAY_S)
    with psycopg.connect(url) as other:
        other.execute("SELECT count(*) FROM rota.execution")
        PostgresStore(url, world.clock, inline=True).close()
    assert not set(domain.days_wanted(world.clock.now())) & set(keeper.days())
    assert len(keeper.make_ahead().made) == 9


def test_no_partition_is_created_for_a_day_with_rows_in_the_default_partition(
    url: str, world: World, keeper: PostgresKeeper
) -> None:
    world.clock.advance(20 * DAY_S)
    today = domain.day_of(world.clock.now())
    stray = world.enqueue()
    made = keeper.make_ahead()
    assert made.left == [today]
    assert len(made.made) == 8
    assert in_default(url) == 1
    finish_all(world)
    assert world.status(stray) is Status.SUCCESS
    world.clock.advance(32 * DAY_S)
    begun = begin(world.store)
    sweep = retention.sweep_strays(policy(world.store), begun.begun_at)
    assert sweep_through(world.store, begun, sweep) == 1
    assert in_default(url) == 0


def test_the_partition_of_a_day_is_dropped_with_its_ended_executions(
    url: str, world: World, keeper: PostgresKeeper
) -> None:
    world.enqueue_many(50)
    finish_all(world, after_s=2)
    move_on(world, keeper, 31)
    assert drop(world, keeper) == [Dropped("", 0, 0)], "only yesterday's day, which was empty"
    move_on(world, keeper, 1)
    assert drop(world, keeper) == [Dropped("", 50, 0)]
    assert world.executions() == []
    assert ended(world.store) == {("send", "success"): 50}
    assert domain.day_of(world.clock.now()) - 32 * DAY not in keeper.days()


def test_the_ledger_keeps_the_final_status_of_dropped_executions(world: World, keeper: PostgresKeeper) -> None:
    table = Timetable(world)
    table.put(every(DAY_S))
    table.go_to(DAY_S)
    finish_all(world)
    world.enqueue_many(5)
    finish_all(world)
    move_on(world, keeper, 32)
    assert sum(dropped.removed for dropped in drop(world, keeper)) == 6
    assert world.executions() == []
    assert [(row.outcome, row.status) for row in table.rows()] == [("fired", "success")]


def test_rows_that_must_be_kept_move_to_the_default_partition(url: str, world: World, keeper: PostgresKeeper) -> None:
    (dead,) = world.fail()
    later = world.enqueue(delay_s=60 * DAY_S, start_within_s=DAY_S)
    world.register("send", namespace="long")
    world.store.transact(retention.set_retention, "long", 90 * DAY_S, "test")
    longer = world.enqueue(namespace="long")
    worker = world.join(namespace="long")
    world.finish(world.claim(worker, namespace="long")[0])
    world.enqueue_many(20)
    finish_all(world)
    open_ = world.enqueue()
    world.store.transact(retention.set_retention, "long", 30 * DAY_S, "test")
    move_on(world, keeper, 32)
    world.store.transact(retention.set_retention, "long", 90 * DAY_S, "test")
    kept, now = policy(world.store), world.clock.now()
    assert domain.days_to_drop(keeper.days(), kept, now) == []
    # As if the day had been chosen before the retention was made longer: the rows decide.
    day = domain.day_of(made_at(dead))
    assert keeper.drop(day, kept.cutoffs(now)) == Dropped("", 20, 4)
    assert [world.status(id) for id in (dead, later, open_)] == [Status.FAILED, Status.SCHEDULED, Status.QUEUED]
    assert [letter.id for letter in world.dead()] == [dead]
    assert len(world.attempts(dead)) == 1
    assert world.store.read(lambda view: view.rows("exists", id=longer, namespace="long"))
    assert in_default(url) == 4
    assert [(attempt.id, world.finish(attempt)) for attempt in world.claim(world.join())] == [(open_, [])]
    (replayed,) = world.store.transact(control.replay, NAMESPACE, {dead: world.ids.new()}, "test")
    assert world.status(replayed) is Status.QUEUED
    world.clock.advance(29 * DAY_S)
    world.promote()
    assert world.status(later) is Status.QUEUED, "its reminder and its row are still there"


def logged(url: str) -> dict[str, tuple[str, int]]:
    """In which partition the lines of each execution are, and how many there are."""
    query = "SELECT id::text, min(tableoid::regclass::text), sum(last - first + 1) FROM rota.log GROUP BY 1"
    with psycopg.connect(url) as connection:
        return {id: (table, count) for id, table, count in connection.execute(query).fetchall()}


def test_logs_and_notes_are_dropped_with_their_day_except_those_of_kept_executions(
    url: str, world: World, keeper: PostgresKeeper
) -> None:
    ids = world.enqueue_many(3)
    claims = world.claim(world.join())
    for attempt in claims:
        telling.write(world, telling.some_lines(attempt, 10))
        telling.tell(world, attempt, done=1, checkpoint="1")
    for attempt, outcome in zip(claims, OUTCOMES, strict=True):
        world.finish(attempt, outcome)
    move_on(world, keeper, 32)
    assert drop(world, keeper)[-1] == Dropped("", 2, 1)
    assert logged(url) == {ids[0]: ("rota.log_default", 10)}
    assert world.store.read(notes.kept, ids).keys() == {ids[0]}
    assert telling.lines(world, ids[0]) == telling.some_lines(claims[0], 10)
    world.store.transact(control.discard, NAMESPACE, [ids[0]], "test")
    world.clock.advance(DAY_S)
    begun = begin(world.store)
    assert sweep_through(world.store, begun, retention.sweep_strays(policy(world.store), begun.begun_at)) == 1
    assert logged(url) == {}
    assert world.store.read(notes.kept, ids) == {}


def test_a_kept_execution_with_a_very_long_log_keeps_its_partition(
    url: str, world: World, keeper: PostgresKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_partitions, "MOST_SURVIVING_PIECES", 10)
    ids = world.enqueue_many(3)
    claims = world.claim(world.join())
    for attempt, outcome in zip(claims, OUTCOMES, strict=True):
        telling.write_apart(world, telling.some_lines(attempt, 11))
        world.finish(attempt, outcome)
    move_on(world, keeper, 32)
    kept, now, day = policy(world.store), world.clock.now(), domain.day_of(made_at(ids[0]))
    assert drop(world, keeper)[-1] == Dropped("crowded")
    begun = begin(world.store)
    assert sweep_through(world.store, begun, retention.sweep_day(kept, day, now)) == 2
    assert logged(url) == {ids[0]: (f"rota.log_p{domain.day_name(day)}", 11)}
    monkeypatch.setattr(postgres_partitions, "MOST_SURVIVING_BYTES", 50)
    assert drop(world, keeper)[-1] == Dropped("crowded")
    monkeypatch.setattr(postgres_partitions, "MOST_SURVIVING_BYTES", 10_000)
    monkeypatch.setattr(postgres_partitions, "MOST_SURVIVING_PIECES", 11)
    assert drop(world, keeper)[-1] == Dropped("", 0, 1)
    assert logged(url) == {ids[0]: ("rota.log_default", 11)}


def test_a_day_with_too_many_rows_to_keep_is_pruned_by_rows(
    world: World, keeper: PostgresKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_partitions, "MOST_SURVIVORS", 5)
    dead = world.fail(6)
    world.enqueue_many(10)
    finish_all(world)
    move_on(world, keeper, 32)
    kept, now = policy(world.store), world.clock.now()
    day = domain.day_of(made_at(dead[0]))
    assert keeper.drop(day, kept.cutoffs(now)) == Dropped("crowded")
    begun = begin(world.store)
    assert sweep_through(world.store, begun, retention.sweep_day(kept, day, now)) == 10
    assert len(world.dead()) == 6
    assert ended(world.store) == {("send", "failed"): 6, ("send", "success"): 10}


def test_a_partition_that_is_locked_is_dropped_later(
    url: str, world: World, keeper: PostgresKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_partitions, "PAUSE_S", 0.001)
    world.enqueue_many(3)
    finish_all(world)
    move_on(world, keeper, 32)
    with psycopg.connect(url) as other:
        other.execute("SELECT count(*) FROM rota.execution")
        assert {one.trouble for one in drop(world, keeper)} == {"busy"}
        assert len(world.executions()) == 3
    assert [one.trouble for one in drop(world, keeper)] == ["", ""]
    assert ended(world.store) == {("send", "success"): 3}


def test_a_partition_that_is_being_vacuumed_is_dropped_later_and_blocks_no_call(
    url: str, world: World, keeper: PostgresKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_partitions, "PAUSE_S", 0.001)
    (id,) = world.enqueue_many(1)
    finish_all(world)
    move_on(world, keeper, 32)
    table = f"rota.finished_p{domain.day_name(domain.day_of(made_at(id)))}"
    with psycopg.connect(url) as vacuum:
        vacuum.execute(f"LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE".encode())
        assert [one.trouble for one in drop(world, keeper)] == ["", "busy"]
    assert [one.removed for one in drop(world, keeper)] == [1]


def test_ten_concurrent_janitors_count_every_execution_once(url: str, world: World, keeper: PostgresKeeper) -> None:
    for _ in range(4):
        world.enqueue_many(25)
        finish_all(world)
        move_on(world, keeper, 1)
    move_on(world, keeper, 32)
    together = threading.Barrier(10)

    def node(number: int) -> int:
        mine = PostgresKeeper(url, world.clock)
        together.wait()
        return sum(one.removed for one in drop(world, mine))

    world.store.close()
    world.store = PostgresStore(url, world.clock)
    with ThreadPoolExecutor(10) as threads:
        removed = sum(threads.map(node, range(10)))
    removed += sum(one.removed for one in drop(world, keeper))
    assert removed == 100
    assert ended(world.store) == {("send", "success"): 100}
    assert world.executions() == []


def test_a_broken_connection_leaves_the_partition_complete(
    url: str, world: World, keeper: PostgresKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.enqueue_many(5)
    finish_all(world)
    move_on(world, keeper, 32)

    def cut(*_: object) -> bool:
        keeper.close()
        return True

    with monkeypatch.context() as patch:
        patch.setattr(postgres_partitions, "_locked", cut)
        with pytest.raises(Exception, match="cannot be reached"):
            drop(world, keeper)
    assert len(world.executions()) == 5
    assert sum(one.removed for one in drop(world, PostgresKeeper(url, world.clock))) == 5


def test_a_role_without_the_right_to_create_tables_can_still_work(url: str, clock: ManualClock) -> None:
    server, name = postgres.shared(), url.rpartition("/")[2]
    with server.connect(name) as connection:
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA rota TO guest")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA rota TO guest")
    clock.advance(20 * DAY_S)
    store = PostgresStore(server.url(name, "guest"), clock, inline=True)
    world = World(store, clock)
    world.enqueue()
    assert len(finish_all(world)) == 1
    assert store.read(retention_reader.history, 0, retention.PASS_NAME, 0).oldest_at is not None
    store.close()
    with server.connect(name) as connection:
        connection.execute("DROP OWNED BY guest")
        connection.execute("DROP ROLE guest")
