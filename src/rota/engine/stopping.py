"""Why an attempt is asked to stop, and how long it may take."""

from __future__ import annotations

from enum import Enum

from rota.clock import SystemClock
from rota.domain import payload
from rota.domain.claim import Claim
from rota.domain.outcome import TimedOut
from rota.executors.context import Context
from rota.executors.port import Target

MICROSECONDS = 1_000_000
_monotonic = SystemClock().monotonic


class Stop(Enum):
    """Why a running attempt is asked to stop."""

    CANCEL = "cancel"
    TIMEOUT = "timeout"
    TOTAL_TIMEOUT = "total_timeout"
    PROGRESS_TIMEOUT = "progress_timeout"
    DRAIN = "drain"


def timed_out(limit: Stop, target: Target) -> TimedOut:
    if limit is Stop.PROGRESS_TIMEOUT:
        silence_s = target.rules.progress_timeout_s
        return TimedOut(payload.error("Timeout", f"the attempt told nothing of its progress for {silence_s:g} s"))
    total = limit is Stop.TOTAL_TIMEOUT
    limit_s = target.rules.total_timeout_s if total else target.rules.timeout_s
    what = "all attempts together" if total else "the attempt"
    return TimedOut(payload.error("Timeout", f"{what} took longer than {limit_s:g} s"), total=total)


def silence_left_s(target: Target, context: Context) -> float:
    """How much longer an attempt may tell nothing, when the time that it had for its first word is over."""
    limit_s, told_at = target.rules.progress_timeout_s, context.told_at
    return 0.0 if limit_s is None or told_at is None else told_at + limit_s - _monotonic()


def total_left_s(claim: Claim, target: Target) -> float | None:
    """How much of the time for all attempts together was left when this one was claimed."""
    total_s = target.rules.total_timeout_s
    # The database's clock may have gone back since the first start; that gives nobody more time than there is.
    return None if total_s is None else total_s - max(0, claim.started_at - claim.first_start_at) / MICROSECONDS


def limit(claim: Claim, target: Target, waited_s: float = 0.0) -> tuple[float | None, Stop]:
    """How long this attempt may take, and which of the two timers says so; the wait for a place counts for one."""
    timeout_s, left_s = target.rules.timeout_s, total_left_s(claim, target)
    if left_s is None:
        return timeout_s, Stop.TIMEOUT
    left_s -= waited_s
    if timeout_s is not None and timeout_s <= left_s:
        return timeout_s, Stop.TIMEOUT
    return left_s, Stop.TOTAL_TIMEOUT
