"""The simulation itself under test: it must notice bugs that are known to be there."""

from __future__ import annotations

import pytest

from tests.simulation import planted
from tests.simulation.planted import Bug
from tests.support.proving import sampled

ON_POSTGRES = (
    "a failure leaves no dead letter",
    "an idempotency key is not recorded",
    "paused queues are claimed from",
    "rows below a watermark are never swept",
)
"""A few are enough: the invariants are the same, and what they see of the database is tested by these."""

OF_ALL_KINDS_FIRST = sorted(planted.BUGS, key=lambda bug: planted.BUGS.index(bug) % 4)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("bug", sampled(OF_ALL_KINDS_FIRST, 12), ids=lambda bug: bug.name.replace(" ", "_"))
def test_a_planted_bug_is_caught(bug: Bug) -> None:
    catch = planted.hunt(bug)
    assert catch is not None, f"{planted.MOST_SEEDS} seeds did not notice: {bug.name}"
    print(f"{bug.name}: {catch}")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sampled(ON_POSTGRES, 1))
def test_a_planted_bug_is_caught_on_postgres(name: str) -> None:
    (bug,) = (bug for bug in planted.bugs("postgres") if bug.name == name)
    catch = planted.hunt(bug, database="postgres")
    assert catch is not None, f"{planted.MOST_SEEDS} seeds did not notice: {name}"
    print(f"{name}: {catch}")
