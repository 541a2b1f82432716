"""No worker was running: which ticks are on time, which are caught up, and which are only recorded."""

from __future__ import annotations

import pytest

from rota.domain.schedule import CatchUp
from rota.domain.ticks import Gap
from tests.schedules.timetable import DAY_S, Entry, Timetable, at, cron, every, instant, ticks_of


def test_a_tick_up_to_half_a_minute_late_is_on_time_under_every_policy(table: Timetable) -> None:
    table.put(every(60), "none", catch_up="none")
    table.put(every(60), "last")
    table.go_to(90)
    assert table.ledger("none") == table.ledger("last") == [Entry(60, "fired")]


def test_a_tick_more_than_half_a_minute_late_is_missed(table: Timetable) -> None:
    table.put(every(60), "none", catch_up="none")
    table.put(every(60), "last")
    table.go_to(90.000001)
    assert table.ledger("none") == [Entry(60, "missed")]
    assert table.ledger("last") == [Entry(60, "caught_up")]
    assert table.info("last").last_late == 30_000_001


def test_a_short_standstill_of_all_workers_misses_no_tick(table: Timetable) -> None:
    table.put(every(1), catch_up="none")
    table.visit(1, 21)
    assert table.ledger() == [Entry(second, "fired") for second in range(1, 22)]


def test_catch_up_none_runs_no_missed_tick(table: Timetable) -> None:
    table.put(every(60), catch_up="none")
    table.go_to(600 + 45)
    assert table.ledger() == [Entry(60, "missed", 10)]
    assert (table.world.executions(), table.next_at()) == ([], 660)


def test_catch_up_last_runs_the_last_missed_tick_once(table: Timetable) -> None:
    table.put(every(60))
    table.go_to(600 + 45)
    assert table.ledger() == [Entry(60, "missed", 9), Entry(600, "caught_up")]
    claimed = table.claim()
    assert (claimed.tick, claimed.catch_up) == (instant(600), 1)


def test_catch_up_last_runs_no_missed_tick_if_a_tick_is_on_time(table: Timetable) -> None:
    table.put(every(60))
    table.go_to(600)
    assert table.ledger() == [Entry(60, "missed", 9), Entry(600, "fired")]


def test_catch_up_all_runs_every_missed_tick(table: Timetable) -> None:
    table.put(every(60), catch_up="all")
    table.go_to(300)
    assert table.ledger() == [*(Entry(60 * n, "caught_up") for n in range(1, 5)), Entry(300, "fired")]
    assert len(set(table.started())) == 5


def test_catch_up_with_a_number_runs_that_many_of_the_latest(table: Timetable) -> None:
    table.put(every(60), catch_up="all", catch_up_most=3)
    table.go_to(600 + 45)
    assert table.ledger() == [Entry(60, "missed", 7), *(Entry(60 * n, "caught_up") for n in range(8, 11))]


@pytest.mark.parametrize("policy", ["last", "all"])
def test_only_ticks_within_the_window_are_caught_up(table: Timetable, policy: str) -> None:
    table.put(every(600), catch_up=policy, window_s=900.0)
    table.go_to(3600 + 100)
    late = [Entry(3000, "caught_up"), Entry(3600, "caught_up")]
    if policy == "last":
        late[0] = Entry(3000, "missed")
    assert table.ledger() == [Entry(600, "outside_window", 4), *late]


def test_a_tick_at_the_edge_of_the_window_is_inside(table: Timetable) -> None:
    table.put(at(100), "in", window_s=900.0)
    table.put(at(99.999999), "out", window_s=900.0)
    table.go_to(1000)
    assert table.ledger("in") == [Entry(100, "caught_up")]
    assert table.ledger("out") == [Entry(99.999999, "outside_window")]


def test_a_window_shorter_than_the_grace_catches_nothing_up(table: Timetable) -> None:
    table.put(every(20), window_s=10.0, catch_up="all")
    table.go_to(100)
    assert table.ledger() == [Entry(20, "outside_window", 3), Entry(80, "fired"), Entry(100, "fired")]


def test_the_default_window_is_a_day(table: Timetable) -> None:
    table.put(at(0.5), "in")
    table.put(at(0.4), "out")
    table.go_to(DAY_S + 0.5)
    assert (table.ledger("in")[0].outcome, table.ledger("out")[0].outcome) == ("caught_up", "outside_window")


@pytest.mark.parametrize("policy", list(CatchUp))
@pytest.mark.parametrize("overlap", ["skip", "allow"])
def test_a_day_without_a_worker_adds_few_rows_to_the_ledger(table: Timetable, policy: CatchUp, overlap: str) -> None:
    """Of 86 400 ticks those of the last half minute are on time."""
    table.put(every(1), catch_up=policy, overlap=overlap)
    table.go_to(DAY_S)
    ledger = table.ledger()
    on_time = [Entry(second, "fired") for second in range(DAY_S - 30, DAY_S + 1)]
    caught_up = 100 if policy is CatchUp.ALL else 0
    assert ledger[0] == Entry(1, "missed", DAY_S - 31 - caught_up)
    assert len(ledger) == 1 + caught_up + len(on_time)
    if overlap == "allow":
        assert ledger[-31:] == on_time
        assert {entry.outcome for entry in ledger[1:-31]} <= {"caught_up"}
    else:
        assert [entry.outcome for entry in ledger[1:]].count("overlap") == len(ledger) - 2
        assert len(table.started()) == 1
    assert ticks_of(table.rows(), 1) == [instant(second) for second in range(1, DAY_S + 1)]


def test_catching_up_respects_overlap(table: Timetable) -> None:
    table.put(every(60), catch_up="all", overlap="skip")
    table.go_to(240 + 45)
    assert table.ledger() == [Entry(60, "caught_up"), *(Entry(60 * n, "overlap") for n in (2, 3, 4))]


def test_the_last_tick_before_days_that_are_left_out_is_caught_up(table: Timetable) -> None:
    """However many ticks those days would have had."""
    table.put(every(1), excluded=("2026-01-02", "2026-01-03"), window_s=4.0 * DAY_S)
    table.go_to(2.9 * DAY_S)
    assert table.ledger() == [
        Entry(1, "missed", DAY_S - 2),
        Entry(DAY_S - 1, "caught_up"),
        Entry(DAY_S, "excluded", DAY_S),
        Entry(2 * DAY_S, "excluded", round(0.9 * DAY_S) - 30),
        *(Entry(round(2.9 * DAY_S) - left, "excluded") for left in range(30, -1, -1)),
    ]


def test_a_time_that_did_not_exist_is_not_missed(table: Timetable) -> None:
    """28 March 2026 is the 87th day; the clocks of Berlin leave out 02:30 on the 29th."""
    table.world.clock.set(instant(86 * DAY_S))
    table.put(cron("30 2 * * *", "Europe/Berlin", Gap.SKIP), catch_up="none")
    table.go_to(90 * DAY_S)
    assert [(entry.outcome, entry.ticks) for entry in table.ledger()] == [("missed", 1), ("dst_gap", 1), ("missed", 2)]
