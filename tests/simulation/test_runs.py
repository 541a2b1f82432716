"""Random runs of workflows under faults: every invariant holds, and the sweeper has nothing to repair."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from rota.domain.status import Reason
from rota.domain.workflow.wait import is_wait
from tests.simulation import runner
from tests.support.proving import sampled

SEEDS = int(os.environ.get("ROTA_SIM_RUN_SEEDS", "60"))
CHUNK = 3
COVERING = (27,)
"""Seeds that see everything in `SEEN` together. If the simulation changes, choose others."""
POSTGRES_SEEDS = 6
SEEN = {
    *("completed", "retries_exhausted", "cancelled"),
    *(Reason.STEP_FAILED, Reason.RUN_TIMEOUT, Reason.TOO_DEEP),
    *(Reason.WAIT_TIMEOUT, Reason.REJECTED, Reason.UNDO_FAILED),
    *("sleep() completed", "approve() completed", "approve() in time", "event() completed", "undone"),
}
"""Reasons of ends, and what else must happen."""


def simulate(seed: int, database: str = "sqlite") -> Counter[str]:
    history, wrong = runner.run(seed, database, runs=True)
    again = f"World({seed}, database={database!r}, runs=True)"
    assert wrong == [], "\n".join([again, *map(str, wrong)])
    assert history.tables["run_ended"], "no run was opened"
    jobs = {row["id"]: row["job"] for row in history.tables["execution"]}
    runs = {row["id"] for row in history.tables["run_ended"]} | history.steps
    ends = [row for row in history.tables["finished"] if row["id"] in runs]
    seen = Counter(row["reason"] for row in ends)
    seen.update(f"{jobs[row['id']]} {row['reason']}" for row in ends if is_wait(jobs[row["id"]]))
    seen["approve() in time"] = sum(operation.name == "answer" for operation in history.operations)
    seen["undone"] = sum(row["undo_of"] is not None for row in history.tables["run_ended"])
    return seen


@pytest.mark.timeout(600)
def test_a_few_seeds_see_every_kind_of_end() -> None:
    seen: Counter[str] = Counter()
    for seed in COVERING:
        seen += simulate(seed)
    assert seen.keys() >= SEEN


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", sampled(range(0, SEEDS, CHUNK), 0))
def test_runs(first: int) -> None:
    for seed in range(first, first + CHUNK):
        simulate(seed)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", sampled(range(POSTGRES_SEEDS), 0))
def test_runs_on_postgres(seed: int) -> None:
    simulate(seed, "postgres")
