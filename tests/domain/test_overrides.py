"""The rules of one execution: its job's, and its own timeout and retries in their place."""

from __future__ import annotations

import pytest

from rota.domain import overrides, retry
from rota.domain.lifecycle import Rules
from rota.domain.retry import Exponential, Fixed, Linear, Policy

JOB = Rules(retry=Fixed(attempts=3, delay=10, never=(ValueError,)), timeout_s=60.0, total_timeout_s=600.0)


def test_without_overrides_the_rules_are_the_jobs() -> None:
    assert overrides.encode(None, None) is None
    assert overrides.applied(JOB, None) is JOB


def test_a_timeout_replaces_the_timeout_of_the_job() -> None:
    rules = overrides.applied(JOB, overrides.encode(1.5, None))
    assert (rules.timeout_s, rules.total_timeout_s, rules.retry) == (1.5, 600.0, JOB.retry)


@pytest.mark.parametrize(
    "policy",
    [Fixed(attempts=1), Fixed(attempts=7, delay="1m"), Linear(step=3, cap="2m"), Exponential(base=1, jitter=False)],
)
def test_a_policy_replaces_all_but_the_errors_that_the_job_retries(policy: Policy) -> None:
    rules = overrides.applied(JOB, overrides.encode(None, policy))
    assert rules.timeout_s == JOB.timeout_s
    assert type(rules.retry) is type(policy)
    assert rules.retry.attempts == policy.attempts
    for attempt in range(1, 9):
        assert retry.delay_s(rules.retry, attempt, 0.5) == retry.delay_s(policy, attempt, 0.5)
    assert not rules.retry.retries(ValueError())


def test_stored_overrides_are_short() -> None:
    assert overrides.encode(None, Exponential(attempts=2)) == '{"retry":{"policy":"Exponential","attempts":2}}'


def test_a_described_callable_keeps_its_number_of_attempts() -> None:
    described = retry.described(retry.Custom(attempts=4, delay_for=lambda attempt, error: 1).describe())
    assert (described.attempts, retry.delay_s(described, 1, 0.5)) == (4, 10.0)
