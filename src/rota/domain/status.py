"""The states of an execution and the moves allowed between them: one table, in one file."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """The state of an execution."""

    SCHEDULED = "scheduled"
    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    RETRYING = "retrying"
    SUCCESS = "success"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


TERMINAL = frozenset({Status.SUCCESS, Status.FAILED, Status.CANCELLED, Status.SKIPPED})
PENDING = frozenset({Status.SCHEDULED, Status.WAITING, Status.QUEUED, Status.RETRYING})

_S = Status
ALLOWED: dict[Status | None, frozenset[Status]] = {
    # None is the state before the enqueue.
    None: frozenset({_S.SCHEDULED, _S.WAITING, _S.QUEUED}),
    _S.SCHEDULED: frozenset({_S.QUEUED, _S.CANCELLED, _S.SKIPPED, _S.SCHEDULED}),
    # A debounce moves a waiting or queued execution to scheduled, or to retrying if an attempt has been counted.
    # A step that waits ends without a start: a sleep that is over, an approval that is answered.
    _S.WAITING: frozenset({_S.QUEUED, _S.SCHEDULED, _S.RETRYING, _S.SUCCESS, _S.FAILED, _S.CANCELLED, _S.SKIPPED}),
    _S.QUEUED: frozenset({_S.RUNNING, _S.WAITING, _S.SCHEDULED, _S.RETRYING, _S.CANCELLED, _S.SKIPPED}),
    _S.RUNNING: frozenset(
        # Given back or rescued goes to queued; snoozed goes to scheduled, and so does a job without a process.
        {_S.QUEUED, _S.SCHEDULED, _S.RETRYING, _S.SUCCESS, _S.FAILED, _S.CANCELLED, _S.SKIPPED}
    ),
    _S.RETRYING: frozenset({_S.QUEUED, _S.CANCELLED, _S.RETRYING}),
    _S.SUCCESS: frozenset(),
    _S.FAILED: frozenset(),
    _S.CANCELLED: frozenset(),
    _S.SKIPPED: frozenset(),
}


class Reason(StrEnum):
    """Why a move happened; stable codes, shown to users and kept with every attempt."""

    COMPLETED = "completed"
    ERROR = "error"
    TIMEOUT = "timeout"
    TOTAL_TIMEOUT = "total_timeout"
    RETRIES_EXHAUSTED = "retries_exhausted"
    PERMANENT_ERROR = "permanent_error"
    BAD_ARGUMENTS = "bad_arguments"
    BAD_RESULT = "bad_result"
    CRASHED = "crashed"
    CRASH_LOOP = "crash_loop"
    CANCELLED = "cancelled"
    REPLACED = "replaced"
    START_DEADLINE = "start_deadline"
    SNOOZED = "snoozed"
    DRAINED = "drained"
    NOT_BEGUN = "not_begun"
    NOT_HELD = "not_held"
    LEASE_LOST = "lease_lost"
    OUT_OF_MEMORY = "out_of_memory"
    SUSPECTED = "suspected"
    STEP_FAILED = "step_failed"
    RUN_TIMEOUT = "run_timeout"
    TOO_DEEP = "too_deep"
    INPUTS_TOO_LARGE = "inputs_too_large"
    WAIT_TIMEOUT = "wait_timeout"
    REJECTED = "rejected"


def may_move(source: Status | None, target: Status) -> bool:
    return target in ALLOWED[source]
