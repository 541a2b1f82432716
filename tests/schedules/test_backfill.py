"""Backfill: past ticks run on request. Each runs once, and has one outcome afterwards."""

from __future__ import annotations

import pytest

from rota.domain.errors import DefinitionError, UnknownJob, UnknownSchedule
from rota.domain.status import Status
from rota.domain.ticks import Gap
from rota.domain.trigger import Every
from rota.ops.backfill import Step
from tests.schedules.timetable import Entry, Timetable, after, cron, every, instant, ticks_of

BERLIN_MARCH_S = 86 * 86_400
"""28 March 2026, midnight UTC."""


def missed(table: Timetable, until_s: float = 600) -> None:
    """A tick each minute, all of them missed."""
    table.put(every(60), catch_up="none")
    table.go_to(until_s + 45)
    assert table.ledger() == [Entry(60, "missed", until_s / 60)]  # type: ignore[arg-type]


def test_missed_ticks_run_once_and_the_range_is_split(table: Timetable) -> None:
    missed(table)
    assert table.backfill(180, 240) == Step(2, 0, 0, None)
    assert table.ledger() == [
        Entry(60, "missed", 2),
        Entry(180, "backfilled"),
        Entry(240, "backfilled"),
        Entry(300, "missed", 6),
    ]
    assert [table.world.status(id) for id in table.started()] == [Status.QUEUED] * 2
    claims = table.world.claim(table.world.join(lease_s=100))
    assert [(one.tick, one.catch_up) for one in claims] == [(instant(180), 1), (instant(240), 1)]


def test_a_repeated_backfill_runs_no_tick_twice(table: Timetable) -> None:
    missed(table)
    table.backfill(120, 300)
    before = table.ledger()
    assert table.backfill(120, 300) == Step(0, 4, 0, None)
    assert table.ledger() == before
    assert table.backfill(60, 360) == Step(2, 4, 0, None)
    assert len(table.world.executions()) == 6


@pytest.mark.parametrize("spans", [[(60, 60)], [(600, 600)], [(60, 600)], [(300, 300), (200, 400)], [(1, 9999)]])
def test_every_tick_has_one_outcome_afterwards(table: Timetable, spans: list[tuple[int, int]]) -> None:
    missed(table)
    for low, high in spans:
        table.backfill(low, high)
    assert ticks_of(table.rows(), 60) == [instant(60 * n) for n in range(1, 11)]


def test_a_backfill_runs_in_steps_of_limited_size(table: Timetable) -> None:
    missed(table)
    first = table.backfill(60, 600, most=4)
    assert first == Step(4, 0, 0, instant(240))
    assert table.backfill(241, 600, most=4) == Step(4, 0, 0, instant(480))
    assert table.backfill(481, 600, most=4) == Step(2, 0, 0, None)
    assert {entry.outcome for entry in table.ledger()} == {"backfilled"}


def test_ticks_that_have_fired_are_not_backfilled(table: Timetable) -> None:
    table.put(every(60))
    table.visit(60, 120, 300)
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "fired"), Entry(180, "missed", 2), Entry(300, "fired")]
    assert table.backfill(60, 300) == Step(2, 3, 0, None)


def test_the_future_and_the_undecided_present_are_not_backfilled(table: Timetable) -> None:
    table.put(every(60))
    table.go_to(60)
    table.world.clock.set(instant(125))
    assert table.backfill(60, 9999) == Step(0, 1, 0, None)
    table.go_to(125)
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "fired")]


def test_the_time_before_the_schedule_existed_can_be_backfilled(table: Timetable) -> None:
    table.world.clock.set(instant(300))
    table.put(every(60))
    assert table.backfill(60, 180) == Step(3, 0, 0, None)
    table.go_to(360)
    assert [entry.at for entry in table.ledger()] == [60, 120, 180, 360]


def test_only_ticks_between_start_and_end_are_backfilled(table: Timetable) -> None:
    table.put(every(60), start=instant(120), end=instant(240), catch_up="none")
    table.go_to(1000)
    assert table.backfill(0, 1000) == Step(3, 0, 0, None)
    assert table.ledger() == [Entry(60 * n, "backfilled") for n in (2, 3, 4)]


