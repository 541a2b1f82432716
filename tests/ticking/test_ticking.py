"""No tick is lost or doubled while nodes are killed every few seconds; `python -m tests.ticking` goes on for longer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.databases import fresh_database
from tests.ticking.run import run

SECONDS = float(os.environ.get("ROTA_TICKING_SECONDS", "15"))
LATEST_S = 20.0
"""Only so much that a tick which waits for a lease to run out, or for somebody's next poll by chance, is noticed."""


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_ticks_survive_the_deaths_of_nodes(tmp_path: Path, database: str) -> None:
    report = run(tmp_path, fresh_database() if database == "postgres" else "", SECONDS, seed=os.getpid())
    print(report)
    assert report.problems == [], report
    assert report.kills >= 3
    assert report.ticks >= 3 * SECONDS / 2
    assert report.latest_s < LATEST_S, report
