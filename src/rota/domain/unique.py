"""Keys that keep work single: idempotency keys and unique keys.

An idempotency key names one request for ever: the same key gives the same execution back, and the same key with
other arguments is an error. A unique key keeps out a second execution only while the first is within a scope, and
says what happens to the newcomer.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from rota.domain.duration import Duration, positive_seconds
from rota.domain.errors import DefinitionError
from rota.domain.status import PENDING, Status

LONGEST_KEY = 512


class Scope(StrEnum):
    """How long a unique key is held."""

    QUEUED = "queued"
    ACTIVE = "active"
    WINDOW = "window"
    FOREVER = "forever"


class OnConflict(StrEnum):
    """What happens to an enqueue whose unique key is held."""

    RETURN = "return"
    REJECT = "reject"
    REPLACE = "replace"
    DEBOUNCE = "debounce"


class Unique(msgspec.Struct, frozen=True, kw_only=True):
    """At most one execution of a job per key.

    `key` defaults to the arguments themselves. `scope` is "queued" (until it starts), "active" (until it ends; the
    default), "forever", or a duration such as "10m", counted from the enqueue. `on_conflict` is "return" (the
    existing execution; the default), "reject", "replace" (the old one ends as cancelled) or "debounce" (the existing
    one's start is pushed back).
    """

    key: str | None = None
    scope: str | Duration = "active"
    on_conflict: str = "return"

    def __post_init__(self) -> None:
        if self.key is not None:
            check_key(self.key, "unique key")
        if self.on_conflict not in OnConflict.__members__.values():
            raise DefinitionError(f"on_conflict must be one of {_names(OnConflict)}, not {self.on_conflict!r}")
        if self.scope in (Scope.QUEUED, Scope.ACTIVE, Scope.FOREVER):
            return
        positive_seconds(self.scope, "unique scope (queued, active, forever, or a duration)")

    def kind(self) -> Scope:
        named = isinstance(self.scope, str) and self.scope in (Scope.QUEUED, Scope.ACTIVE, Scope.FOREVER)
        return Scope(str(self.scope)) if named else Scope.WINDOW

    def window_s(self) -> float:
        return positive_seconds(self.scope, "unique scope") if self.kind() is Scope.WINDOW else 0.0


def holds(scope: Scope, window_s: float, status: Status | None, taken_at: int, now: int) -> bool:
    """Whether the holder of a key, now in `status`, still keeps others out."""
    match scope:
        case Scope.QUEUED:
            return status in PENDING
        case Scope.ACTIVE:
            return status in PENDING or status is Status.RUNNING
        case Scope.WINDOW:
            return now < taken_at + round(window_s * 1_000_000)
        case Scope.FOREVER:
            return True


def check_key(key: str, what: str) -> str:
    if not isinstance(key, str) or not key or len(key) > LONGEST_KEY or not key.isprintable():
        raise DefinitionError(f"{what} must be 1 to {LONGEST_KEY} printable characters, not {str(key)[:64]!r}")
    return key


def _names(kind: type[StrEnum]) -> str:
    return ", ".join(member.value for member in kind)
