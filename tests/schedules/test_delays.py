"""Fixed delays: the next run starts a fixed time after the end of the previous one, whatever its outcome."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rota.domain.claim import Claim
from rota.domain.outcome import Cancelled
from rota.ops import fleet
from tests.schedules.timetable import DAY_S, Entry, Timetable, after, instant
from tests.support.world import FAILED, NO_RETRY, THREE_TRIES


def crash(table: Timetable, attempt: Claim) -> None:
    """Its worker dies, and so does every worker that takes it over, until it is a crash loop."""
    table.store.transact(fleet.declare_dead, table.last_worker, "killed")
    while not table.world.ending(attempt.id):
        worker = table.world.join(lease_s=DAY_S)
        table.world.claim(worker)
        table.store.transact(fleet.declare_dead, worker, "killed")


ENDS: dict[str, Callable[[Timetable, Claim], object]] = {
    "success": lambda table, attempt: table.world.finish(attempt),
    "failure": lambda table, attempt: table.world.finish(attempt, FAILED, NO_RETRY),
    "cancel": lambda table, attempt: (table.world.cancel(attempt.id), table.world.finish(attempt, Cancelled())),
    "crash": crash,
}


def test_a_fixed_delay_fires_at_once(table: Timetable) -> None:
    table.world.clock.set(instant(5))
    table.put(after(60))
    assert table.fire().started == 1
    assert table.ledger() == [Entry(5, "fired")]
    assert table.info().waits_for == table.started()[0]


def test_a_fixed_delay_with_a_start_fires_at_its_start(table: Timetable) -> None:
    table.put(after(60), start=instant(100))
    table.visit(0, 99, 100)
    assert table.ledger() == [Entry(100, "fired")]


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_fixed_delay_counts_from_every_kind_of_end(
    table: Timetable, end: Callable[[Timetable, Claim], object]
) -> None:
    table.put(after(60))
    table.fire()
    attempt = table.claim()
    assert table.go_to(1000).schedules == 0
    end(table, attempt)
    table.follow()
    assert table.next_at() == 1060
    table.visit(1059, 1060)
    assert table.ledger() == [Entry(0, "fired"), Entry(1060, "fired")]


def test_a_cancel_before_the_start_is_an_end(table: Timetable) -> None:
    table.put(after(60))
    table.fire()
    table.world.clock.set(instant(10))
    table.world.cancel(table.started()[0])
    table.follow()
    assert table.next_at() == 70


def test_a_retry_is_not_an_end(table: Timetable) -> None:
    table.put(after(60))
    table.fire()
    table.world.finish(table.claim(), FAILED, THREE_TRIES)
    assert table.follow() == 0
    assert table.next_at() is None


def test_an_end_whose_hint_was_lost_is_found(table: Timetable) -> None:
    """A node that has just seen that no schedule waits does not check again at once."""
    before = table.world.enqueue()
    table.world.finish(table.claim())
    table.put(after(60))
    table.fire()
    attempt = table.claim()
    table.world.finish(attempt)
    assert attempt.id != before
    assert (table.next_at(), table.info().waits_for) == (None, attempt.id)
    assert table.follow() == 1
    assert (table.next_at(), table.info().waits_for) == (60, None)
    assert table.follow() == 0


def test_a_fixed_delay_stops_at_its_end(table: Timetable) -> None:
    table.put(after(60), end=instant(50))
    table.fire()
    table.world.finish(table.claim())
    table.follow()
    table.visit(60, 1000)
    assert table.ledger() == [Entry(0, "fired")]
    assert (table.next_at(), table.info().waits_for) == (None, None)


def test_a_removed_fixed_delay_does_not_fire(table: Timetable) -> None:
    table.put(after(60))
    table.fire()
    attempt = table.claim()
    table.remove()
    table.world.finish(attempt)
    assert table.follow() == 0
    assert table.go_to(DAY_S).schedules == 0
