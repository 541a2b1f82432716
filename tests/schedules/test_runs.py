"""Schedules of workflows: a tick is a run, and overlap, catch-up and backfill count whole runs."""

from __future__ import annotations

import pytest

from rota.domain.instant import rfc3339
from tests.schedules.timetable import Entry, Timetable, cron, every, instant
from tests.workflow.stage import Stage

MINUTELY = every(60)


@pytest.fixture
def stage(table: Timetable) -> Stage:
    """With a workflow of two steps, whose result is its tick."""
    stage = Stage(table.world)
    stage.workflow(
        "main",
        {"id": "a", "job": "echo", "with": {"x": {"$": "run.scheduled_for"}}},
        {"id": "b", "job": "echo", "with": {"x": {"$": "a"}}},
        result={"$": "b"},
    )
    return stage


def ticks(*seconds: float) -> list[str]:
    return [rfc3339(instant(one)) for one in seconds]


def test_a_cron_tick_starts_a_run(table: Timetable, stage: Stage) -> None:
    table.put(cron("*/5 * * * *"), job="main")
    table.visit(300, 600)
    stage.work()
    assert table.ledger() == [Entry(300, "fired"), Entry(600, "fired")]
    assert [stage.result(run) for run in table.started()] == ticks(300, 600)


def test_overlap_skip_waits_for_the_last_step(table: Timetable, stage: Stage) -> None:
    table.put(MINUTELY, job="main", overlap="skip")
    table.go_to(60)
    stage.finish(*stage.take())  # The first step; the run stays open.
    table.go_to(120)
    stage.work()
    table.go_to(180)
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "overlap"), Entry(180, "fired")]


def test_overlap_queue_one_starts_the_next_run_when_the_last_step_has_ended(table: Timetable, stage: Stage) -> None:
    table.put(MINUTELY, job="main", overlap="queue_one")
    table.visit(60, 120)
    stage.finish(*stage.take())
    assert len(table.started()) == 1
    stage.finish(*stage.take())
    table.fire()
    stage.work()
    assert [stage.result(run) for run in table.started()] == ticks(60, 120)


def test_overlap_cancel_previous_stops_the_open_run(table: Timetable, stage: Stage) -> None:
    table.put(MINUTELY, job="main", overlap="cancel_previous")
    table.go_to(60)
    stage.open()
    table.go_to(120)
    stage.work()
    old, new = table.started()
    assert stage.end(old) == ("cancelled", "replaced")
    assert stage.result(new) == ticks(120)[0]
    assert stage.is_swept()


def test_catch_up_starts_a_run_for_each_missed_tick(table: Timetable, stage: Stage) -> None:
    table.put(MINUTELY, job="main", catch_up="all")
    table.go_to(600)
    stage.work()
    assert [stage.result(run) for run in table.started()] == ticks(*range(60, 601, 60))


def test_a_backfill_starts_each_run_once(table: Timetable, stage: Stage) -> None:
    table.put(MINUTELY, job="main", catch_up="none")
    table.go_to(600)
    assert table.backfill(60, 240).started == 4
    assert table.backfill(60, 300).started == 1
    stage.work()
    assert [stage.result(run) for run in table.started()] == ticks(60, 120, 180, 240, 300, 600)
