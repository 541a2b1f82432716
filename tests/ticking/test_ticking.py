"""No tick is lost or doubled while workers are killed every few seconds; `python -m tests.ticking` runs for longer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.databases import fresh_database
from tests.support.proving import proof
from tests.support.waiting import eventually
from tests.support.workers import Site
from tests.ticking.run import run

SECONDS = float(os.environ.get("ROTA_TICKING_SECONDS", "15"))
SAMPLE_S = 2.0
LATEST_S = 20.0
"""Short enough to notice a tick that waits for a lease to expire, or for another worker's next poll."""


@pytest.mark.parametrize(
    ("database", "seconds"),
    [("sqlite", SAMPLE_S), proof("sqlite", SECONDS), proof("postgres", SECONDS)],
)
def test_ticks_survive_the_deaths_of_workers(tmp_path: Path, database: str, seconds: float) -> None:
    report = run(tmp_path, fresh_database() if database == "postgres" else "", seconds, seed=os.getpid())
    print(report)
    assert report.problems == [], report
    assert report.kills >= 1
    assert report.ticks >= 3 * seconds / 2
    assert report.latest_s < LATEST_S, report


@pytest.mark.parametrize("database", [proof("sqlite"), "postgres"])
def test_a_hint_about_a_change_reaches_workers_that_poll_rarely(tmp_path: Path, database: str) -> None:
    """The workers poll once a minute: a tick, and the end of ticks, can only come from a hint."""
    with Site(tmp_path, fresh_database() if database == "postgres" else "") as site:
        for _ in range(2):
            site.worker(poll_s=60, lease_s=600)
        schedule = site.app.schedule("echo_async", name="new", every="1s", overlap="allow", arguments={"value": 1})
        eventually(lambda: len(schedule.ticks()) >= 2, what="ticks of a schedule that was made at run time")
        schedule.pause("enough")
        fired = len(schedule.ticks())
        schedule.resume()
        eventually(lambda: len(schedule.ticks()) > fired, what="further ticks of the schedule")
