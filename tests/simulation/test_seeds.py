"""Random runs: whatever happens, every invariant holds in the end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation import runner
from tests.simulation.coverage import Coverage
from tests.simulation.settings import CHUNK, COVERED, POSTGRES_CHUNK, POSTGRES_SEEDS, SEEDS
from tests.support.proving import proof, sampled

REPOSITORY = Path(__file__).resolve().parents[2]


def assert_none(failures: list[runner.Failure]) -> None:
    if failures:
        pytest.fail("\n".join(map(str, failures)), pytrace=False)


@pytest.mark.timeout(600)
def test_the_first_seeds_see_every_move_every_reason_and_every_fault() -> None:
    """In one piece, because only the union counts, and tests may run in several processes."""
    coverage = Coverage()
    for seed in COVERED:
        failures, seen = runner.run_many([seed])
        assert_none(failures)
        coverage.merge(seen)
        if not coverage.missing():
            return
    assert coverage.missing() == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", sampled(range(0, SEEDS, CHUNK), 0))
def test_a_seed_breaks_no_invariant(first: int) -> None:
    failures, _ = runner.run_many(range(first, min(first + CHUNK, SEEDS)))
    assert_none(failures)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", sampled(range(0, POSTGRES_SEEDS, POSTGRES_CHUNK), 0))
def test_a_seed_breaks_no_invariant_on_postgres(first: int) -> None:
    failures, _ = runner.run_many(range(first, min(first + POSTGRES_CHUNK, POSTGRES_SEEDS)), "postgres")
    assert_none(failures)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("database", ["sqlite", proof("postgres")])
def test_a_seed_is_always_the_same_run(database: str) -> None:
    """Also in another process, where sets of strings have another order."""
    history, _ = runner.run(3, database)
    command = [sys.executable, "-m", "tests.simulation", "--database", database, "--seed", "3", "--digest"]
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    answer = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True, timeout=250
    )
    assert answer.stdout.strip() == runner.digest(history)
