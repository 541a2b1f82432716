"""The states of an execution, and the reasons of its moves."""

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
    UNDO_FAILED = "undo_failed"
    RUN_TIMEOUT = "run_timeout"
    TOO_DEEP = "too_deep"
    INPUTS_TOO_LARGE = "inputs_too_large"
    WAIT_TIMEOUT = "wait_timeout"
    REJECTED = "rejected"
