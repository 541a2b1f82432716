"""Concurrent operations on schedules on PostgreSQL, each pair in its most dangerous order, or all at once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import psycopg
import pytest

from rota.domain.outcome import Succeeded
from rota.domain.schedule import Spec
from rota.ops import after_end, backfill, finish, firing, schedule, upkeep
from rota.ops.finish import Finished
from rota.ops.firing import Fired
from rota.store.port import Tx
from rota.store.postgres.store import PostgresStore
from tests.schedules.timetable import Entry, Timetable, after, every, instant, spec, ticks_of
from tests.store.arena import Arena
from tests.support.waiting import PATIENCE_S
from tests.support.world import APP, NAMESPACE

MINUTELY = every(60)


@pytest.fixture
def arena() -> Iterator[Arena]:
    with Arena() as arena:
        yield arena


@pytest.fixture
def table(arena: Arena) -> Timetable:
    return Timetable(arena.world)


def names(count: int) -> list[str]:
    return [f"s{number:03}" for number in range(count)]


def declare_many(table: Timetable, count: int, wanted: Spec) -> list[str]:
    table.declare(**dict.fromkeys(names(count), wanted))
    return names(count)


def fire(tx: Tx, table: Timetable, most: int = firing.MOST) -> Fired:
    return firing.fire(tx, upkeep.ALL_SHARDS, table.world.ids.many, most)


def report(tx: Tx, id: str) -> list[str]:
    return finish.finish(tx, [Finished(id, 1, Succeeded("1"))])


def put(tx: Tx, name: str, wanted: Spec) -> bool:
    return schedule.put(tx, NAMESPACE, APP, name, wanted, "test")


def expect_one_execution_each(table: Timetable, schedules: list[str]) -> None:
    started = [id for name in schedules for id in table.started(name)]
    assert len(started) == len(set(started))
    assert sorted(started) == sorted(table.world.executions(limit=100_000))


# All fire.


@pytest.mark.parametrize("nodes", [2, 10])
def test_all_nodes_fire_all_schedules_at_once(arena: Arena, table: Timetable, nodes: int) -> None:
    schedules = declare_many(table, 60, spec(MINUTELY))
    stores = [arena.store() for _ in range(nodes)]

    def until_nothing_is_due(store: PostgresStore) -> int:
        started = 0
        while (fired := store.transact(fire, table, 7)).schedules:
            started += fired.started
        return started

    for minute in range(1, 6):
        arena.clock.set(instant(60 * minute))
        calls = [partial(until_nothing_is_due, store) for store in stores]
        assert sum(arena.all_at_once(calls)) == len(schedules)
    for name in schedules:
        assert table.ledger(name) == [Entry(60 * minute, "fired") for minute in range(1, 6)]
    expect_one_execution_each(table, schedules)


def test_a_schedule_that_another_node_has_locked_is_skipped(arena: Arena, table: Timetable) -> None:
    table.put(MINUTELY)
    arena.clock.set(instant(60))
    with arena.held_open(fire, table) as first:
        assert table.fire() == Fired(0, 0)
    assert first.result() == Fired(1, 1)
    assert table.fire() == Fired(0, 0)
    assert table.ledger() == [Entry(60, "fired")]


def test_a_tick_of_a_node_that_died_before_its_commit_is_fired_by_the_next(arena: Arena, table: Timetable) -> None:
    table.put(MINUTELY)
    arena.clock.set(instant(60))
    with arena.held_open(fire, table, undo=True):
        pass
    assert (table.ledger(), table.world.executions()) == ([], [])
    assert table.fire().started == 1


def test_an_execution_carries_the_name_of_its_schedule_and_its_tick(arena: Arena, table: Timetable) -> None:
    table.put(MINUTELY, "nightly", jitter_s=30.0)
    table.go_to(60)
    with psycopg.connect(arena.url) as connection:
        rows = connection.execute("SELECT schedule, tick, catch_up FROM rota.execution").fetchall()
    assert rows == [("nightly", instant(60), 0)]


# Fire, and an owner.


def test_a_pause_waits_for_the_tick(arena: Arena, table: Timetable) -> None:
    table.put(MINUTELY)
    arena.clock.set(instant(60))
    with arena.held_open(fire, table):
        paused = arena.start(schedule.pause, NAMESPACE, APP, "s", "test")
        arena.wait_until_blocked(paused)
    assert paused.result(PATIENCE_S)
    assert table.go_to(120).schedules == 0
    table.resume()
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "paused")]


def test_a_schedule_that_is_being_paused_does_not_fire(arena: Arena, table: Timetable) -> None:
    table.put(MINUTELY)
    arena.clock.set(instant(60))
    with arena.held_open(schedule.pause, NAMESPACE, APP, "s", "test"):
        assert table.fire() == Fired(0, 0)
    assert table.fire() == Fired(0, 0)
    assert table.ledger() == [Entry(60, "missed")]


@pytest.mark.parametrize("how", ["put", "declare", "remove"])
def test_a_change_waits_for_the_tick(arena: Arena, table: Timetable, how: str) -> None:
    table.put(MINUTELY)
    arena.clock.set(instant(60))
    with arena.held_open(fire, table):
        match how:
            case "put":
                changed = arena.start(put, "s", spec(every(90)))
            case "declare":
                changed = arena.start(schedule.declare, NAMESPACE, APP, [("s", spec(every(90)))])  # type: ignore[arg-type]
            case _:
                changed = arena.start(schedule.remove, NAMESPACE, APP, "s", "test")
        arena.wait_until_blocked(changed)
    changed.result(PATIENCE_S)
    table.visit(90, 120)
    later = [] if how == "remove" else [Entry(90, "fired")]
    assert table.ledger() == [Entry(60, "fired"), *later]


@pytest.mark.parametrize("undo", [False, True])
def test_a_schedule_that_is_being_changed_fires_by_its_new_definition(
    arena: Arena, table: Timetable, undo: bool
) -> None:
    table.put(MINUTELY)
    arena.clock.set(instant(60))
    with arena.held_open(put, "s", spec(every(90)), undo=undo):
        assert table.fire() == Fired(0, 0)
    table.visit(60, 90, 120)
    wanted = [Entry(60, "fired"), Entry(120, "fired")] if undo else [Entry(60, "missed"), Entry(90, "fired")]
    assert table.ledger() == wanted


def test_nodes_fire_while_owners_change_schedules(arena: Arena, table: Timetable) -> None:
    """Whatever the order was: each tick of the minute has one outcome, and each execution one tick."""
    schedules = names(24)
    wanted = [(name, spec(MINUTELY)) for name in schedules]
    table.declare(**dict(wanted))
    for name in schedules[:8]:
        table.put(MINUTELY, f"own-{name}")
    own = [f"own-{name}" for name in schedules[:8]]
    store = [arena.store() for _ in range(9)]

    def shake(place: int, seed: int) -> None:
        order = random.Random(seed).sample(own, len(own))
        for name in order:
            store[place].transact(schedule.pause, NAMESPACE, APP, name, "test")
            store[place].transact(schedule.resume, NAMESPACE, APP, name, "test")

    def change(place: int, seed: int) -> None:
        for name in random.Random(seed).sample(own, len(own)):
            store[place].transact(put, name, spec(MINUTELY, priority=seed % 5))

    def declare(place: int, seed: int) -> None:
        shuffled = random.Random(seed).sample(wanted, len(wanted))
        store[place].transact(schedule.declare, NAMESPACE, APP, shuffled)

    for minute in range(1, 11):
        arena.clock.set(instant(60 * minute))
        calls: list[Callable[[], object]] = [
            *(partial(store[place].transact, fire, table, 5) for place in range(3)),
            *(partial(shake, place, minute) for place in (3, 4)),
            *(partial(change, place, minute + place) for place in (5, 6)),
            *(partial(declare, place, minute + place) for place in (7, 8)),
        ]
        arena.all_at_once(calls)
        while table.fire().schedules:
            pass
    for name in [*schedules, *own]:
        assert ticks_of(table.rows(name), 60) == [instant(60 * minute) for minute in range(1, 11)], name
    assert all(entry.outcome == "fired" for name in schedules for entry in table.ledger(name))
    expect_one_execution_each(table, [*schedules, *own])


def test_a_schedule_is_removed_and_recreated_while_all_nodes_fire(arena: Arena, table: Timetable) -> None:
    table.put(MINUTELY)
    stores = [arena.store() for _ in range(4)]

    def again(store: PostgresStore) -> None:
        store.transact(schedule.remove, NAMESPACE, APP, "s", "test")
        store.transact(put, "s", spec(MINUTELY))

    for minute in range(1, 9):
        arena.clock.set(instant(60 * minute))
        calls: list[Callable[[], object]] = [partial(again, stores[0])]
        calls += [partial(one.transact, fire, table) for one in stores[1:]]
        arena.all_at_once(calls)
    counted = Counter(row.at for row in table.rows())
    assert counted == {instant(60 * minute): 1 for minute in range(1, 9)}
    expect_one_execution_each(table, ["s"])


# Declarations.


def test_ten_nodes_declare_at_once(arena: Arena, table: Timetable) -> None:
    wanted = [(name, spec(MINUTELY)) for name in names(1000)]
    calls = [
        partial(arena.store().transact, schedule.declare, NAMESPACE, APP, wanted if place % 2 else wanted[::-1])
        for place in range(10)
    ]
    arena.all_at_once(calls)
    assert arena.deadlocks() == 0
    assert table.names() == names(1000)
    assert table.declare(**dict(wanted)) == []
    table.go_to(60)
    assert all(table.ledger(name) == [Entry(60, "fired")] for name in names(30))


def test_one_of_two_concurrent_declarations_is_in_force_as_a_whole(arena: Arena, table: Timetable) -> None:
    table.declare(**dict.fromkeys(names(10), spec(every(30))))
    codes = [{name: spec(every(period)) for name in names(10)} for period in (60, 90)]
    for _ in range(5):
        calls = [
            partial(arena.store().transact, schedule.declare, NAMESPACE, APP, list(code.items())) for code in codes
        ]
        arena.all_at_once(calls)
        assert len({table.info(name).text for name in names(10)}) == 1


# Fire, and the end of an execution.


def test_an_end_during_the_commit_of_the_tick_that_waits_for_it_is_found_later(arena: Arena, table: Timetable) -> None:
    """The end looks for held ticks, and the tick that waits for it has not been committed yet."""
    table.put(MINUTELY, overlap="queue_one")
    table.go_to(60)
    attempt = table.claim()
    arena.clock.set(instant(120))
    with arena.held_open(fire, table):
        assert arena.store().transact(report, attempt.id) == []
    assert (table.info().waits_for, table.info().held) == (attempt.id, f"[{instant(120)}]")
    assert table.follow() == 1
    assert table.fire().started == 1
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "fired")]


def test_a_tick_during_the_commit_of_the_end_that_it_waits_for_is_found_later(arena: Arena, table: Timetable) -> None:
    table.put(MINUTELY, overlap="queue_one")
    table.go_to(60)
    attempt = table.claim()
    arena.clock.set(instant(120))
    with arena.held_open(report, attempt.id):
        table.fire()
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "queued")]
    assert table.follow() == 1
    assert table.fire().started == 1
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "fired")]


@pytest.mark.parametrize("trigger", [after(1), every(1)], ids=["after", "queue_one"])
def test_concurrent_ticks_and_ends_never_block_a_schedule_for_ever(
    arena: Arena, table: Timetable, trigger: object
) -> None:
    schedules = names(10)
    table.declare(**dict.fromkeys(schedules, spec(trigger, overlap="queue_one")))  # type: ignore[arg-type]
    ticker, ender = arena.store(), arena.store()
    worker = table.world.join(lease_s=10_000)

    def end(ids: list[str]) -> None:
        for id in ids:
            ender.transact(report, id)

    for second in range(1, 21):
        arena.clock.set(instant(second))
        running = [claimed.id for claimed in table.world.claim(worker)]
        calls: list[Callable[[], object]] = [partial(ticker.transact, fire, table), partial(end, running)]
        arena.all_at_once(calls)
    for second in range(21, 24):
        arena.clock.set(instant(second))
        end([claimed.id for claimed in table.world.claim(worker)])
        table.follow()
        table.fire()
    for name in schedules:
        fired = [entry.at for entry in table.ledger(name) if entry.outcome == "fired"]
        assert len(fired) >= 5, name
        assert fired[-1] >= 20, name
    expect_one_execution_each(table, schedules)


def test_two_supervisors_release_a_forgotten_tick_once(arena: Arena, table: Timetable) -> None:
    table.put(MINUTELY, overlap="queue_one")
    table.go_to(60)
    attempt = table.claim()
    arena.clock.set(instant(120))
    with arena.held_open(fire, table):
        arena.store().transact(report, attempt.id)
    assert table.info().waits_for == attempt.id
    arena.all_at_once([partial(arena.store().transact, after_end.wake_forgotten) for _ in range(4)])
    assert (table.info().waits_for, table.next_at()) == (None, 120)
    assert table.fire().started == 1
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "fired")]


# Backfills.


def test_two_backfills_of_one_period_run_each_tick_once(arena: Arena, table: Timetable) -> None:
    table.put(MINUTELY, catch_up="none")
    table.go_to(3600 + 45)
    stores = [arena.store() for _ in range(4)]

    def all_of_it(store: PostgresStore) -> int:
        low: int | None = instant(0)
        started = 0
        while low is not None:
            args = (NAMESPACE, APP, "s", low, instant(3600), "test", table.world.ids.many, 7)
            step = store.transact(backfill.backfill, *args)
            low, started = step.after, started + step.started
        return started

    arena.clock.set(instant(3660))
    ran = arena.all_at_once([*(partial(all_of_it, store) for store in stores), partial(_fire_once, arena, table)])
    assert sum(ran) == 61
    assert ticks_of(table.rows(), 60) == [instant(60 * minute) for minute in range(1, 62)]
    expect_one_execution_each(table, ["s"])


def _fire_once(arena: Arena, table: Timetable) -> int:
    store = arena.store()
    started = 0
    while not started:
        started = store.transact(fire, table).started
    return started
