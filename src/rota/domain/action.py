"""Actions on many things at once: which there are, and how many items a chunk may have."""

from __future__ import annotations

import math
from enum import StrEnum

from rota.domain.instant import MICROSECONDS

CHUNK = 500
MOST_IDS = 1000
MOST_ERRORS = 100
VERBS: dict[str, tuple[str, ...]] = {
    "executions": ("cancel", "replay", "discard", "update"),
    "runs": ("cancel", "retry"),
    "events": ("replay",),
    "schedules": ("backfill", "pause", "resume"),
    "jobs": ("pause", "resume"),
}
"""What can be done, by the kind of thing."""


class State(StrEnum):
    """`refused`: more matched than the action may touch, so nothing was done."""

    COLLECTING = "collecting"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    REFUSED = "refused"


ENDED = (State.DONE, State.CANCELLED, State.REFUSED)


def allowed(rate: float | None, started_at: int, now: int, handled: int) -> tuple[int, int | None]:
    """How many items may be handled now, and when the next one may be if none may."""
    if rate is None:
        return CHUNK, None
    may = math.floor(rate * (now - started_at) / MICROSECONDS) + 1 - handled
    if may > 0:
        return min(CHUNK, may), None
    return 0, started_at + math.ceil(handled / rate * MICROSECONDS)
