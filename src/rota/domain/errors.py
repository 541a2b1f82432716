"""Every refusal that Rota raises on purpose, in one tree.

    RotaError                       base; has a stable `code`
      UsageError                    the caller asked for something that cannot be right
        ArgumentsError              arguments do not fit the job's signature, or are not JSON
        DefinitionError             a job, queue, schedule or setting is declared wrongly
          WorkflowError             a workflow cannot be built; carries the place
        UnknownJob
        UnknownExecution
        UnknownEvent
        UnknownSchedule
      Conflict                      right in itself, but not now
        KeyConflict                 an idempotency key came back with other arguments
        KeyReused                   the key of an HTTP request came back with another request
        NameTaken                   another thing has this name
        RequestInProgress           a request with the same key is not answered yet
        QuotaExceeded               a namespace has used up what it may have
        NotUnique                   a unique key is held and the action is to reject
        QueueFull                   back-pressure; carries retry_after
        ClockSkew                   this machine's clock is far off the database's
        NotPending                  an execution runs or has ended, so its place in line cannot be changed
        NotEnded                    an execution has not ended, so it cannot be replayed
        TooMany                     more things than one request may change
        NotFinished                 result() reached its timeout
      ExecutionError                the execution itself ended without a result
        ExecutionFailed
        ExecutionCancelled
        ExecutionSkipped
      StoreError                    the database
        StoreUnavailable            could not be reached, or was busy for too long; nothing was committed
          StoreFull                 its disk has no room left
          CommitUnknown             the connection broke during the commit, and its outcome could not be found out
        StoreMismatch               a schema this version cannot serve
        ReadStopped                 a read took too long, or its client has left
      LeaseLost                     this worker may no longer hold what it claimed

Raised by user code to steer its own execution (these are signals, not errors): `RetryIn`, `FailForGood`, `Snooze`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Self


class RotaError(Exception):
    """Base of everything Rota raises on purpose."""

    code = "rota_error"


class UsageError(RotaError):
    code = "usage"


class ArgumentsError(UsageError, ValueError):
    code = "bad_arguments"


class DefinitionError(UsageError, ValueError):
    code = "bad_definition"


class WorkflowError(DefinitionError):
    """A workflow cannot be built: at `expression` in `line` of `file`, or at the JSON pointer `pointer` of its data."""

    code = "bad_workflow"

    def __init__(
        self, message: str, file: str | None = None, line: int | None = None, expression: str = "", pointer: str = ""
    ) -> None:
        super().__init__(message)
        self.file, self.line, self.expression, self.pointer = file, line, expression, pointer

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), (str(self), self.file, self.line, self.expression, self.pointer)


class UnknownJob(UsageError):
    code = "unknown_job"


class UnknownExecution(UsageError):
    code = "unknown_execution"


class UnknownEvent(UsageError):
    code = "unknown_event"


class UnknownSchedule(UsageError):
    code = "unknown_schedule"


class Conflict(RotaError):
    code = "conflict"


class KeyConflict(Conflict):
    code = "key_conflict"


class NotPending(Conflict):
    code = "not_pending"


class NotEnded(Conflict):
    code = "not_ended"


class TooMany(Conflict):
    code = "too_many"


class KeyReused(Conflict):
    code = "key_reused"


class NameTaken(Conflict):
    """Another thing has this name; `holder` is its id, or empty if the caller has no use for it."""

    code = "name_taken"

    def __init__(self, message: str, holder: str = "") -> None:
        super().__init__(message)
        self.holder = holder

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), (str(self), self.holder)


class RequestInProgress(Conflict):
    code = "request_in_progress"


class QuotaExceeded(Conflict):
    """A quota of the namespace, such as `maxJobs`, would be exceeded: by its `limit` and the `use` so far."""

    code = "quota_exceeded"

    def __init__(self, message: str, quota: str, limit: int, use: int) -> None:
        super().__init__(message)
        self.quota, self.limit, self.use = quota, limit, use

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), (str(self), self.quota, self.limit, self.use)


class NotUnique(Conflict):
    """The unique key is held by another execution, named in `holder`."""

    code = "not_unique"

    def __init__(self, message: str, holder: str) -> None:
        super().__init__(message)
        self.holder = holder

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), (str(self), self.holder)


class QueueFull(Conflict):
    """The queue is at its maximum depth; nothing was accepted. Try again after `retry_after`."""

    code = "queue_full"

    def __init__(self, message: str, retry_after: timedelta) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), (str(self), self.retry_after)


class ClockSkew(Conflict):
    code = "clock_skew"


class NotFinished(Conflict, TimeoutError):
    code = "not_finished"


class ExecutionError(RotaError):
    """The execution `id` of `job` ended without a result, for `reason`, after this number of `attempts`.

    `error_type` and `error_message`, such as "ValueError" and "ValueError: no luck", are None without an error.
    """

    code = "execution"

    # Pickle calls it with the message alone, and sets the rest.
    def __init__(
        self,
        message: str,
        *,
        id: str = "",
        job: str = "",
        reason: str = "",
        attempts: int = 0,
        error_type: str | None = None,
        error_message: str | None = None,
    ) -> None:
        super().__init__(message)
        self.id = id
        self.job = job
        self.reason = reason
        self.attempts = attempts
        self.error_type = error_type
        self.error_message = error_message


class ExecutionFailed(ExecutionError):
    code = "execution_failed"


class ExecutionCancelled(ExecutionError):
    code = "execution_cancelled"


class ExecutionSkipped(ExecutionError):
    code = "execution_skipped"


class StoreError(RotaError):
    code = "store"


class StoreUnavailable(StoreError):
    """With `may_pass`, the same call may succeed later by itself; without, an operator is needed."""

    code = "store_unavailable"
    may_pass = False

    def __init__(self, text: str, *, may_pass: bool | None = None) -> None:
        super().__init__(text)
        if may_pass is not None:
            self.may_pass = may_pass


class StoreFull(StoreUnavailable):
    """The disk of the database has no room left."""

    code = "store_full"
    may_pass = True


class ReadStopped(StoreError):
    code = "read_budget"


class CommitUnknown(StoreUnavailable):
    code = "commit_unknown"
    may_pass = True


class StoreMismatch(StoreError):
    code = "store_mismatch"


class LeaseLost(RotaError):
    code = "lease_lost"


class Signal(Exception):
    """Base of the exceptions by which user code decides how its own execution continues."""


class RetryIn(Signal):
    """Try again after `delay` (seconds, text such as "5m", or a timedelta); counts as an attempt."""

    def __init__(self, delay: float | str | timedelta, message: str = "") -> None:
        super().__init__(message or f"asked to be retried in {delay}")
        self.delay = delay

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), (self.delay, str(self))


class FailForGood(Signal):
    """Fail now, without further attempts."""


class Snooze(Signal):
    """Run again after `delay`; does not count as an attempt."""

    def __init__(self, delay: float | str | timedelta, message: str = "") -> None:
        super().__init__(message or f"asked to be woken in {delay}")
        self.delay = delay

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), (self.delay, str(self))
