"""When a breaker opens, when a probe may start, and when it closes."""

from __future__ import annotations

import pytest

from rota.domain import breaker
from rota.domain.breaker import DOUBLINGS, Breaker, Circuit
from rota.domain.errors import DefinitionError

POLICY = Breaker("bank", 3, 10.0)
WAIT = 10_000_000


def after(*went_well: bool, at: int = 0, circuit: Circuit | None = None) -> Circuit:
    circuit = circuit or Circuit("bank")
    for one in went_well:
        circuit = breaker.after(circuit, POLICY, one, at)
    return circuit


def test_a_breaker_opens_after_failures_in_a_row() -> None:
    assert not after(False, False).is_open(0)
    assert not after(False, False, True, False, False).is_open(0), "a success between them"
    circuit = after(False, False, False)
    assert circuit.is_open(WAIT - 1)
    assert not circuit.is_open(WAIT)
    assert circuit.tries(WAIT)


def test_the_outcome_of_an_execution_that_started_before_a_breaker_opened_is_ignored() -> None:
    circuit = after(False, False, False)
    assert after(True, at=5, circuit=circuit) == circuit
    assert after(False, at=5, circuit=circuit) == circuit


def test_a_successful_probe_closes_a_breaker() -> None:
    circuit = after(True, at=WAIT, circuit=after(False, False, False))
    assert circuit == Circuit("bank")
    assert not circuit.is_troubled


def test_a_failed_probe_doubles_the_wait_up_to_a_limit() -> None:
    circuit, waits = after(False, False, False), []
    for _ in range(8):
        now = circuit.retry_at or 0
        circuit = after(False, at=now, circuit=circuit)
        waits.append((circuit.retry_at or 0) - now)
    assert waits[:4] == [2 * WAIT, 4 * WAIT, 8 * WAIT, 16 * WAIT]
    assert waits[-1] == DOUBLINGS * WAIT


def test_one_probe_runs_at_a_time() -> None:
    trying = Circuit("bank", 3, 0, WAIT, WAIT, probe_until=2 * WAIT)
    assert trying.is_open(2 * WAIT - 1)
    assert trying.tries(2 * WAIT), "the probe did not report in time"


def test_a_job_may_have_several_breakers() -> None:
    circuits = {"bank": after(False, False, False)}
    assert breaker.gate(["bank", "mail"], circuits, 0) is None
    assert breaker.gate(["bank", "mail"], circuits, WAIT) == ["bank"]
    assert breaker.gate(["mail"], circuits, 0) == []


@pytest.mark.parametrize(
    ("name", "failures", "wait"),
    [("", 5, "30s"), ("bank", 0, "30s"), ("bank", True, "30s"), ("bank", 5, 0), ("bank", 5, "2d")],
)
def test_an_invalid_breaker_is_refused(name: str, failures: int, wait: str | int) -> None:
    with pytest.raises(DefinitionError):
        breaker.breaker(name, failures, wait)
