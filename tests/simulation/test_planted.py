"""The simulation itself under test: it must notice bugs that are known to be there."""

from __future__ import annotations

import pytest

from tests.simulation import planted
from tests.simulation.planted import Bug


@pytest.mark.timeout(600)
@pytest.mark.parametrize("bug", planted.BUGS, ids=lambda bug: bug.name.replace(" ", "_"))
def test_a_planted_bug_is_caught(bug: Bug) -> None:
    catch = planted.hunt(bug)
    assert catch is not None, f"{planted.MOST_SEEDS} seeds did not notice: {bug.name}"
    print(f"{bug.name}: {catch}")
