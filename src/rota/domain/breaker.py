"""A circuit breaker: after several failures in a row of a service, the jobs that rely on it do not start.

After a wait one execution may start as a probe. If it succeeds, the breaker closes; if not, the next wait is twice as
long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from rota.domain import names
from rota.domain.duration import Duration, positive_seconds
from rota.domain.errors import DefinitionError
from rota.domain.instant import MICROSECONDS
from rota.domain.outcome import Failed, Outcome, Succeeded, TimedOut
from rota.domain.status import Reason

DEFAULT_FAILURES = 5
DEFAULT_WAIT = "30s"
MOST_FAILURES = 10_000
MOST_WAIT_S = 86_400.0
UNTIL_CLOSED = 253_370_764_800 * MICROSECONDS
"""The next try of a breaker that an operator has opened: the year 9999, so it stays open until it is closed."""
DOUBLINGS = 16
"""The wait between probes grows to at most this many times the first wait."""


class Breaker(msgspec.Struct, frozen=True, array_like=True):
    """Opens after `failures` in a row, for `wait_s` at first."""

    name: str
    failures: int = DEFAULT_FAILURES
    wait_s: float = 30.0


class Circuit(msgspec.Struct, frozen=True, array_like=True):
    """The state of one breaker; it is closed if `opened_at` is None."""

    name: str
    failures: int = 0
    opened_at: int | None = None
    retry_at: int | None = None
    wait: int = 0
    probe_until: int | None = None
    """While a probe runs: when another one may start in its place."""

    @property
    def is_troubled(self) -> bool:
        return self.failures > 0 or self.opened_at is not None

    def is_open(self, now: int) -> bool:
        """Whether no execution may start, not even a probe."""
        return self.opened_at is not None and (
            now < (self.retry_at or 0) or (self.probe_until is not None and now < self.probe_until)
        )

    def tries(self, now: int) -> bool:
        """Whether the next execution to start is a probe."""
        return self.opened_at is not None and not self.is_open(now)


def breaker(name: str, failures: int, wait: Duration) -> Breaker:
    """The checked breaker that an app declares."""
    names.check(name, "a breaker's name")
    if isinstance(failures, bool) or not isinstance(failures, int) or not 0 < failures <= MOST_FAILURES:
        raise DefinitionError(f"breaker {name!r}: failures must be a number from 1 to {MOST_FAILURES}")
    wait_s = positive_seconds(wait, "wait")
    if wait_s > MOST_WAIT_S:
        raise DefinitionError(f"breaker {name!r}: wait must be a day at most")
    return Breaker(name, failures, wait_s)


def after(circuit: Circuit, policy: Breaker, went_well: bool | None, now: int) -> Circuit:
    """The state after one more attempt. If the attempt says nothing about the service, the next one is a probe.

    Attempts that started before the breaker opened may end while it is open: they do not count.
    """
    if circuit.opened_at is not None and now < (circuit.retry_at or 0):
        return circuit
    if went_well is None:
        return replace(circuit, probe_until=None)
    if went_well:
        return Circuit(circuit.name)
    failures = circuit.failures + 1
    if circuit.opened_at is None:
        if failures < policy.failures:
            return replace(circuit, failures=failures)
        wait = round(policy.wait_s * MICROSECONDS)
        return Circuit(circuit.name, failures, now, now + wait, wait)
    wait = min(2 * circuit.wait, DOUBLINGS * round(policy.wait_s * MICROSECONDS))
    return Circuit(circuit.name, failures, circuit.opened_at, now + wait, wait)


def shown(outcome: Outcome) -> bool | None:
    """Whether an attempt has shown that the service behind a breaker works; None if its outcome does not say."""
    match outcome:
        case Succeeded():
            return True
        case TimedOut():
            return False
        case Failed(reason=Reason.ERROR, permanent=permanent):
            return permanent  # The service answered, although with an error that no retry mends.
        case _:
            return None


def gate(wanted: Sequence[str], circuits: Mapping[str, Circuit], now: int) -> list[str] | None:
    """The breakers for which the next execution would be the probe; None if one of them is open."""
    known = [circuits[name] for name in wanted if name in circuits]
    if any(circuit.is_open(now) for circuit in known):
        return None
    return [circuit.name for circuit in known if circuit.tries(now)]