def test_excluded_dates_are_left_out(table: Timetable) -> None:
    table.put(every(12 * 3600), excluded=("2026-01-02",), catch_up="none")
    table.go_to(3 * 86_400 + 60)
    assert table.backfill(1, 3 * 86_400) == Step(4, 0, 2, None)
    assert Entry(86_400, "excluded", 2) in table.ledger()


def test_times_that_did_not_exist_are_left_out_if_the_schedule_says_so(table: Timetable) -> None:
    table.world.clock.set(instant(BERLIN_MARCH_S + 43_200))
    table.put(cron("30 2 * * *", "Europe/Berlin", Gap.SKIP), catch_up="none")
    table.go_to(BERLIN_MARCH_S + 3 * 86_400)
    assert table.backfill(BERLIN_MARCH_S + 43_200, BERLIN_MARCH_S + 3 * 86_400) == Step(1, 0, 1, None)


def test_a_pause_can_be_backfilled(table: Timetable) -> None:
    table.put(every(60))
    table.pause()
    table.world.clock.set(instant(300))
    table.resume()
    assert table.backfill(1, 300).started == 5
    assert {entry.outcome for entry in table.ledger()} == {"backfilled"}


def test_ticks_that_are_held_for_the_previous_run_are_not_backfilled(table: Timetable) -> None:
    table.put(every(60), overlap="queue_one")
    table.visit(60, 120, 180)
    assert table.backfill(60, 180) == Step(1, 2, 0, None)
    first, *_ = table.world.claim(table.world.join(lease_s=1000))
    table.world.finish(first)
    table.follow()
    table.fire()
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "fired"), Entry(180, "backfilled")]
    assert len(table.world.executions()) == len(set(table.started())) == 3


def test_ranges_from_before_a_change_keep_their_number(table: Timetable) -> None:
    """The ticks in them are no longer known; the requested ticks run all the same, once."""
    missed(table)
    table.put(every(180), catch_up="none")
    assert table.backfill(60, 600).started == 3
    assert table.backfill(60, 600) == Step(0, 3, 0, None)
    rows = table.rows()
    assert [row.count for row in rows if row.outcome == "missed"] == [10]
    table.put(every(20), catch_up="none")
    assert table.backfill(60, 60).started == 1
    assert [(row.at, row.count) for row in table.rows() if row.outcome == "missed"] == [(instant(60) + 1, 9)]


def test_ticks_that_ran_before_a_schedule_was_removed_and_recreated_do_not_run_again(table: Timetable) -> None:
    table.put(every(60), catch_up="none")
    table.visit(60, 120)
    table.go_to(300 + 45)
    table.remove()
    table.put(every(60), catch_up="none")
    table.go_to(360)
    before = len(table.world.executions())
    assert table.backfill(60, 360) == Step(3, 3, 0, None)
    assert table.backfill(60, 360) == Step(0, 6, 0, None)
    assert len(table.world.executions()) == before + 3
    assert ticks_of(table.rows(), 60) == [instant(60 * n) for n in range(1, 7)], "each has one outcome"


def test_ranges_of_another_phase_do_not_match(table: Timetable) -> None:
    missed(table)
    table.put(Every(60_000_000, 30_000_000), catch_up="none")
    assert table.backfill(60, 600).started == 9
    assert Entry(60, "missed", 10) in table.ledger()


def test_a_backfill_finds_the_range_that_began_before(table: Timetable) -> None:
    missed(table)
    for second in (600, 300, 120, 60, 480):
        assert table.backfill(second, second).started == 1
    assert ticks_of(table.rows(), 60) == [instant(60 * n) for n in range(1, 11)]
    assert len(table.started()) == 5


def test_the_order_of_ordinary_ticks_does_not_change(table: Timetable) -> None:
    missed(table)
    table.backfill(60, 600)
    assert (table.next_at(), table.info().last_execution) == (660, None)
    table.go_to(660)
    assert table.ledger()[-1] == Entry(660, "fired")


def test_an_impossible_backfill_is_refused(table: Timetable) -> None:
    table.put(after(60), "delay")
    with pytest.raises(DefinitionError, match="fixed delay"):
        table.backfill(0, 60, "delay")
    table.put(every(60), "stranger", job="unregistered")
    with pytest.raises(UnknownJob, match="unregistered"):
        table.backfill(0, 60, "stranger")
    with pytest.raises(UnknownSchedule):
        table.backfill(0, 60, "missing")
