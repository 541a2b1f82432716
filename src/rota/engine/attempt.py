"""An attempt that a worker runs: its rules, how long it may take, and why it is asked to stop."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import Enum

from rota.domain import payload
from rota.domain.claim import Claim
from rota.domain.instant import MICROSECONDS
from rota.domain.lifecycle import Rules
from rota.domain.outcome import TimedOut
from rota.executors.attempt_state import AttemptState
from rota.executors.port import Executor


class Stop(Enum):
    """Why a running attempt is asked to stop."""

    CANCEL = "cancel"
    TIMEOUT = "timeout"
    TOTAL_TIMEOUT = "total_timeout"
    PROGRESS_TIMEOUT = "progress_timeout"
    DRAIN = "drain"


# For `limit`, which is called for every attempt: Python 3.11 is slow to find the member of an enum.
_TIMEOUT, _TOTAL_TIMEOUT = Stop.TIMEOUT, Stop.TOTAL_TIMEOUT


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt in progress."""

    claim: Claim
    target: Executor
    state: AttemptState
    rules: Rules
    """The target's rules with the overrides of the execution."""
    limit: Stop
    """Which of its timeouts comes first."""
    task: asyncio.Task[None] = field(init=False)
    has_begun: bool = False
    """Whether the task has run its first step. A task that is cancelled before that never runs at all."""
    stop: Stop | None = None
    """Why the attempt was asked to stop, if it was."""
    bucket: int = -1
    grace_bucket: int = -1
    silence_bucket: int = -1


def timed_out(limit: Stop, rules: Rules) -> TimedOut:
    if limit is Stop.PROGRESS_TIMEOUT:
        silence_s = rules.progress_timeout_s
        return TimedOut(payload.error("Timeout", f"the attempt has reported no progress for {silence_s:g} s"))
    total = limit is Stop.TOTAL_TIMEOUT
    limit_s = rules.total_timeout_s if total else rules.timeout_s
    what = "all attempts together" if total else "the attempt"
    return TimedOut(payload.error("Timeout", f"{what} took longer than {limit_s:g} s"), total=total)


def silence_left_s(rules: Rules, state: AttemptState) -> float:
    """How much longer an attempt may report no progress, after the time for its first report is over."""
    limit_s, silent_s = rules.progress_timeout_s, state.silent_s
    return 0.0 if limit_s is None or silent_s is None else limit_s - silent_s


def total_left_s(claim: Claim, rules: Rules) -> float | None:
    """How much of the time for all attempts together was left when this one was claimed."""
    total_s = rules.total_timeout_s
    # The database's clock may have been set back since the first start; that does not extend the time.
    return None if total_s is None else total_s - max(0, claim.started_at - claim.first_start_at) / MICROSECONDS


def limit(claim: Claim, rules: Rules, waited_s: float = 0.0) -> tuple[float | None, Stop]:
    """How long this attempt may take, and which timeout says so. The wait for a process counts for the total only."""
    timeout_s, left_s = rules.timeout_s, total_left_s(claim, rules)
    if left_s is None:
        return timeout_s, _TIMEOUT
    left_s -= waited_s
    if timeout_s is not None and timeout_s <= left_s:
        return timeout_s, _TIMEOUT
    return left_s, _TOTAL_TIMEOUT
