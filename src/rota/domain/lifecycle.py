"""The lifecycle: the only module that decides where an execution goes after an attempt.

An attempt ends in an `Outcome`. From the outcome and the running row, `decide` computes a `Move`:

    Final    the execution is over, with a terminal status
    Later    it runs again at `run_at` (retrying, if an attempt was counted; scheduled, if not)
    Back     it returns to `ready` with its old rank

A success counts even if a cancel was accepted meanwhile: the job finished first. After any other outcome, a crash
included, an execution with a cancel request ends as cancelled, so no attempt starts after a cancel was accepted.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from rota.domain import retry
from rota.domain.breaker import Breaker
from rota.domain.instant import MICROSECONDS
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
from rota.domain.status import Reason, Status

CRASH_CAP = 3


class Held(msgspec.Struct, frozen=True, array_like=True):
    """A row of `running`: one attempt, and the counters that an execution carries from move to move."""

    id: str
    lane: int
    rank: int
    worker: int
    fence: int
    attempts: int
    crashes: int
    first_start_at: int
    started_at: int
    run: str | None = None
    """The run that the execution is a step of."""
    cancel_at: int | None = None
    cancel_reason: Reason | None = None


class Rules(msgspec.Struct, frozen=True):
    """The part of a job's definition that decides how its attempts end."""

    retry: retry.Policy = retry.DEFAULT
    timeout_s: float | None = None
    total_timeout_s: float | None = None
    progress_timeout_s: float | None = None
    """How long an attempt may run without reporting progress."""
    slice_s: float | None = None
    """After this time, an attempt that has saved a checkpoint gives up its slot to others."""
    breakers: tuple[Breaker, ...] = ()
    """The breakers of the services that the job relies on."""
    pauses: bool = False
    """Whether the job pauses itself after failures in a row, so that its successes count."""


class Final(msgspec.Struct, frozen=True):
    status: Status
    reason: Reason


class Later(msgspec.Struct, frozen=True):
    run_at: int
    attempts: int
    reason: Reason


class Back(msgspec.Struct, frozen=True):
    crashes: int
    reason: Reason


Move = Final | Later | Back


def decide(held: Held, outcome: Outcome, rules: Rules, now: int, jitter: float) -> Move:
    """The next move of the execution."""
    if isinstance(outcome, Succeeded):
        return Final(Status.SUCCESS, Reason.COMPLETED)
    if held.cancel_at is not None or isinstance(outcome, Cancelled):
        return Final(Status.CANCELLED, held.cancel_reason or Reason.CANCELLED)
    match outcome:
        case Failed():
            return _after_failure(held, outcome, rules, now, jitter)
        case TimedOut(total=True):
            return Final(Status.FAILED, Reason.TOTAL_TIMEOUT)
        case TimedOut(error=error):
            failed = Failed(error=error, reason=Reason.TIMEOUT)
            return _after_failure(held, failed, rules, now, jitter)
        case Snoozed(delay_s=delay_s):
            return _later(held, rules, now, delay_s, held.attempts, Reason.SNOOZED)
        case GivenBack(reason=reason, delay_s=0):
            return Back(held.crashes, reason)
        case GivenBack(reason=reason, delay_s=delay_s):
            return Later(now + round(delay_s * MICROSECONDS), held.attempts, reason)
        case Lost(shared=True):
            return Back(held.crashes, Reason.SUSPECTED)
        case Lost():
            if held.crashes + 1 >= CRASH_CAP:
                return Final(Status.FAILED, Reason.CRASH_LOOP)
            return Back(held.crashes + 1, Reason.CRASHED)
        case Expired():
            return Final(Status.SKIPPED, Reason.START_DEADLINE)
        case _:
            assert_never(outcome)


def _after_failure(held: Held, failed: Failed, rules: Rules, now: int, jitter: float) -> Move:
    attempts = held.attempts + 1
    if failed.permanent:
        reason = Reason.PERMANENT_ERROR if failed.reason is Reason.ERROR else failed.reason
        return Final(Status.FAILED, reason)
    if attempts >= rules.retry.attempts:
        exhausted = Reason.RETRIES_EXHAUSTED if rules.retry.attempts > 1 else failed.reason
        return Final(Status.FAILED, exhausted)
    delay_s = failed.retry_in_s
    if delay_s is None:
        delay_s = retry.delay_s(rules.retry, attempts, jitter)
    return _later(held, rules, now, delay_s, attempts, failed.reason)


def _later(held: Held, rules: Rules, now: int, delay_s: float, attempts: int, reason: Reason) -> Move:
    run_at = now + round(delay_s * MICROSECONDS)
    if rules.total_timeout_s is not None:
        ends_at = held.first_start_at + round(rules.total_timeout_s * MICROSECONDS)
        if run_at >= ends_at:
            return Final(Status.FAILED, Reason.TOTAL_TIMEOUT)
    return Later(run_at, attempts, reason)
