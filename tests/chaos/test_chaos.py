"""A short storm; `make prove` has longer ones. ROTA_CHAOS_SEED and ROTA_CHAOS_MINUTES make other runs."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.chaos.report import Plan, table
from tests.chaos.run import Run
from tests.support.proving import proof

pytestmark = pytest.mark.xdist_group("kill")

MINUTES = float(os.environ.get("ROTA_CHAOS_MINUTES", "0.35"))
SAMPLE = 0.05


@pytest.mark.timeout(500 + 120 * MINUTES)
@pytest.mark.parametrize(
    ("database", "minutes"), [("sqlite", SAMPLE), proof("sqlite", MINUTES), proof("postgres", MINUTES)]
)
def test_accepted_executions_survive_a_storm_of_faults(tmp_path: Path, database: str, minutes: float) -> None:
    seed = int(os.environ.get("ROTA_CHAOS_SEED", random.randrange(1_000_000)))
    plan = Plan(
        database=database,
        minutes=minutes,
        seed=seed,
        kills=5 if minutes > SAMPLE else 1,
        lease_s=2.0,
        cheap=0.1,
        even=0.5,
    )
    report = Run(plan, tmp_path).run()
    print(table(report))
    assert not report.problems, table(report)
    assert report.success.share == 1.0, table(report)
