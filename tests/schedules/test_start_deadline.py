"""The start deadline of a job holds for its ticks, too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rota import App
from rota.domain.status import Reason, Status
from rota.ops import upkeep
from rota.testing import harness
from tests.schedules.timetable import Timetable, every, instant

MINUTELY = every(60)


def test_the_execution_of_a_tick_that_has_not_started_in_time_is_skipped(table: Timetable) -> None:
    table.put(MINUTELY, start_within_s=20.0, end=instant(60))
    table.go_to(60)
    (id,) = table.started()
    assert table.world.execution(id).deadline == instant(80)
    table.world.clock.set(instant(80))
    assert table.store.transact(upkeep.expire) == 1
    row = table.world.execution(id)
    assert (row.status, row.reason) == (Status.SKIPPED, Reason.START_DEADLINE)
    assert table.rows()[0].status == "skipped"


def test_the_start_deadline_counts_from_the_tick_and_its_jitter(table: Timetable) -> None:
    table.put(MINUTELY, start_within_s=20.0, jitter_s=1000.0)
    table.go_to(65)
    row = table.world.execution(table.started()[0])
    assert row.run_at > instant(60)
    assert row.deadline == row.run_at + 20_000_000


def test_the_start_deadline_of_a_caught_up_or_backfilled_tick_counts_from_the_enqueue(table: Timetable) -> None:
    table.put(MINUTELY, start_within_s=20.0)
    table.go_to(300 + 45)
    table.backfill(60, 60)
    assert [(row.outcome, row.at) for row in table.rows() if row.execution] == [
        ("backfilled", instant(60)),
        ("caught_up", instant(300)),
    ]
    assert {table.world.execution(id).deadline for id in table.started()} == {instant(345 + 20)}


def test_the_start_deadline_of_a_held_tick_counts_from_the_enqueue(table: Timetable) -> None:
    table.put(MINUTELY, start_within_s=20.0, overlap="queue_one")
    table.go_to(60)
    claimed = table.claim()
    table.go_to(120)
    table.world.clock.set(instant(150))
    table.world.finish(claimed)
    table.follow()
    table.fire()
    assert table.world.execution(table.started()[1]).deadline == instant(170)


def test_a_schedule_has_the_start_deadline_of_its_job() -> None:
    app = App("shop")

    @app.job(every="1h", start_within="10m")
    def note() -> None: ...

    @app.job(start_within="5m")
    def other() -> None: ...

    with harness(app):
        app.schedule(other, at=datetime(2026, 2, 1, tzinfo=UTC))
        assert [one.info().start_within for one in app.schedules()] == [timedelta(minutes=10), timedelta(minutes=5)]
