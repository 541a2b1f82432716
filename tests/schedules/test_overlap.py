"""The previous run has not ended: each policy, and what counts as the end."""

from __future__ import annotations

import pytest

from rota.domain.outcome import Cancelled, Outcome, Succeeded
from rota.domain.schedule import Overlap, Spec
from rota.domain.status import Reason, Status
from rota.ops import fleet
from tests.schedules.timetable import DAY_S, Entry, Timetable, every, instant
from tests.support.world import FAILED, NO_RETRY, THREE_TRIES

MINUTELY = every(60)


def test_skip_is_the_default_overlap_policy() -> None:
    assert Spec(job="send", trigger=MINUTELY).overlap is Overlap.SKIP


def test_skip_leaves_ticks_out_until_the_run_has_ended(table: Timetable) -> None:
    table.put(MINUTELY, overlap="skip")
    table.visit(60, 120)
    attempt = table.claim()
    table.go_to(180)
    table.world.finish(attempt)
    table.go_to(240)
    assert table.ledger() == [
        Entry(60, "fired"),
        Entry(120, "overlap"),
        Entry(180, "overlap"),
        Entry(240, "fired"),
    ]


def test_a_retry_counts_as_not_finished(table: Timetable) -> None:
    table.put(MINUTELY, overlap="skip")
    table.go_to(60)
    table.world.finish(table.claim(), FAILED, THREE_TRIES)
    assert table.world.status(table.started()[0]) is Status.RETRYING
    table.go_to(120)
    table.world.promote()
    table.go_to(180)
    table.world.finish(table.claim(), FAILED, NO_RETRY)
    table.go_to(240)
    assert [entry.outcome for entry in table.ledger()] == ["fired", "overlap", "overlap", "fired"]


def test_an_execution_that_waits_for_its_jitter_counts_as_not_finished(table: Timetable) -> None:
    table.put(MINUTELY, overlap="skip", jitter_s=100_000.0)
    table.visit(60, 120)
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "overlap")]


def test_allow_starts_another(table: Timetable) -> None:
    table.put(MINUTELY, overlap="allow")
    table.visit(60, 120, 180)
    assert len(table.world.claim(table.world.join(lease_s=100))) == 3


def test_cancel_previous_ends_an_execution_that_has_not_started(table: Timetable) -> None:
    table.put(MINUTELY, overlap="cancel_previous")
    table.visit(60, 120)
    old, new = (table.world.execution(id) for id in table.started())
    assert (old.status, old.reason, new.status) == (Status.CANCELLED, Reason.REPLACED, Status.QUEUED)


def test_cancel_previous_asks_a_running_execution_to_stop(table: Timetable) -> None:
    table.put(MINUTELY, overlap="cancel_previous")
    table.go_to(60)
    attempt = table.claim()
    table.go_to(120)
    row = table.world.execution(attempt.id)
    assert (row.status, row.cancel_at) == (Status.RUNNING, instant(120))
    table.world.finish(attempt, Cancelled())
    assert table.world.status(attempt.id) is Status.CANCELLED
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "fired")]


def test_cancel_previous_leaves_one_of_many_ticks_that_come_together(table: Timetable) -> None:
    table.put(MINUTELY, overlap="cancel_previous", catch_up="all")
    table.go_to(300)
    assert len(table.started()) == 5
    assert [table.world.status(id) for id in table.started()] == [*[Status.CANCELLED] * 4, Status.QUEUED]


def test_cancel_previous_does_not_change_an_ended_execution(table: Timetable) -> None:
    table.put(MINUTELY, overlap="cancel_previous")
    table.go_to(60)
    table.world.finish(table.claim())
    table.go_to(120)
    assert [table.world.status(id) for id in table.started()] == [Status.SUCCESS, Status.QUEUED]


