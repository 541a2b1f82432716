"""Fail the Nth call, look, then the N+1st: a short and otherwise calm run, with one fault at every possible place."""

from __future__ import annotations

import itertools

import pytest

from tests.simulation.checker import check
from tests.simulation.faults import Fault, Script
from tests.simulation.runner import quiet
from tests.simulation.world import Scale, World
from tests.support.proving import proof

SEED = 1
SMALL = Scale(machines=1, clients=1, wishes=4, chaos_s=1.5, settle_s=8.0, calm_wishes=2, calm_s=3.0)
SAMPLE = 40
FAULTS = (Fault.CALL_FAILED, Fault.STATEMENT_FAILED, Fault.COMMIT_FAILED, Fault.REPLY_LOST)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("step", [SAMPLE, proof(1)])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.lower())
def test_a_single_fault_at_every_place_breaks_no_invariant(fault: Fault, step: int) -> None:
    """With a step, at every so many places."""
    places = 0
    for nth in itertools.count(1, step):
        script = Script(fault, nth)
        with quiet():
            history = World(SEED, SMALL, script).run()
        assert check(history) == [], f"the {nth}th time: {fault}"
        if not script.has_played:
            break
        places = nth
    assert places > 50, "too short a run to mean anything"
