"""Ticks become executions: when, with what, and within which bounds."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rota.domain import schedule as schedules
from rota.domain import trigger
from rota.domain.errors import DefinitionError
from rota.domain.job import Queue
from rota.domain.status import Status
from rota.domain.ticks import Gap
from rota.domain.zone import Zone, zone
from rota.ops import firing, upkeep
from rota.store.hints import Due, Ready
from tests.schedules.timetable import DAY_S, SECOND, START, Entry, Timetable, after, at, cron, every, instant, spec
from tests.support.world import FAILED, LEASE_S, NO_RETRY, RecordingBus


def seconds_at(*when: int) -> float:
    """UTC, in seconds from the start."""
    return datetime(*when, tzinfo=UTC).timestamp() - START / SECOND  # type: ignore[misc, arg-type]


def test_a_tick_fires_on_time_and_never_early(table: Timetable) -> None:
    table.put(every(60))
    assert table.go_to(59.999999) == firing.Fired(0, 0)
    assert table.go_to(60) == firing.Fired(1, 1)
    assert table.fire() == firing.Fired(0, 0)
    (id,) = table.world.executions()
    row = table.world.execution(id)
    assert (row.job, row.status, row.run_at, row.actor) == ("send", Status.QUEUED, instant(60), "schedule")
    assert (table.started(), table.next_at()) == ([id], 120)
    info = table.info()
    assert (info.last_at, info.last_late, info.last_outcome, info.last_execution) == (instant(60), 0, "fired", id)


def test_upkeep_knows_when_the_first_tick_is_due(table: Timetable) -> None:
    table.put(every(60))
    table.put(every(45), "sooner")
    assert table.store.read(upkeep.look, LEASE_S).next_tick_at == instant(45)


def test_ticks_of_other_owners_are_left_to_them_for_a_moment(table: Timetable) -> None:
    table.put(every(60))
    unowned = schedules.share(0, ())
    assert table.store.read(upkeep.look, LEASE_S, None, unowned).next_tick_at == instant(60) + schedules.PATIENCE
    table.world.clock.set(instant(60) + schedules.PATIENCE - 1)
    assert table.store.transact(firing.fire, unowned, table.world.ids.many).started == 0
    table.world.clock.set(instant(60) + schedules.PATIENCE)
    assert table.store.transact(firing.fire, unowned, table.world.ids.many).started == 1


def test_firing_sends_hints_for_ready_lanes_and_the_next_tick(table: Timetable) -> None:
    before, bus = table.store.bus, RecordingBus()
    table.store.bus = bus
    try:
        table.put(every(60))
        assert bus.hints == [Due(instant(60))]
        bus.hints.clear()
        table.go_to(60)
        assert [type(hint) for hint in bus.hints] == [Ready]
    finally:
        table.store.bus = before


def test_an_execution_has_the_arguments_priority_and_queue_of_its_schedule(table: Timetable) -> None:
    table.put(every(60), arguments='{"n": 7}', priority=3, queue="mail")
    table.go_to(60)
    row = table.world.execution(table.started()[0])
    assert (row.arguments, row.priority, row.queue) == ('{"n": 7}', 3, "mail")
    (claimed,) = table.world.claim(table.world.join(lease_s=100), queues=["mail"])
    assert (claimed.id, claimed.arguments) == (row.id, '{"n": 7}')


def test_the_depth_limit_of_a_queue_does_not_apply_to_ticks(table: Timetable) -> None:
    table.world.register(queues=[Queue(name="small", max_depth=1)])
    table.put(every(60), queue="small")
    table.visit(60, 120, 180)
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "fired"), Entry(180, "fired")]


def test_an_execution_has_its_tick(table: Timetable) -> None:
    table.put(every(60))
    table.go_to(75)
    claimed = table.claim()
    assert (claimed.id, claimed.tick, claimed.catch_up) == (table.started()[0], instant(60), 0)


def test_the_ledger_shows_a_failed_execution(table: Timetable) -> None:
    table.put(every(60))
    table.visit(60)
    table.world.finish(table.claim(), FAILED, NO_RETRY)
    assert [(row.outcome, row.status) for row in table.rows()] == [("fired", "failed")]


# Jitter.


def test_jitter_delays_the_start_and_not_the_tick(table: Timetable) -> None:
    wanted = spec(every(3600), jitter_s=600.0)
    table.declare(s=wanted)
    table.go_to(3600)
    (id,) = table.started()
    run_at = instant(3600) + schedules.jitter(wanted, instant(3600))
    assert instant(3600) < run_at < instant(4200)
    row = table.world.execution(id)
    assert (row.status, row.run_at) == (Status.SCHEDULED, run_at)
    assert table.ledger() == [Entry(3600, "fired")]
    table.world.clock.set(run_at - 1)
    assert table.world.promote() == 0
    table.world.clock.set(run_at)
    assert table.world.promote() == 1
    assert table.claim().tick == instant(3600)


def test_jitter_is_the_same_for_the_same_tick_and_differs_between_ticks() -> None:
    wanted = spec(every(3600), jitter_s=600.0)
    spread = [schedules.jitter(wanted, instant(3600 * number)) for number in range(200)]
    assert spread == [schedules.jitter(wanted, instant(3600 * number)) for number in range(200)]
    assert len(set(spread)) == 200
    assert all(0 <= one < 600 * SECOND for one in spread)


def test_jitter_that_is_over_does_not_delay(table: Timetable) -> None:
    table.put(every(3600), jitter_s=5.0)
    table.go_to(3606)
    assert table.world.status(table.started()[0]) is Status.QUEUED


# Triggers.


def test_cron_follows_the_clock_of_its_zone(table: Timetable) -> None:
    table.put(cron("0 9 * * *", "Europe/Berlin"))
    assert table.next_at() == seconds_at(2026, 1, 1, 8)
    table.world.clock.set(instant(seconds_at(2026, 7, 1)))
    table.put(cron("0 9 * * *", "Europe/Berlin"), "summer")
    assert table.next_at("summer") == seconds_at(2026, 7, 1, 7)


def test_one_shot_instants_fire_once_each(table: Timetable) -> None:
    table.put(at(100, 50))
    table.visit(50, 60, 100, 500)
    assert table.ledger() == [Entry(50, "fired"), Entry(100, "fired")]
    assert table.next_at() is None


def test_a_schedule_fires_between_its_start_and_its_end_both_included(table: Timetable) -> None:
    table.put(every(60), start=instant(120), end=instant(240))
    assert table.next_at() == 120
    table.visit(60, 120, 180, 240, 300)
    assert table.ledger() == [Entry(120, "fired"), Entry(180, "fired"), Entry(240, "fired")]
    assert table.next_at() is None


def test_missed_ticks_between_start_and_end_are_decided_after_the_end(table: Timetable) -> None:
    table.put(every(60), start=instant(120), end=instant(240))
    table.go_to(5000)
    assert table.ledger() == [Entry(120, "missed", 2), Entry(240, "caught_up")]
    assert table.next_at() is None


def test_a_tick_of_an_unknown_job_is_recorded_and_the_schedule_continues(table: Timetable) -> None:
    table.put(every(60), job="unregistered")
    assert table.go_to(60).started == 0
    table.world.register("unregistered")
    table.go_to(120)
    assert table.ledger() == [Entry(60, "unknown_job"), Entry(120, "fired")]


def test_a_fixed_delay_of_an_unknown_job_tries_again(table: Timetable) -> None:
    table.put(after(60), job="unregistered")
    table.fire()
    table.world.register("unregistered")
    table.visit(59, 60)
    assert table.ledger() == [Entry(0, "unknown_job"), Entry(60, "fired")]


# Dates that are left out.


def test_excluded_dates_are_recorded_and_do_not_run(table: Timetable) -> None:
    table.put(every(DAY_S / 2), excluded=("2026-01-02",))
    table.visit(*(DAY_S / 2 * number for number in range(1, 6)))
    assert table.ledger() == [
        Entry(DAY_S / 2, "fired"),
        Entry(DAY_S, "excluded"),
        Entry(1.5 * DAY_S, "excluded"),
        Entry(2 * DAY_S, "fired"),
        Entry(2.5 * DAY_S, "fired"),
    ]


def test_excluded_dates_are_those_of_the_schedules_zone(table: Timetable) -> None:
    """Noon UTC on the first is the second on Kiritimati, 14 hours ahead."""
    table.put(every(DAY_S / 2), excluded=("2026-01-02",), tz="Pacific/Kiritimati")
    table.visit(DAY_S / 2, DAY_S, 1.5 * DAY_S)
    assert [entry.outcome for entry in table.ledger()] == ["excluded", "excluded", "fired"]


def test_a_calendar_and_its_changes_apply(table: Timetable) -> None:
    table.calendar("holidays", "2026-01-02", "2026-01-03")
    table.put(every(DAY_S), calendars=("holidays",))
    table.go_to(DAY_S)
    table.calendar("holidays", "2026-01-04")
    table.visit(2 * DAY_S, 3 * DAY_S)
    assert [entry.outcome for entry in table.ledger()] == ["excluded", "fired", "excluded"]


def test_a_calendar_that_is_not_set_is_refused_at_run_time_and_ignored_in_a_declaration(
    table: Timetable,
) -> None:
    with pytest.raises(DefinitionError, match=r"no calendar 'holidays'.*app\.calendar"):
        table.put(every(DAY_S), calendars=("holidays",))
    table.declare(s=spec(every(DAY_S), calendars=("holidays",)))
    table.visit(DAY_S)
    table.calendar("holidays", "2026-01-03")
    table.visit(2 * DAY_S)
    assert [entry.outcome for entry in table.ledger()] == ["fired", "excluded"]


def test_missed_ticks_on_excluded_dates_have_their_own_outcome(table: Timetable) -> None:
    table.put(every(3600), excluded=("2026-01-02",))
    table.go_to(3 * DAY_S + 1800)
    assert table.ledger() == [
        Entry(3600, "outside_window", 23),
        Entry(DAY_S, "excluded", 24),
        Entry(2 * DAY_S, "outside_window"),
        Entry(2 * DAY_S + 3600, "missed", 23),
        Entry(3 * DAY_S, "caught_up"),
    ]


def test_the_last_missed_tick_that_may_run_is_caught_up(table: Timetable) -> None:
    table.put(every(3600), excluded=("2026-01-02",), window_s=3.0 * DAY_S)
    table.go_to(DAY_S + 7200 + 60)
    assert table.ledger() == [
        Entry(3600, "missed", 22),
        Entry(23 * 3600, "caught_up"),
        Entry(DAY_S, "excluded", 3),
    ]


def test_a_fixed_delay_does_not_fire_on_excluded_dates(table: Timetable) -> None:
    table.put(after(60), excluded=("2026-01-01", "2026-01-02"))
    table.visit(0, 60, DAY_S, 2 * DAY_S)
    assert table.ledger() == [Entry(0, "excluded"), Entry(2 * DAY_S, "fired")]


# Changed clocks.


@pytest.mark.parametrize(("gap", "outcome"), [(Gap.NEXT, "fired"), (Gap.SKIP, "dst_gap")])
def test_a_time_that_does_not_exist_fires_after_the_gap_or_is_skipped(table: Timetable, gap: Gap, outcome: str) -> None:
    """In Berlin it is never half past two on 29 March 2026: from one o'clock UTC on it is three."""
    table.world.clock.set(instant(seconds_at(2026, 3, 28, 12)))
    table.put(cron("30 2 * * *", "Europe/Berlin", gap))
    table.visit(seconds_at(2026, 3, 29, 1), seconds_at(2026, 3, 30, 0, 30))
    assert table.ledger() == [
        Entry(seconds_at(2026, 3, 29, 1), outcome),
        Entry(seconds_at(2026, 3, 30, 0, 30), "fired"),
    ]


