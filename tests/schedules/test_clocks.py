"""The database's clock jumps, or the time-zone database changes: no tick fires twice, and every tick is recorded."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from zoneinfo import ZoneInfo

import pytest

from rota.domain import trigger, zone
from rota.domain.zone import Zone
from tests.schedules.timetable import Entry, Timetable, after, at, cron, every, instant, ticks_of

HOUR_S = 3600
POLICIES = ["none", "last", "all"]


def expect_each_once(table: Timetable, until_s: int, period_s: int = 60) -> None:
    assert ticks_of(table.rows(), period_s) == [instant(at) for at in range(period_s, until_s + 1, period_s)]
    assert len(table.started()) == len(set(table.started())) == len(table.world.executions(limit=10_000))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_clock_that_jumps_an_hour_forward_and_back(table: Timetable, policy: str) -> None:
    table.put(every(60), catch_up=policy)
    for now in (60, 120, HOUR_S + 150, 180, 240, 1800, HOUR_S + 120, HOUR_S + 180, HOUR_S + 240):
        table.go_to(now)
    expect_each_once(table, HOUR_S + 240)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_clock_that_jumps_an_hour_back_and_forward(table: Timetable, policy: str) -> None:
    table.put(every(60), catch_up=policy)
    for now in (60, HOUR_S + 60, 60, 120, HOUR_S, HOUR_S + 60, 2 * HOUR_S):
        table.go_to(now)
    expect_each_once(table, 2 * HOUR_S)


def test_instants_do_not_fire_again_after_a_jump_back(table: Timetable) -> None:
    table.put(at(100, 200))
    for now in (100, 0, 100, 199, 200, 50, 100, 200):
        table.go_to(now)
    assert table.ledger() == [Entry(100, "fired"), Entry(200, "fired")]


def test_a_pause_during_a_jump_of_the_clock(table: Timetable) -> None:
    table.put(every(60))
    table.go_to(HOUR_S)
    table.world.clock.set(instant(60))
    table.pause()
    table.world.clock.set(instant(1800))
    table.resume()
    assert table.next_at() == HOUR_S + 60
    table.visit(1860, HOUR_S, HOUR_S + 60)
    expect_each_once(table, HOUR_S + 60)


def test_a_change_after_a_jump_back_repeats_nothing(table: Timetable) -> None:
    """Also not a tick that is in a range, where no key of its own keeps it from firing."""
    table.put(every(60))
    table.go_to(HOUR_S)
    table.world.clock.set(instant(60))
    table.put(every(60), priority=1)
    assert table.next_at() == HOUR_S + 60
    table.visit(120, 180, HOUR_S + 60)
    expect_each_once(table, HOUR_S + 60)


def test_a_backfill_after_a_jump_back_repeats_nothing(table: Timetable) -> None:
    table.put(every(60))
    table.go_to(HOUR_S)
    table.world.clock.set(instant(60))
    table.backfill(60, HOUR_S)
    table.visit(120, HOUR_S, HOUR_S + 60)
    expect_each_once(table, HOUR_S + 60)


def test_a_held_tick_is_released_after_a_jump_back(table: Timetable) -> None:
    table.put(every(60), overlap="queue_one")
    table.visit(HOUR_S, HOUR_S + 60)
    attempt = table.claim()
    table.world.clock.set(instant(300))
    table.world.finish(attempt)
    table.follow()
    assert table.fire().started == 1
    table.visit(360, HOUR_S + 60)
    expect_each_once(table, HOUR_S + 60)


def test_a_fixed_delay_continues_after_a_jump_back(table: Timetable) -> None:
    table.world.clock.set(instant(HOUR_S))
    table.put(after(60))
    table.fire()
    table.world.clock.set(instant(10))
    table.world.finish(table.claim())
    table.follow()
    table.go_to(70)
    assert table.ledger() == [Entry(70, "fired"), Entry(HOUR_S, "fired")]


# Changed tables of zones.


class Tables:
    """Which zone's rules a name stands for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch

    def use(self, rules: str) -> None:
        def changed(name: str) -> Zone:
            return Zone(name, ZoneInfo(rules if name == "Europe/Berlin" else name))

        self._patch.setattr(trigger, "zone", changed)
        self._patch.setattr(zone, "zone", changed)
        trigger._first.cache_clear()


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tables]:
    yield Tables(monkeypatch)
    monkeypatch.undo()
    trigger._first.cache_clear()


@pytest.mark.parametrize(
    ("expression", "rules"),
    [("0 * * * *", "Asia/Kolkata"), ("30 9 * * *", "Europe/Helsinki"), ("*/20 3-5 * * *", "Europe/London")],
)
def test_a_changed_time_zone_database_fires_no_tick_twice(
    table: Timetable, tables: Tables, expression: str, rules: str
) -> None:
    table.put(cron(expression, "Europe/Berlin"), catch_up="all")
    for half_hour in range(1, 4 * 48):
        if half_hour % 37 == 0:
            tables.use(rules if half_hour % 2 else "Europe/Berlin")
        table.go_to(half_hour * 1800)
    rows = table.rows()
    assert len(rows) >= 3
    assert all(before.until < behind.at for before, behind in itertools.pairwise(rows))
    assert len(table.started()) == len(set(table.started())) == len(table.world.executions(limit=10_000))
