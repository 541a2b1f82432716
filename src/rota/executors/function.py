"""Running a Python function: one value flows through decode, call and encode, and ends as an Outcome."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

from rota.domain import payload, retry
from rota.domain.duration import seconds
from rota.domain.errors import ArgumentsError, FailForGood, RetryIn, RotaError, Snooze
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Error, Failed, Outcome, Snoozed, Succeeded
from rota.domain.status import Reason
from rota.executors.context import Completions, Context, ResultRefused
from rota.executors.signature import Signature

_NOTHING = Succeeded("null")


class FunctionTarget:
    """A job's function, ready to be called with stored arguments."""

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        rules: Rules,
        *,
        is_async: bool,
        most_result_bytes: int,
        completions: Completions | None = None,
    ) -> None:
        self.function = function
        self.rules = rules
        self.is_async = is_async
        self.completions = completions
        self._signature = signature
        self._context_parameter = signature.context_parameter
        self._most_result_bytes = most_result_bytes

    def prepare(self, arguments: str, context: Context) -> tuple[list[Any], dict[str, Any]] | Failed:
        """The call's arguments, or the failure that arguments which no longer fit end in."""
        try:
            args, kwargs = self._signature.call_with(arguments)
        except ArgumentsError as error:
            return Failed(payload.error("ArgumentsError", str(error)), Reason.BAD_ARGUMENTS, permanent=True)
        except Exception as error:
            # An annotation's own code ran (a dataclass's __post_init__, say) and did not like the value.
            return Failed(described(error), Reason.BAD_ARGUMENTS, permanent=True)
        if self._context_parameter is not None:
            kwargs[self._context_parameter] = context
        return args, kwargs

    def returned(self, value: Any) -> Outcome:
        """The outcome of a function that returned."""
        if value is None:
            return _NOTHING
        try:
            return Succeeded(payload.encode(value, "the result", self._most_result_bytes))
        except RotaError as error:
            return Failed(payload.error("ResultError", str(error)), Reason.BAD_RESULT, permanent=True)
        except BaseException as error:
            # The value's own code ran (a dataclass's property, say): whatever it raises must not lose the outcome.
            return Failed(described(error), Reason.BAD_RESULT, permanent=True)

    def raised(self, error: BaseException, attempt: int) -> Outcome:
        """The outcome of a function that raised in its `attempt`-th try."""
        try:
            return self._raised(error, attempt)
        except BaseException as second:
            # A retry callable or an exception's own __str__ may fail as well.
            return Failed(described(second), permanent=True)

    def _raised(self, error: BaseException, attempt: int) -> Outcome:
        match error:
            case Snooze(delay=delay):
                return Snoozed(seconds(delay, "Snooze"))
            case RetryIn(delay=delay):
                return Failed(described(error), retry_in_s=seconds(delay, "RetryIn"))
            case ResultRefused():
                return Failed(payload.error("ResultError", str(error)), Reason.BAD_RESULT, permanent=True)
            case FailForGood():
                return Failed(described(error), permanent=True)
            case _:
                return self._by_policy(error, attempt)

    def _by_policy(self, error: BaseException, attempt: int) -> Outcome:
        policy = self.rules.retry
        if not policy.retries(error):
            return Failed(described(error), permanent=True)
        if isinstance(policy, retry.Custom):
            delay = policy.delay_for(attempt, error)
            if delay is None:
                return Failed(described(error), permanent=True)
            return Failed(described(error), retry_in_s=seconds(delay, "the retry callable's answer"))
        return Failed(described(error))


def described(error: BaseException) -> Error:
    """An exception as an `Error` that can always be stored."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        message = str(error)
    except BaseException:
        message = "(its text could not be made)"
    try:
        trace = "".join(traceback.format_exception(kind, error, _users_part(error), limit=-50))
    except BaseException:
        trace = ""
    return payload.error(name, message, trace)


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
