"""Schedules as their owners see them: declared, made, changed, paused and removed."""

from __future__ import annotations

import pytest

from rota.domain.errors import DefinitionError, UnknownSchedule
from rota.ops import schedule
from tests.schedules.timetable import DAY_S, Entry, Timetable, after, at, every, instant, spec
from tests.support.world import APP, NAMESPACE

MINUTELY = every(60)


# Declared.


def test_declared_schedules_are_added_changed_and_removed(table: Timetable) -> None:
    minutely, hourly = spec(every(60)), spec(every(3600))
    assert table.declare(a=minutely, b=minutely, c=minutely) == ["added a", "added b", "added c"]
    assert table.declare(a=minutely, b=hourly) == ["removed c", "changed b"]
    assert table.declare(a=minutely, b=hourly) == []
    assert table.names() == ["a", "b"]
    assert [table.info(name).next_at for name in "ab"] == [instant(60), instant(3600)]
    assert table.info("a").origin == schedule.CODE


def test_an_unchanged_schedule_is_not_written(table: Timetable) -> None:
    table.declare(a=spec(MINUTELY), b=spec(MINUTELY))
    table.world.clock.set(instant(50))
    before = table.info("a")
    table.declare(a=spec(MINUTELY), b=spec(every(3600)))
    assert table.info("a") == before
    table.go_to(60)
    assert table.ledger("a") == [Entry(60, "fired")]


def test_a_declaration_does_not_change_schedules_made_at_run_time(table: Timetable) -> None:
    table.put(MINUTELY, "mine")
    table.declare(a=spec(MINUTELY))
    assert table.declare() == ["removed a"]
    assert table.names() == ["mine"]
    assert table.info("mine").origin == schedule.RUN_TIME


def test_a_declared_schedule_replaces_one_of_the_same_name_made_at_run_time(table: Timetable) -> None:
    table.put(MINUTELY, "a")
    id = table.info("a").id
    assert table.declare(a=spec(every(3600))) == ["added a"]
    row = table.info("a")
    assert (row.id, row.origin, row.next_at) == (id, schedule.CODE, instant(3600))
    assert table.declare() == ["removed a"]
    assert table.names() == []


def test_a_declaration_does_not_change_schedules_of_other_apps(table: Timetable) -> None:
    table.declare(a=spec(MINUTELY))
    table.store.transact(schedule.declare, NAMESPACE, "other", [("a", spec(MINUTELY))])
    assert table.store.transact(schedule.declare, NAMESPACE, "other", []) == ["removed a"]
    assert table.names() == ["a"]


def test_a_removed_schedule_that_is_declared_again_starts_from_then(table: Timetable) -> None:
    table.declare(a=spec(MINUTELY))
    table.go_to(60)
    table.declare()
    table.go_to(600)
    assert table.declare(a=spec(MINUTELY)) == ["added a"]
    table.go_to(660)
    assert table.ledger("a") == [Entry(60, "fired"), Entry(660, "fired")]


# Made at run time.


def test_put_returns_whether_it_changed_anything(table: Timetable) -> None:
    assert table.put(MINUTELY)
    assert not table.put(MINUTELY)
    assert table.put(every(30))
    assert table.next_at() == 30


def test_put_does_not_change_a_declared_schedule(table: Timetable) -> None:
    table.declare(s=spec(MINUTELY))
    with pytest.raises(DefinitionError, match="declared in the code"):
        table.put(every(30))
    assert not table.put(MINUTELY)
    assert table.next_at() == 60


def test_a_new_schedule_never_fires_for_the_time_before(table: Timetable) -> None:
    table.world.clock.set(instant(1000))
    table.put(MINUTELY, catch_up="all")
    table.put(at(10, 2000), "once")
    assert table.fire().schedules == 0
    assert (table.next_at(), table.next_at("once")) == (1020, 2000)


def test_a_changed_schedule_starts_from_now_and_records_the_undecided_ticks(table: Timetable) -> None:
    table.put(MINUTELY, catch_up="all")
    table.go_to(60)
    table.world.clock.set(instant(600))
    table.put(every(3600), catch_up="all")
    assert table.fire().started == 0
    table.go_to(3600)
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "missed", 9), Entry(3600, "fired")]


def test_a_removed_schedule_keeps_its_ledger_and_its_executions(table: Timetable) -> None:
    table.put(MINUTELY)
    table.go_to(60)
    table.world.clock.set(instant(185))
    assert table.remove()
    assert not table.remove()
    assert table.go_to(600).schedules == 0
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "missed", 2)]
    assert table.world.executions() == table.started()
    assert table.world.claim(table.world.join())[0].id == table.started()[0]