def test_a_time_that_comes_twice_fires_once(table: Timetable) -> None:
    table.world.clock.set(instant(seconds_at(2026, 10, 24, 12)))
    table.put(cron("30 2 * * *", "Europe/Berlin"))
    for minute in range(0, 180, 10):
        table.go_to(seconds_at(2026, 10, 25) + 60 * minute)
    assert table.ledger() == [Entry(seconds_at(2026, 10, 25, 0, 30), "fired")]


# Many.


def test_many_ticks_that_are_due_together_are_fired_in_limited_batches(table: Timetable) -> None:
    table.declare(**{f"s{number:03}": spec(every(60)) for number in range(150)})
    table.world.clock.set(instant(60))
    done = []
    while (fired := table.store.transact(firing.fire, upkeep.ALL_SHARDS, table.world.ids.many, 64)).schedules:
        done.append(fired.started)
    assert sum(done) == len(table.world.executions(limit=1000)) == 150
    assert max(done) <= 64


def test_a_failed_firing_leaves_the_tick_to_the_next_one(table: Timetable) -> None:
    table.put(every(60))
    table.world.clock.set(instant(60))

    def no_ids(count: int) -> list[str]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        table.store.transact(firing.fire, upkeep.ALL_SHARDS, no_ids)
    assert (table.ledger(), table.world.executions()) == ([], [])
    assert table.fire().started == 1


@pytest.mark.parametrize(
    "error", [DefinitionError("tz: there is no such zone"), OverflowError("year 10000"), ValueError()]
)
def test_a_schedule_that_this_node_cannot_read_does_not_block_the_others(
    table: Timetable, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Its zone is not in this machine's table, a newer version has made it, or its dates are none."""
    table.put(every(60), "good")
    table.put(cron("* * * * *", "Pacific/Kiritimati"), "bad")

    def not_kiritimati(name: str) -> Zone:
        if name == "Pacific/Kiritimati":
            raise error
        return zone(name)

    with monkeypatch.context() as patched:
        patched.setattr(trigger, "zone", not_kiritimati)
        assert table.go_to(60).started == 1
        assert table.fire().schedules == 0
    assert (table.ledger("good"), table.ledger("bad")) == ([Entry(60, "fired")], [])
    table.go_to(60 + firing.UNREADABLE_S)
    assert table.ledger("bad") == [Entry(60, "missed"), Entry(120, "fired")]


def test_the_ledger_names_each_execution_once(table: Timetable) -> None:
    table.put(every(60))
    table.visit(*range(60, 700, 60))
    assert sorted(table.started()) == sorted(table.world.executions())
    assert len(set(table.started())) == 11
