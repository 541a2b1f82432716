"""What the ledger says of a time, and how long it is kept."""

from __future__ import annotations

import pytest

from rota.domain.instant import moment
from rota.domain.outcome import Cancelled, Succeeded
from rota.ops import retention
from rota.store import schedule_reader
from rota.views import tick
from tests.retention.passes import begin, finish_all, policy
from tests.retention.passes import prune as prune_history
from tests.schedules.timetable import DAY_S, Entry, Timetable, every, instant, since_start, spec
from tests.support.world import APP, NAMESPACE

KEPT_S = retention.LEDGER_S


def prune(table: Timetable) -> int:
    """A whole pass over the ledger; returns how many steps it took."""
    begun, kept = begin(table.store), policy(table.store)
    after: int | None = 0
    steps = 0
    while after is not None:
        after = table.store.transact(retention.prune_ticks, begun.begun_at, kept, after)
        steps += 1
        assert steps < 1000
    table.store.transact(retention.end, begun.begun_at)
    return steps


def test_old_ticks_are_pruned_and_recent_ones_are_kept(table: Timetable) -> None:
    table.put(every(DAY_S), catch_up="none")
    table.visit(DAY_S, 2 * DAY_S, 4 * DAY_S)
    table.world.clock.set(instant(2 * DAY_S + KEPT_S + 1))
    prune(table)
    assert table.ledger() == [Entry(3 * DAY_S, "missed"), Entry(4 * DAY_S, "fired")]
    assert table.names() == ["s"]


def test_a_range_stays_until_its_last_tick_is_old(table: Timetable) -> None:
    table.put(every(DAY_S), catch_up="none")
    table.go_to(4.5 * DAY_S)
    table.world.clock.set(instant(4 * DAY_S + KEPT_S))
    prune(table)
    assert table.ledger() == [Entry(DAY_S, "missed", 4)]
    table.world.clock.advance(DAY_S)
    prune(table)
    assert table.ledger() == []


def test_more_ticks_than_one_step_prunes(table: Timetable) -> None:
    table.put(every(1), end=instant(1050))
    table.put(every(1), "other", end=instant(20))
    table.visit(*range(30, 1060, 30))
    assert (len(table.ledger()), len(table.ledger("other"))) == (1050, 20)
    table.world.clock.set(instant(2 * DAY_S + KEPT_S))
    assert prune(table) >= 2
    assert (table.ledger(), table.ledger("other")) == ([], [])


def test_a_removed_schedule_is_pruned_with_the_last_of_its_ledger(table: Timetable) -> None:
    table.declare(old=spec(every(DAY_S)), young=spec(every(DAY_S)), living=spec(every(DAY_S)))
    table.go_to(DAY_S)
    table.remove("old")
    table.go_to(2 * DAY_S)
    table.remove("young")
    table.world.clock.set(instant(DAY_S + KEPT_S + 60))
    prune(table)
    assert (table.ledger("old"), table.names()) == ([], ["living"])
    assert table.ledger("young") == [Entry(2 * DAY_S, "fired")]


def test_the_ledger_keeps_the_final_status_of_pruned_executions(table: Timetable) -> None:
    table.put(every(DAY_S))
    table.put(every(DAY_S), "gone")
    table.go_to(DAY_S)
    finish_all(table.world, Succeeded("1"))
    table.remove("gone")
    table.go_to(2 * DAY_S)
    finish_all(table.world, Cancelled())
    table.go_to(3 * DAY_S)
    table.world.clock.set(instant(40 * DAY_S))
    assert prune_history(table.store) == 3
    known = [(row.status, row.execution is not None) for row in table.rows()]
    assert known == [("success", True), ("cancelled", True), (None, True)], "the last one has not ended"
    assert [row.status for row in table.rows("gone")] == ["success"]


def read(table: Timetable, low: float, high: float, most: int = 100) -> list[Entry]:
    rows = table.store.read(schedule_reader.ticks, NAMESPACE, APP, "s", instant(low), instant(high), most)
    return [Entry(since_start(row.at), row.outcome, row.count) for row in rows]


def test_a_range_that_overlaps_a_period_is_listed_for_it(table: Timetable) -> None:
    table.put(every(60), catch_up="none")
    table.go_to(60)
    table.go_to(300 + 45)
    table.go_to(360)
    missed = Entry(120, "missed", 4)
    assert read(table, 0, 1000) == [Entry(360, "fired"), missed, Entry(60, "fired")]
    assert read(table, 180, 240) == read(table, 121, 121) == read(table, 300, 359) == [missed]
    assert read(table, 301, 1000) == [Entry(360, "fired")]
    assert read(table, 0, 119) == [Entry(60, "fired")]
    assert read(table, 300, 1000, most=1) == [Entry(360, "fired")]
    assert read(table, 61, 119) == []


def test_schedules_of_one_name_have_one_ledger(table: Timetable) -> None:
    table.put(every(60), catch_up="none")
    table.go_to(60)
    table.remove()
    table.go_to(300)
    table.put(every(60), catch_up="none")
    table.go_to(480 + 45)
    assert read(table, 0, 1000) == [Entry(360, "missed", 3), Entry(60, "fired")]
    assert read(table, 0, 1000, most=1) == [Entry(360, "missed", 3)]


def test_pages_of_the_ledger_are_complete(table: Timetable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the clock was set back and a schedule made anew, so that two of its ticks are of one instant."""
    for _ in range(3):
        table.world.clock.set(instant(0))
        table.put(every(60))
        table.visit(60, 120, 180)
        table.remove()
    monkeypatch.setattr(tick, "PAGE", 4)
    found = table.store.read(tick.ledger, NAMESPACE, APP, "s", 0, instant(1000), missed=False, limit=100)
    ticks = [moment(instant(at)) for at in [180] * 3 + [120] * 3 + [60] * 3]
    assert [row.at for row in found.items] == ticks
    assert len({row.execution_id for row in found.items}) == 9
