"""Running a Python function: one value flows through decode, call and encode, and ends as an Outcome.

An `async def` runs on the event loop, a plain `def` in a thread of the worker; in tests, without threads, where it is
called.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import traceback
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any

from rota.domain import errors, overrides, payload, retry
from rota.domain.claim import Claim
from rota.domain.duration import seconds
from rota.domain.errors import ArgumentsError, DefinitionError, FailForGood, RetryIn, RotaError, Snooze
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Error, Excerpt, Failed, Outcome, Snoozed, Succeeded
from rota.domain.status import Reason
from rota.executors import capture
from rota.executors.attempt_state import AttemptState, Completions
from rota.executors.context import Context, ResultRefused
from rota.executors.excerpt import excerpts
from rota.executors.port import Executor
from rota.executors.process.start_backoff import not_started
from rota.executors.signature import Signature

log = logging.getLogger("rota.engine")

_NOTHING = Succeeded("null")
NOT_COMMITTED = Failed(
    payload.error("NotCommitted", "the job returned, but the transaction in which it completed was not committed")
)


class FunctionExecutor(Executor):
    """A job's function, called in the worker's process."""

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        rules: Rules,
        max_result_bytes: int,
        completions: Completions | None = None,
    ) -> None:
        self.function = function
        self.rules = rules
        self.is_async = inspect.iscoroutinefunction(function)
        self.is_in_thread = not self.is_async
        self.completions = completions
        self._signature = signature
        self._context_parameter = signature.context_parameter
        self._max_result_bytes = max_result_bytes

    async def run(self, claim: Claim, attempt: AttemptState) -> Outcome:
        original = attempt.original
        capture.current.set(attempt)
        prepared = self.prepare(claim.arguments, attempt)
        if isinstance(prepared, Failed):
            return prepared
        if self.rules.slice_s is not None:
            attempt.begin_slice(self.rules.slice_s)
        outcome: Outcome | None
        if not self.is_async:
            call = partial(self._called, claim, attempt, *prepared)
            try:
                outcome = call() if attempt.threads is None else await attempt.threads.run(call)
            except RuntimeError as error:  # The system has no thread for it.
                return not_started(claim, described(error))
        else:
            args, kwargs = prepared
            try:
                value = await self.function(*args, **kwargs)
            except BaseException as error:
                original.end_copy(error)
                outcome = self._failed(error, claim, attempt)
            else:
                outcome = self._returned(value, attempt)
        original.end_copy()
        if outcome is None:
            raise asyncio.CancelledError
        return outcome

    def _called(self, claim: Claim, attempt: AttemptState, args: list[Any], kwargs: dict[str, Any]) -> Outcome | None:
        try:
            value = self.function(*args, **kwargs)
        except BaseException as error:
            attempt.original.end_copy(error)
            return self._failed(error, claim, attempt)
        return self._returned(value, attempt)

    def _failed(self, error: BaseException, claim: Claim, attempt: AttemptState) -> Outcome | None:
        """None if the attempt was asked to stop: then the exception does not matter."""
        if attempt.is_stopping:
            return None
        if attempt.threads is None and _stops_caller(error):
            raise error
        if isinstance(error, KeyboardInterrupt | SystemExit):
            log.warning("job %s raised %s; recorded as a failure", claim.job, type(error).__name__)
        return self.raised(error, claim)

    def _returned(self, value: Any, attempt: AttemptState) -> Outcome | None:
        """None if the function saw that it should stop; one that did not look has finished its work."""
        if attempt.is_stopping and attempt.saw_stop:
            return None
        # If the job's own transaction was committed, this report comes too late and changes nothing.
        return NOT_COMMITTED if attempt.written is not None else self.returned(value)

    def prepare(self, arguments: str, attempt: AttemptState) -> tuple[list[Any], dict[str, Any]] | Failed:
        """The arguments of the call; or the failure, if they no longer fit the signature."""
        try:
            args, kwargs = self._signature.call_with(arguments)
        except ArgumentsError as error:
            return Failed(payload.error("ArgumentsError", str(error)), Reason.BAD_ARGUMENTS, permanent=True)
        except Exception as error:
            # An annotation's own code ran (a dataclass's __post_init__, say) and did not like the value.
            return Failed(described(error), Reason.BAD_ARGUMENTS, permanent=True)
        if self._context_parameter is not None:
            kwargs[self._context_parameter] = Context(attempt)
        return args, kwargs

    def returned(self, value: Any) -> Outcome:
        """The outcome of a function that returned."""
        if value is None:
            return _NOTHING
        try:
            return Succeeded(payload.encode(value, "the result", self._max_result_bytes))
        except RotaError as error:
            return Failed(payload.error("ResultError", str(error)), Reason.BAD_RESULT, permanent=True)
        except BaseException as error:
            # The value's own code ran (a dataclass's property, say): whatever it raises must not lose the outcome.
            return Failed(described(error), Reason.BAD_RESULT, permanent=True)

    def raised(self, error: BaseException, claim: Claim) -> Outcome:
        """The outcome of an attempt whose function raised."""
        try:
            return self._raised(error, claim)
        except BaseException as second:
            # A retry callable or an exception's own __str__ may fail as well.
            return Failed(described(second), permanent=True)

    def _raised(self, error: BaseException, claim: Claim) -> Outcome:
        match error:
            case Snooze(delay=delay):
                return Snoozed(seconds(delay, "Snooze"))
            case RetryIn(delay=delay):
                return Failed(described(error), retry_in_s=seconds(delay, "RetryIn"))
            case ResultRefused():
                return Failed(payload.error("ResultError", str(error)), Reason.BAD_RESULT, permanent=True)
            case FailForGood() | DefinitionError():  # Another attempt would fail in the same way.
                return Failed(described(error), permanent=True)
            case _:
                return self._by_policy(error, claim)

    def _by_policy(self, error: BaseException, claim: Claim) -> Outcome:
        policy = overrides.applied(self.rules, claim.overrides).retry
        if not policy.retries(error):
            return Failed(described(error), permanent=True)
        if isinstance(policy, retry.Custom):
            delay = policy.delay_for(claim.attempts + 1, error)
            if delay is None:
                return Failed(described(error), permanent=True)
            return Failed(described(error), retry_in_s=seconds(delay, "the retry callable's answer"))
        return Failed(described(error))


def _stops_caller(error: BaseException) -> bool:
    """Whether a direct call, as in a test, must raise this error: a cancelled task, an interrupt, a failed test."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and bool(task.cancelling())
    return not isinstance(error, Exception | SystemExit)


def described(error: BaseException) -> Error:
    """An exception as an `Error` that can always be stored."""
    kind = type(error)
    # Users import Rota's exceptions from `rota`, so the name of the module that defines them is left out.
    is_plain = kind.__module__ in ("builtins", errors.__name__)
    name = kind.__qualname__ if is_plain else f"{kind.__module__}.{kind.__qualname__}"
    try:
        message = str(error)
    except BaseException:
        message = "(its text could not be made)"
    trace, source = "", list[Excerpt]()
    with contextlib.suppress(BaseException):
        found = traceback.TracebackException(kind, error, _users_part(error), limit=-50)
        trace = "".join(found.format())
        source = excerpts(found)
    return payload.error(name, message, trace, source)


def _users_part(error: BaseException) -> TracebackType | None:
    """The traceback from the first frame that is not Rota's own: that is where the user's code begins."""
    trace = error.__traceback__
    while (
        trace is not None
        and trace.tb_next is not None
        and trace.tb_frame.f_globals.get("__name__", "").startswith("rota.")
    ):
        trace = trace.tb_next
    return trace
