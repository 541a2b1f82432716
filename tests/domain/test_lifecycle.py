"""Every outcome of every attempt leads to a move that the table of transitions allows."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from rota.domain import retry
from rota.domain.instant import MICROSECONDS
from rota.domain.lifecycle import CRASH_CAP, Back, Final, Held, Later, Move, Rules, decide
from rota.domain.outcome import (
    Cancelled,
    Expired,
    Failed,
    GivenBack,
    Lost,
    Outcome,
    Snoozed,
    Succeeded,
    TimedOut,
)
from rota.domain.status import PENDING, TERMINAL, Reason, Status
from tests.domain.strategies import ERROR, NOW, delays_s, held_rows, jitters, outcomes, policies, rules
from tests.support.moves import ALLOWED, may_move


def held(attempts: int = 0, crashes: int = 0, **more: object) -> Held:
    values: dict[str, object] = {
        "id": "x",
        "lane": 1,
        "rank": NOW,
        "worker": 1,
        "fence": 1,
        "attempts": attempts,
        "crashes": crashes,
        "first_start_at": NOW,
        "started_at": NOW,
    }
    return Held(**{**values, **more})  # type: ignore[arg-type]


def target_of(move: Move) -> Status:
    match move:
        case Final(status=status):
            return status
        case Later(attempts=attempts):
            return Status.RETRYING if attempts else Status.SCHEDULED
        case Back():
            return Status.QUEUED


@pytest.mark.parametrize("source", sorted(TERMINAL))
@pytest.mark.parametrize("target", list(Status))
def test_no_move_leaves_a_terminal_state(source: Status, target: Status) -> None:
    assert not may_move(source, target)


def test_every_state_is_in_the_table_and_can_be_reached_and_left() -> None:
    assert set(ALLOWED) == {None, *Status}
    assert TERMINAL | PENDING | {Status.RUNNING} == set(Status)
    reached = set(itertools.chain.from_iterable(ALLOWED.values()))
    assert reached == set(Status)
    assert all(ALLOWED[status] for status in Status if status not in TERMINAL)


def test_every_state_that_is_not_terminal_can_be_cancelled() -> None:
    assert all(may_move(status, Status.CANCELLED) for status in Status if status not in TERMINAL)


@given(held_rows(), outcomes, rules, jitters)
def test_every_decision_is_an_allowed_move_from_running(
    row: Held, outcome: Outcome, rules: Rules, jitter: float
) -> None:
    assert may_move(Status.RUNNING, target_of(decide(row, outcome, rules, NOW, jitter)))


@given(held_rows(), outcomes, rules, jitters)
def test_the_same_values_always_lead_to_the_same_move(row: Held, outcome: Outcome, rules: Rules, jitter: float) -> None:
    assert decide(row, outcome, rules, NOW, jitter) == decide(row, outcome, rules, NOW, jitter)


@given(held_rows(), rules, jitters)
def test_a_success_is_kept_even_after_a_cancel(row: Held, rules: Rules, jitter: float) -> None:
    assert decide(row, Succeeded("1"), rules, NOW, jitter) == Final(Status.SUCCESS, Reason.COMPLETED)


@given(held_rows(), outcomes, rules, jitters)
def test_an_execution_that_was_asked_to_cancel_never_starts_again(
    row: Held, outcome: Outcome, rules: Rules, jitter: float
) -> None:
    assume(row.cancel_at is not None)
    move = decide(row, outcome, rules, NOW, jitter)
    assert isinstance(move, Final)
    assert move.status in (Status.SUCCESS, Status.CANCELLED)
    if move.status is Status.CANCELLED:
        assert move.reason is row.cancel_reason


@given(held_rows(), outcomes, rules, jitters)
def test_no_retry_is_scheduled_in_the_past(row: Held, outcome: Outcome, rules: Rules, jitter: float) -> None:
    move = decide(row, outcome, rules, NOW, jitter)
    if isinstance(move, Later):
        assert move.run_at >= NOW


@given(held_rows(), outcomes, rules, jitters)
def test_no_retry_is_scheduled_after_the_total_timeout(
    row: Held, outcome: Outcome, rules: Rules, jitter: float
) -> None:
    assume(rules.total_timeout_s is not None and not isinstance(outcome, GivenBack))
    move = decide(row, outcome, rules, NOW, jitter)
    if isinstance(move, Later) and rules.total_timeout_s is not None:
        assert move.run_at < row.first_start_at + round(rules.total_timeout_s * MICROSECONDS)


@given(policies, st.lists(st.one_of(st.just("fail"), st.just("snooze"), st.just("back")), max_size=60), jitters)
@example(retry.Fixed(attempts=1), ["fail"], 0.0)
def test_counted_attempts_never_exceed_the_policy(policy: retry.Policy, history: list[str], jitter: float) -> None:
    counted = 0
    kinds: dict[str, Outcome] = {
        "fail": Failed(ERROR),
        "snooze": Snoozed(1.0),
        "back": GivenBack(Reason.DRAINED),
    }
    for kind in history:
        move = decide(held(counted), kinds[kind], Rules(retry=policy), NOW, jitter)
        if isinstance(move, Final):
            assert kind == "fail"
            assert counted + 1 == policy.attempts
            return
        if isinstance(move, Later):
            assert move.attempts == counted + (kind == "fail")
            counted = move.attempts
        assert counted < policy.attempts


@given(rules, st.integers(min_value=0, max_value=20))
def test_crashes_never_exceed_their_cap(rules: Rules, crashes: int) -> None:
    for before in range(crashes):
        move = decide(held(crashes=before), Lost(ERROR), rules, NOW, 0.5)
        if before + 1 == CRASH_CAP:
            assert move == Final(Status.FAILED, Reason.CRASH_LOOP)
            return
        assert move == Back(before + 1, Reason.CRASHED)


@given(held_rows(), delays_s, jitters)
def test_giving_back_and_snoozing_count_no_attempt(row: Held, delay_s: float, jitter: float) -> None:
    assume(row.cancel_at is None)
    for outcome in (Snoozed(delay_s), GivenBack(Reason.NOT_BEGUN, delay_s)):
        move = decide(row, outcome, Rules(), NOW, jitter)
        if isinstance(move, Later):
            assert move.attempts == row.attempts
        else:
            assert move == Back(row.crashes, Reason.NOT_BEGUN)


def test_a_permanent_failure_ends_the_execution_with_its_reason() -> None:
    plain = decide(held(), Failed(ERROR, permanent=True), Rules(), NOW, 0.5)
    arguments = decide(held(), Failed(ERROR, Reason.BAD_ARGUMENTS, permanent=True), Rules(), NOW, 0.5)
    assert plain == Final(Status.FAILED, Reason.PERMANENT_ERROR)
    assert arguments == Final(Status.FAILED, Reason.BAD_ARGUMENTS)


def test_the_last_failed_attempt_ends_with_retries_exhausted() -> None:
    several, single = Rules(retry=retry.Fixed(attempts=3)), Rules(retry=retry.NO_RETRY)
    assert decide(held(attempts=2), Failed(ERROR), several, NOW, 0.5) == Final(Status.FAILED, Reason.RETRIES_EXHAUSTED)
    assert decide(held(), Failed(ERROR), single, NOW, 0.5) == Final(Status.FAILED, Reason.ERROR)
    assert decide(held(), TimedOut(ERROR), single, NOW, 0.5) == Final(Status.FAILED, Reason.TIMEOUT)


def test_an_attempt_that_timed_out_is_retried_and_a_total_timeout_is_not() -> None:
    policy = Rules(retry=retry.Fixed(attempts=3, delay=10))
    assert decide(held(), TimedOut(ERROR), policy, NOW, 0.5) == Later(NOW + 10 * MICROSECONDS, 1, Reason.TIMEOUT)
    assert decide(held(), TimedOut(ERROR, total=True), policy, NOW, 0.5) == Final(Status.FAILED, Reason.TOTAL_TIMEOUT)


def test_a_job_may_choose_its_retry_delay_within_its_attempts() -> None:
    policy = Rules(retry=retry.Fixed(attempts=2, delay=10))
    asked = Failed(ERROR, retry_in_s=3)
    assert decide(held(), asked, policy, NOW, 0.5) == Later(NOW + 3 * MICROSECONDS, 1, Reason.ERROR)
    assert decide(held(attempts=1), asked, policy, NOW, 0.5) == Final(Status.FAILED, Reason.RETRIES_EXHAUSTED)


def test_an_attempt_that_stopped_when_asked_is_cancelled_and_a_late_start_is_skipped() -> None:
    assert decide(held(), Cancelled(), Rules(), NOW, 0.5) == Final(Status.CANCELLED, Reason.CANCELLED)
    assert decide(held(), Expired(), Rules(), NOW, 0.5) == Final(Status.SKIPPED, Reason.START_DEADLINE)
