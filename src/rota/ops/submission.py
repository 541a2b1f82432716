"""A submission: items to accept, and the header that they share."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rota.domain import payload, unique
from rota.domain.errors import ArgumentsError, ClockSkew
from rota.domain.instant import MICROSECONDS
from rota.domain.unique import Unique
from rota.ids import made_at
from rota.ops.place import Origin

MOST_ITEMS = 50_000
"""One submission is one transaction, and on SQLite no other process can write while it lasts."""
MOST_BYTES = 64 * 1024 * 1024
"""The same for the arguments of all items together."""
MOST_CLOCK_SKEW_S = 24 * 3600.0


class Header(Origin, frozen=True, kw_only=True):
    """The values that all items of a submission share."""

    namespace: str
    app: str
    job: str
    queue: str
    priority: int = 0
    delay_s: float = 0.0
    at: int | None = None
    start_by: int | None = None
    start_within_s: float | None = None
    unique: Unique | None = None
    requests: str | None = None
    """Whose request keys its items have: the actor and the route; None if they have none."""

    @property
    def is_keyed(self) -> bool:
        return self.key is not None or self.unique is not None or self.requests is not None

    @property
    def is_plain(self) -> bool:
        """Whether its items may start now and have no start deadline, tags, callback or keys."""
        starts_now = not self.delay_s and self.at is None and self.start_by is None and self.start_within_s is None
        return starts_now and not self.is_keyed and self.tags is None and self.callback is None

    def run_at(self, now: int) -> int:
        if self.at is not None:
            return max(self.at, now)
        return now + round(self.delay_s * MICROSECONDS)

    def deadline(self, run_at: int) -> int | None:
        return unique.start_deadline(run_at, self.start_by, self.start_within_s)


class Item(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One execution to accept: its id and its arguments as JSON text.

    `digest` is the hash of the arguments, which a submission with keys needs. Callers compute it beforehand: hashing
    takes longer than inserting, and inside the transaction other processes would wait for it.
    """

    id: str
    arguments: str
    digest: str = ""
    request: str = ""
    """Its Idempotency-Key, and the number of the item if the request has several: `K`, or `K /7`."""
    request_digest: str = ""
    """The hash of the request. A repeated request with the same Idempotency-Key must have the same hash."""

    def hashed(self) -> str:
        return self.digest or payload.digest(self.arguments)


class Accepted(msgspec.Struct, frozen=True, gc=False, eq=False):
    """The execution that answers for an item, and whether this submission created it. Only these two are compared."""

    id: str
    created: bool
    version: int = 0
    """The version of the job, if it was placed by this call."""
    created_at: int = 0
    is_replayed: bool = False
    """Whether a request with the same Idempotency-Key has had this answer before."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Accepted) and (self.id, self.created) == (other.id, other.created)

    def __hash__(self) -> int:
        return hash(self.id)


def check_count(count: int) -> None:
    """Refuses a submission that is too large for one transaction."""
    if count > MOST_ITEMS:
        raise ArgumentsError(
            f"one call enqueues at most {MOST_ITEMS:,} executions, because it is one transaction: nothing was "
            f"accepted. Split it into calls of {MOST_ITEMS:,} or fewer"
        )


def check_bytes(count: int) -> None:
    if count > MOST_BYTES:
        raise ArgumentsError(
            f"one call enqueues at most {MOST_BYTES:,} bytes of arguments, not {count:,}: nothing was accepted. Split "
            "it into smaller calls, or keep large data elsewhere and pass a reference"
        )


def check_ids(now: int, ids: Iterable[str]) -> None:
    """Refuses ids that a wrong clock made: an id contains its time, and history is partitioned and deleted by it."""
    for id in ids:
        off_s = (made_at(id) - now) / MICROSECONDS
        if abs(off_s) > MOST_CLOCK_SKEW_S:
            raise ClockSkew(
                f"this machine's clock is {abs(off_s) / 3600:.0f} hours {'ahead of' if off_s > 0 else 'behind'} the "
                "database's: nothing was accepted. Set it right (NTP), then try again"
            )
