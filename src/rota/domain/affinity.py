"""Affinity: an execution prefers the worker that last ran one with the same value of an argument, for a bounded time.

That worker has already loaded the data of the customer, the model or the file. It is only a preference: any worker may
take an execution that has waited long enough, or whose preferred worker is gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from rota.domain.instant import MICROSECONDS
from rota.domain.rank import HEAD_START, Policy

MOST_KEY = 200


class Candidate(msgspec.Struct, frozen=True, array_like=True):
    """A ready execution; `value` is the value of the argument, as JSON."""

    id: str
    rank: int
    priority: int
    policy: Policy
    value: str | None

    @property
    def due_at(self) -> int:
        return self.rank + (self.priority * HEAD_START if self.policy == Policy.PRIORITY else 0)


def key(argument: str, value: str | None) -> str | None:
    """The key under which the last worker is kept; None if the argument has no value."""
    if value is None or value == "null":
        return None
    known = value if len(value) <= MOST_KEY else hashlib.sha256(value.encode()).hexdigest()
    return f"{argument}={known}"


def takeable(
    candidates: Iterable[Candidate], argument: str, wait_s: float, holders: Mapping[str, int], worker: int, now: int
) -> list[Candidate]:
    """The candidates that this worker may take now. `holders` are the live workers that last ran each key."""
    patience = round(wait_s * MICROSECONDS)
    return [
        one
        for one in candidates
        if holders.get(key(argument, one.value) or "", worker) == worker or now - one.due_at >= patience
    ]
