"""Keys that keep work single: idempotency keys and unique keys.

An idempotency key names one request as long as the history of its execution is kept: the same key returns the same
execution, and the same key with other arguments is an error. The key of an HTTP request (`Idempotency-Key`) is kept in
the same way, with a mark of the whole request in place of the hash of the arguments. For a unique key, a rule decides
what happens to a second execution with the key while the first one is within a scope.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

import msgspec

from rota.domain.duration import Duration, positive_seconds
from rota.domain.errors import DefinitionError, NotUnique
from rota.domain.instant import MICROSECONDS
from rota.domain.status import PENDING, TERMINAL, Status

LONGEST_KEY = 512


class Scope(StrEnum):
    """How long a unique key is held."""

    QUEUED = "queued"
    ACTIVE = "active"
    WINDOW = "window"
    FOREVER = "forever"


class OnConflict(StrEnum):
    """The action of an enqueue whose unique key is held."""

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
            raise DefinitionError(f"on_conflict must be one of {', '.join(OnConflict)}, not {self.on_conflict!r}")
        self.window_s()

    def kind(self) -> Scope:
        is_named = self.scope in (Scope.QUEUED, Scope.ACTIVE, Scope.FOREVER)
        return Scope(str(self.scope)) if is_named else Scope.WINDOW

    def window_s(self) -> float:
        if self.kind() is not Scope.WINDOW:
            return 0.0
        return positive_seconds(self.scope, "unique scope (queued, active, forever, or a duration)")


def holds(scope: Scope, window_s: float, status: Status | None, taken_at: int, now: int) -> bool:
    """Whether the holder of a key, now in `status`, still keeps others out."""
    match scope:
        case Scope.QUEUED:
            return status in PENDING
        case Scope.ACTIVE:
            return status in PENDING or status is Status.RUNNING
        case Scope.WINDOW:
            return now < taken_at + round(window_s * MICROSECONDS)
        case Scope.FOREVER:
            return True


class Newcomer(msgspec.Struct, frozen=True, gc=False):
    """An execution that is to be created, if its unique key lets it."""

    id: str
    key: str
    digest: str


class Holder(msgspec.Struct, frozen=True, gc=False):
    """The execution that a unique key names; the status is None if its history was pruned."""

    id: str
    status: Status | None
    taken_at: int


class Resolution(msgspec.Struct):
    """The decisions about a batch of newcomers."""

    answers: list[str]
    """For each newcomer the execution that answers for it: itself, or the holder of its key."""
    created: list[int]
    """The indices of the newcomers to insert. A newcomer that answers for itself and is not here exists already."""
    replaced: list[str]
    """Executions to end because a newcomer takes their key, newcomers of the same batch included."""
    keys: dict[str, Newcomer]
    """The new holder of each key that changes hands."""


def conflicting(wanted: Unique, newcomers: Sequence[Newcomer], holders: Mapping[str, Holder], now: int) -> list[Holder]:
    """The holders that keep a newcomer out, each once. A newcomer that already holds its key is a repeated commit."""
    scope, window_s = wanted.kind(), wanted.window_s()
    found = {
        holder.id: holder
        for one in newcomers
        if (holder := holders.get(one.key)) is not None
        and holder.id != one.id
        and holds(scope, window_s, holder.status, holder.taken_at, now)
    }
    return list(found.values())


def resolve(
    wanted: Unique,
    newcomers: Sequence[Newcomer],
    holders: Mapping[str, Holder],
    moved: Collection[str],
    now: int,
    *,
    job: str,
    status: Status,
) -> Resolution:
    """Decides for each newcomer in turn. A newcomer that is created holds its key for those after it, in `status`.

    `moved` are the holders whose start a debounce has pushed back. Newcomers of one batch start at the same time, so
    that a newcomer that debounces an earlier one of its batch has nothing to move.
    """
    scope, window_s, action = wanted.kind(), wanted.window_s(), OnConflict(wanted.on_conflict)
    resolved = Resolution([], [], [], {})
    for place, one in enumerate(newcomers):
        earlier = resolved.keys.get(one.key)
        holder = holders.get(one.key) if earlier is None else Holder(earlier.id, status, now)
        if holder is not None and holder.id == one.id:
            resolved.answers.append(one.id)
            continue
        if holder is not None and holds(scope, window_s, holder.status, holder.taken_at, now):
            if action is OnConflict.REJECT:
                raise NotUnique(
                    f"job {job!r} already has execution {holder.id} ({holder.status or 'ended'}) for the unique key "
                    f"{one.key!r}",
                    holder.id,
                )
            is_moved = earlier is not None or holder.id in moved
            if action is OnConflict.RETURN or (action is OnConflict.DEBOUNCE and is_moved):
                resolved.answers.append(holder.id)
                continue
            if action is OnConflict.REPLACE and holder.status is not None and holder.status not in TERMINAL:
                resolved.replaced.append(holder.id)
        resolved.answers.append(one.id)
        resolved.created.append(place)
        resolved.keys[one.key] = one
    return resolved


def pushed_deadline(deadline: int | None, start: int, start_by: int | None, start_within_s: float | None) -> int | None:
    """The start deadline of an execution whose start a debounce moves to `start`.

    It becomes the newcomer's deadline, but never an earlier one than before. No deadline counts as the latest.
    """
    wanted = start_deadline(start, start_by, start_within_s)
    return None if deadline is None or wanted is None else max(deadline, wanted)


def start_deadline(start: int, start_by: int | None, start_within_s: float | None) -> int | None:
    if start_by is not None or start_within_s is None:
        return start_by
    return start + round(start_within_s * MICROSECONDS)


_EXISTED = "existed "


def request_mark(digest: str, *, created: bool) -> str:
    """The text stored with the key of a request: its digest, and whether it created the execution that answered it."""
    return digest if created else f"{_EXISTED}{digest}"


def was_created(mark: str, digest: str) -> bool | None:
    """Whether the request with this mark created an execution; None if it was another request."""
    return mark == digest if mark.removeprefix(_EXISTED) == digest else None


def check_key(key: str, what: str) -> str:
    if not isinstance(key, str) or not key or len(key) > LONGEST_KEY or not key.isprintable():
        raise DefinitionError(f"{what} must be 1 to {LONGEST_KEY} printable characters, not {str(key)[:64]!r}")
    return key
