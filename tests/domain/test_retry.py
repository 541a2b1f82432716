"""Retry policies: how long the wait may be, and what is refused as a policy."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain import retry
from rota.domain.duration import LONGEST_S
from rota.domain.errors import DefinitionError
from rota.domain.retry import MOST_ATTEMPTS, Custom, Exponential, Fixed, Linear, bound_s, delay_s
from tests.domain.strategies import exponential, fixed, jitters, linear, policies

tries = st.integers(min_value=1, max_value=MOST_ATTEMPTS)


@given(policies, tries, jitters)
def test_the_wait_is_between_zero_and_its_bound(policy: retry.Policy, attempt: int, jitter: float) -> None:
    bound = bound_s(policy, attempt)
    assert 0 <= bound <= LONGEST_S
    assert 0 <= delay_s(policy, attempt, jitter) <= bound


@given(policies, tries)
def test_the_bound_never_shrinks_from_one_attempt_to_the_next(policy: retry.Policy, attempt: int) -> None:
    assert bound_s(policy, attempt) <= bound_s(policy, attempt + 1)


@given(fixed, tries, jitters)
def test_a_fixed_wait_is_always_the_same(policy: Fixed, attempt: int, jitter: float) -> None:
    assert delay_s(policy, attempt, jitter) == policy.delay


@given(linear, tries, jitters)
def test_a_linear_wait_grows_by_its_step_up_to_its_cap(policy: Linear, attempt: int, jitter: float) -> None:
    assert isinstance(policy.step, float)
    assert isinstance(policy.cap, float)
    assert delay_s(policy, attempt, jitter) == min(policy.cap, policy.step * attempt)


@given(exponential, tries)
def test_an_exponential_bound_stays_below_its_cap(policy: Exponential, attempt: int) -> None:
    bound = bound_s(policy, attempt)
    assert isinstance(policy.cap, float)
    assert math.isfinite(bound)
    assert bound <= policy.cap


@given(exponential, tries, st.lists(jitters, min_size=2, max_size=20))
def test_full_jitter_spreads_over_the_whole_bound(policy: Exponential, attempt: int, draws: list[float]) -> None:
    waits = [delay_s(policy, attempt, jitter) for jitter in draws]
    if policy.jitter:
        assert waits == [bound_s(policy, attempt) * jitter for jitter in draws]
        assert delay_s(policy, attempt, 0.0) == 0
    else:
        assert set(waits) == {bound_s(policy, attempt)}


def test_waits_may_be_written_as_durations() -> None:
    assert bound_s(Fixed(delay="1m"), 1) == 60
    assert bound_s(Linear(step="10s", cap="25s"), 2) == 20
    assert bound_s(Exponential(base="1s", cap="1h"), 4) == 8


def test_valid_values_of_retry() -> None:
    assert retry.policy(None).attempts == 1
    assert retry.policy(False).attempts == 1
    assert retry.policy(True) == Exponential()
    assert retry.policy(7) == Exponential(attempts=7)
    custom = retry.policy(lambda attempt, error: 1.0)
    assert isinstance(custom, Custom)
    assert custom.attempts == MOST_ATTEMPTS


@pytest.mark.parametrize(
    "value",
    [
        0,
        -1,
        MOST_ATTEMPTS + 1,
        "5",
        1.5,
        [3],
    ],
)
def test_invalid_values_of_retry_are_refused(value: Any) -> None:
    with pytest.raises(DefinitionError):
        retry.policy(value)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (Fixed, {"delay": -1}),
        (Fixed, {"delay": "soon"}),
        (Linear, {"step": math.nan}),
        (Exponential, {"cap": math.inf}),
        (Exponential, {"factor": 0.5}),
        (Exponential, {"factor": math.nan}),
        (Exponential, {"factor": 1000}),
    ],
)
def test_a_policy_with_an_invalid_delay_is_refused_when_it_is_made(kind: Any, options: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match=f"retry {next(iter(options))}"):
        kind(**options)


@pytest.mark.parametrize("attempts", [0, -5, MOST_ATTEMPTS + 1, "3", 2.5, None])
def test_the_number_of_attempts_is_bounded(attempts: Any) -> None:
    with pytest.raises(DefinitionError, match="attempts"):
        Fixed(attempts=attempts)


@pytest.mark.parametrize("kinds", [(ValueError(),), ("ValueError",), (int,), int, "ValueError", 3])
def test_only_exception_classes_can_be_listed(kinds: Any) -> None:
    with pytest.raises(DefinitionError, match="exception classes"):
        Fixed(only=kinds)


def test_errors_are_retried_by_their_class() -> None:
    choosy = Fixed(only=(OSError,), never=(PermissionError,))
    assert choosy.retries(OSError())
    assert choosy.retries(ConnectionError())
    assert not choosy.retries(PermissionError())
    assert not choosy.retries(ValueError())
    assert Fixed().retries(ValueError())
    assert not Fixed(never=PermissionError).retries(PermissionError())
    assert not Fixed(only=OSError).retries(ValueError())


def test_a_policy_describes_itself_as_data() -> None:
    assert Fixed(attempts=3, delay="5s", only=(OSError,)).describe() == {
        "policy": "Fixed",
        "attempts": 3,
        "delay": 5.0,
        "only": ["builtins.OSError"],
        "never": [],
    }
    assert "delay_for" not in Custom(delay_for=lambda attempt, error: None).describe()