def test_queue_one_holds_one_tick(table: Timetable) -> None:
    table.put(MINUTELY, overlap="queue_one")
    table.visit(60, 120, 180)
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "queued"), Entry(180, "overlap")]
    table.world.clock.set(instant(200))
    table.world.finish(table.claim())
    table.follow()
    assert table.fire().started == 1
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "fired"), Entry(180, "overlap")]
    second = table.claim()
    assert second.tick == instant(120)
    table.go_to(240)
    assert table.ledger()[-1] == Entry(240, "queued")


def test_queue_all_holds_all_ticks_and_runs_them_one_by_one(table: Timetable) -> None:
    table.put(MINUTELY, overlap="queue_all", end=instant(240))
    table.visit(60, 120, 180, 240)
    ran = []
    for second in range(300, 304):
        claimed = table.claim()
        ran.append(claimed.tick)
        assert table.world.claim(table.world.join()) == []
        table.world.clock.set(instant(second))
        table.world.finish(claimed)
        table.follow()
        table.fire()
    assert ran == [instant(60 * n) for n in (1, 2, 3, 4)]
    assert table.ledger() == [Entry(60 * n, "fired") for n in (1, 2, 3, 4)]
    assert (table.info().waits_for, table.next_at()) == (None, None)


def test_a_held_tick_that_was_caught_up_is_still_marked_as_caught_up(table: Timetable) -> None:
    table.put(MINUTELY, overlap="queue_all", catch_up="all", end=instant(240))
    table.go_to(260)
    told = []
    for second in range(300, 304):
        claimed = table.claim()
        told.append((claimed.tick, claimed.catch_up))
        table.world.clock.set(instant(second))
        table.world.finish(claimed)
        table.follow()
        table.fire()
    assert told == [(instant(60), 1), (instant(120), 1), (instant(180), 1), (instant(240), 0)]
    assert [entry.outcome for entry in table.ledger()] == ["caught_up", "caught_up", "caught_up", "fired"]


@pytest.mark.parametrize("outcome", [Succeeded("1"), FAILED], ids=["success", "failure"])
def test_the_end_of_a_run_releases_the_held_tick(table: Timetable, outcome: Outcome) -> None:
    """Without the upkeep that finds forgotten ticks."""
    table.put(MINUTELY, overlap="queue_one")
    table.visit(60, 120)
    table.world.clock.set(instant(150))
    table.world.finish(table.claim(), outcome, NO_RETRY)
    assert table.next_at() == 150
    assert table.fire().started == 1


def test_a_cancel_releases_the_held_tick(table: Timetable) -> None:
    table.put(MINUTELY, overlap="queue_one")
    table.visit(60, 120)
    table.world.clock.set(instant(150))
    table.world.cancel(table.started()[0])
    assert table.go_to(150).started == 1


def test_a_crash_loop_releases_the_held_tick(table: Timetable) -> None:
    table.put(MINUTELY, overlap="queue_one")
    table.visit(60, 120)
    table.world.clock.set(instant(150))
    (id,) = table.started()
    while not table.world.ending(id):
        worker = table.world.join(lease_s=DAY_S)
        table.world.claim(worker)
        table.store.transact(fleet.declare_dead, worker, "killed")
    assert table.world.status(id) is Status.FAILED
    assert table.fire().started == 1


def test_held_ticks_and_due_ticks_run_in_order(table: Timetable) -> None:
    table.put(MINUTELY, overlap="queue_all")
    table.visit(60, 120)
    table.world.clock.set(instant(180))
    table.world.finish(table.claim())
    table.follow()
    table.fire()
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "fired"), Entry(180, "queued")]
    assert table.claim().tick == instant(120)


def test_a_new_job_loses_no_tick_beside_a_worker_that_does_not_have_it(table: Timetable) -> None:
    table.put(every(7), overlap=Overlap.SKIP)
    old, new = table.world.join(lease_s=1000, jobs=["receive"]), table.world.join(lease_s=1000)
    for number in range(1, 15):
        table.go_to(7 * number)
        assert table.world.claim(old, jobs=["receive"]) == []
        (attempt,) = table.world.claim(new)
        table.world.finish(attempt)
    assert [entry.outcome for entry in table.ledger()] == ["fired"] * 14