def test_a_name_is_free_again_after_the_removal(table: Timetable) -> None:
    table.put(MINUTELY)
    first = table.info().id
    table.remove()
    assert table.put(MINUTELY)
    assert table.info().id != first


# Paused.


def test_no_tick_fires_for_the_time_of_a_pause(table: Timetable) -> None:
    table.put(MINUTELY, catch_up="all")
    table.go_to(60)
    assert table.pause(note="the mail server is down")
    row = table.info()
    assert (row.paused_at, row.paused_by, row.paused_note, row.next_at) == (
        instant(60),
        "test",
        "the mail server is down",
        None,
    )
    assert table.go_to(DAY_S).schedules == 0
    assert table.resume()
    assert table.fire().schedules == 0
    table.go_to(DAY_S + 60)
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "paused", 1439), Entry(DAY_S + 60, "fired")]
    assert table.info().paused_note is None


def test_pausing_and_resuming_twice_changes_nothing(table: Timetable) -> None:
    table.put(MINUTELY)
    assert table.pause(note="first")
    assert not table.pause(note="second")
    assert table.info().paused_note == "first"
    assert table.resume()
    assert not table.resume()


def test_undecided_ticks_are_in_the_ledger_when_a_schedule_is_paused(table: Timetable) -> None:
    table.put(MINUTELY)
    table.world.clock.set(instant(60))
    table.pause()
    table.world.clock.set(instant(180))
    table.resume()
    assert table.go_to(180).started == 0
    assert table.ledger() == [Entry(60, "missed"), Entry(120, "paused", 2)]


def test_held_ticks_do_not_run_after_a_pause(table: Timetable) -> None:
    table.put(MINUTELY, overlap="queue_one")
    table.visit(60, 120)
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "queued")]
    table.pause()
    table.world.finish(table.claim())
    table.resume()
    table.follow()
    assert table.fire().started == 0
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "overlap")]


@pytest.mark.parametrize("how", ["change", "remove"])
def test_held_ticks_do_not_run_after_a_change_or_a_removal(table: Timetable, how: str) -> None:
    table.put(MINUTELY, overlap="queue_all")
    table.visit(60, 120, 180)
    if how == "change":
        table.put(every(3600), overlap="queue_all")
    else:
        table.remove()
    table.world.finish(table.claim())
    table.follow()
    assert table.fire().started == 0
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "overlap"), Entry(180, "overlap")]


def test_a_schedule_that_is_changed_during_a_pause_stays_paused(table: Timetable) -> None:
    table.put(MINUTELY)
    table.pause()
    table.world.clock.set(instant(300))
    table.put(every(100))
    assert table.next_at() is None
    assert table.go_to(600).schedules == 0
    table.resume()
    assert table.next_at() == 700
    assert table.ledger() == [Entry(60, "paused", 5), Entry(400, "paused", 3)]


def test_a_removal_ends_a_pause(table: Timetable) -> None:
    table.put(MINUTELY)
    table.pause()
    table.world.clock.set(instant(300))
    table.remove()
    assert table.ledger() == [Entry(60, "paused", 5)]
    with pytest.raises(UnknownSchedule, match="has no schedule 's'"):
        table.resume()


def test_pausing_an_unknown_schedule_is_refused(table: Timetable) -> None:
    with pytest.raises(UnknownSchedule, match=f"{APP!r} has no schedule 'missing'"):
        table.pause("missing")


def test_a_pause_beyond_the_end_counts_only_ticks_before_the_end(table: Timetable) -> None:
    table.put(MINUTELY, start=instant(120), end=instant(300))
    table.pause()
    table.world.clock.set(instant(1000))
    table.resume()
    assert table.ledger() == [Entry(120, "paused", 4)]
    assert table.next_at() is None


def test_a_resumed_fixed_delay_waits_for_its_running_execution(table: Timetable) -> None:
    table.put(after(60))
    table.fire()
    attempt = table.claim()
    table.pause()
    table.world.clock.set(instant(10))
    table.resume()
    assert table.fire().started == 0
    table.world.finish(attempt)
    table.follow()
    table.visit(69, 70)
    assert table.ledger() == [Entry(0, "fired"), Entry(70, "fired")]


def test_a_changed_fixed_delay_waits_for_its_running_execution(table: Timetable) -> None:
    table.put(after(60))
    table.fire()
    attempt = table.claim()
    table.world.clock.set(instant(10))
    table.put(after(5))
    assert table.fire().started == 0
    table.world.finish(attempt)
    table.follow()
    table.go_to(15)
    assert table.ledger() == [Entry(0, "fired"), Entry(15, "fired")]
