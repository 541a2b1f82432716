"""Random runs of workflows under faults: every invariant holds, and the sweeper has nothing to repair."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from rota.domain.status import Reason
from tests.simulation.checker import check
from tests.simulation.runner import quiet
from tests.simulation.world import World
from tests.support.proving import sampled

SEEDS = int(os.environ.get("ROTA_SIM_RUN_SEEDS", "60"))
CHUNK = 3
POSTGRES_SEEDS = 6
SEEN = {
    *("completed", "retries_exhausted", "cancelled"),
    *(Reason.STEP_FAILED, Reason.RUN_TIMEOUT, Reason.TOO_DEEP),
}


def simulate(seed: int, database: str = "sqlite") -> Counter[str]:
    with quiet():
        history = World(seed, database=database, runs=True).run()
    wrong = check(history)
    again = f"World({seed}, database={database!r}, runs=True)"
    assert wrong == [], "\n".join([again, *map(str, wrong)])
    assert history.tables["run_ended"], "no run was opened"
    runs = {row["id"] for row in history.tables["run_ended"]} | history.steps
    return Counter(row["reason"] for row in history.tables["finished"] if row["id"] in runs)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", sampled(range(0, SEEDS, CHUNK), 1))
def test_runs(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        seen += simulate(seed)
    if first == 0:
        assert seen.keys() >= SEEN


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", sampled(range(POSTGRES_SEEDS), 0))
def test_runs_on_postgres(seed: int) -> None:
    simulate(seed, "postgres")
