"""Affinity: an execution prefers the worker that last ran one with the same value of an argument, for a bounded time.

That worker has loaded what belongs to the customer, the model or the file already. It is a preference and no more: who
has waited long enough, or whose worker is gone, is anybody's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from rota.domain.instant import MICROSECONDS
from rota.domain.rank import HEAD_START, Policy

MOST_KEY = 200


class Candidate(msgspec.Struct, frozen=True, array_like=True):
    """One that is ready; `value` is that of the argument, as JSON."""

    id: str
    rank: int
    priority: int
    policy: Policy
    value: str | None

    @property
    def due_at(self) -> int:
        return self.rank + (self.priority * HEAD_START if self.policy == Policy.PRIORITY else 0)


def key(argument: str, value: str | None) -> str | None:
    """What the last worker is remembered by; None if there is nothing to remember."""
    if value is None or value == "null":
        return None
    known = value if len(value) <= MOST_KEY else hashlib.sha256(value.encode()).hexdigest()
    return f"{argument}={known}"


def takeable(
    candidates: Iterable[Candidate], argument: str, wait_s: float, holders: Mapping[str, int], worker: int, now: int
) -> list[Candidate]:
    """Those that this worker may take now. `holders` are the live workers that last ran each key."""
    patience = round(wait_s * MICROSECONDS)
    return [
        one
        for one in candidates
        if holders.get(key(argument, one.value) or "", worker) == worker or now - one.due_at >= patience
    ]
