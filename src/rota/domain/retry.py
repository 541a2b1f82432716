"""Retry policies: how long to wait after the n-th failed attempt, and when to give up.

`attempts` is the total number of tries, the first included. Every policy is data, except `Custom`, whose callable
is asked in the worker; its answer travels with the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rota.domain.duration import Duration, seconds
from rota.domain.errors import DefinitionError

MOST_ATTEMPTS = 1000
_LENGTHS = ("delay", "step", "base", "cap")
Errors = tuple[type[BaseException], ...] | type[BaseException]


def _classes(given: Any, name: str) -> tuple[type[BaseException], ...]:
    """A single class or several, as a tuple."""
    kinds = tuple(given) if isinstance(given, tuple | list) else (given,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise DefinitionError(f"{name}= takes exception classes, such as (ValueError, OSError), not {kind!r}")
    return kinds


class _Policy(msgspec.Struct, frozen=True, kw_only=True):
    attempts: int = 5
    only: Errors = ()
    never: Errors = ()

    def __post_init__(self) -> None:
        if not isinstance(self.attempts, int) or not 1 <= self.attempts <= MOST_ATTEMPTS:
            raise DefinitionError(f"attempts must be a number between 1 and {MOST_ATTEMPTS}, not {self.attempts!r}")
        for name in ("only", "never"):
            msgspec.structs.force_setattr(self, name, _classes(getattr(self, name), name))
        for name in (field for field in self.__struct_fields__ if field in _LENGTHS):
            msgspec.structs.force_setattr(self, name, seconds(getattr(self, name), f"retry {name}"))
        if isinstance(self, Exponential) and not 1 <= self.factor <= 100:
            raise DefinitionError(f"retry factor must be between 1 and 100, not {self.factor}")

    def retries(self, error: BaseException) -> bool:
        """Whether this kind of error may be tried again at all."""
        if isinstance(error, self.never):
            return False
        return not self.only or isinstance(error, self.only)

    def describe(self) -> dict[str, Any]:
        """The policy as plain data, for the job's definition."""
        names = {
            name: [f"{kind.__module__}.{kind.__qualname__}" for kind in _classes(getattr(self, name), name)]
            for name in ("only", "never")
        }
        fields = {f: getattr(self, f) for f in self.__struct_fields__ if f not in ("only", "never", "delay_for")}
        return {"policy": type(self).__name__, **fields, **names}


class Fixed(_Policy, frozen=True, kw_only=True):
    """The same delay every time."""

    delay: Duration = 10.0


class Linear(_Policy, frozen=True, kw_only=True):
    """`step`, then twice `step`, then three times, at most `cap`."""

    step: Duration = 10.0
    cap: Duration = 600.0


class Exponential(_Policy, frozen=True, kw_only=True):
    """Doubling from `base` up to `cap`, with full jitter: a random point between zero and the bound."""

    base: Duration = 2.0
    factor: float = 2.0
    cap: Duration = 600.0
    jitter: bool = True


class Custom(_Policy, frozen=True, kw_only=True):
    """Ask `delay_for(attempt, error)`: a duration, or None to give up."""

    delay_for: Callable[[int, BaseException], Duration | None]


Policy = Fixed | Linear | Exponential | Custom
NO_RETRY = Fixed(attempts=1, delay=0.0)
DEFAULT = Exponential()


def policy(value: Policy | int | bool | Callable[[int, BaseException], Duration | None] | None) -> Policy:
    """The policy for a job's `retry=`, which is a policy, a number of attempts, a callable, True, False or None."""
    if isinstance(value, Fixed | Linear | Exponential | Custom):
        return value
    if value is None or value is False:
        return NO_RETRY
    if value is True:
        return DEFAULT
    if isinstance(value, int):
        return Exponential(attempts=value)
    if callable(value):
        return Custom(delay_for=value, attempts=MOST_ATTEMPTS)
    raise DefinitionError(
        f"retry must be a policy such as Exponential(attempts=5), a number of attempts, a callable or None, "
        f"not {value!r}"
    )


def described(data: Mapping[str, Any]) -> Policy:
    """The policy that `describe` gave, without its exception classes.

    The callable of `Custom` exists only in the worker, which reports how long to wait: only the attempts are kept.
    """
    kind = {"Linear": Linear, "Exponential": Exponential}.get(data["policy"], Fixed)
    fields = set(kind.__struct_fields__) - {"only", "never"}
    return kind(**{name: value for name, value in data.items() if name in fields})  # type: ignore[no-any-return]


def bound_s(policy: Policy, attempt: int) -> float:
    """The longest wait after the `attempt`-th failure (1 = the first)."""
    match policy:
        case Fixed(delay=delay):
            return seconds(delay)
        case Linear(step=step, cap=cap):
            return min(seconds(cap), seconds(step) * attempt)
        case Exponential(base=base, factor=factor, cap=cap):
            # The exponent is bounded so that the power cannot overflow before the cap applies.
            return min(seconds(cap), seconds(base) * factor ** min(attempt - 1, 64))
        case Custom():
            return 0.0


def delay_s(policy: Policy, attempt: int, jitter: float) -> float:
    """How long to wait after the `attempt`-th failure; `jitter` is a random number in [0, 1)."""
    bound = bound_s(policy, attempt)
    if isinstance(policy, Exponential) and policy.jitter:
        return bound * jitter
    return bound
