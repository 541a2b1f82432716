"""All workers are replaced one by one while executions arrive: none is lost, doubled or charged with a crash."""

from __future__ import annotations

import signal

import pytest

from tests.faults.trial import PATIENCE_S, Trial, eventually, every_tick_is_known_once
from tests.kill.effects import Answer
from tests.kill.fleet import Program

pytestmark = pytest.mark.timeout(5 * PATIENCE_S)

WORKERS = 3
LONG_S = 600.0
"""A lease that cannot have been what brought the work back."""


def test_a_rolling_restart_loses_and_doubles_nothing(trial: Trial) -> None:
    fleet = [start(trial) for _ in range(WORKERS)]
    trial.joined(WORKERS)
    rate = trial.schedule(name="rate", every="1s")
    long = trial.enqueue_all(2 * WORKERS, "patient", gate="go")
    short = []
    for x in long:
        trial.wait_for(x, "start")
    for place in range(WORKERS):
        leaving = fleet[place]
        short += trial.enqueue_all(5, "stepped")
        leaving.process.signal(signal.SIGTERM)
        short += trial.enqueue_all(5, "stepped")
        assert leaving.wait(PATIENCE_S) == 0, trial.logs()
        fleet[place] = start(trial)
        trial.joined(WORKERS)
    trial.open("go")
    for x in [*long, *short]:
        trial.result(x)
        *before, last = trial.history(x)
        assert {attempt.status for attempt in before} <= {"given_back"}, before
        assert (last.status, last.attempts, last.crashes) == ("success", 1, 0)
        assert trial.charges(x) == [(last.fence, Answer.DONE)]
    assert all(len(trial.history(x)) > 1 for x in long), "each of the first workers has given back what it ran"
    eventually(lambda: len(rate.ticks()) > 2, what="ticks")
    every_tick_is_known_once(rate)
    rate.remove()
    trial.check()


def start(trial: Trial) -> Program:
    return trial.worker("--grace", "0.5s", lease_s=LONG_S)
