"""The progress that an execution has reported."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from rota.domain.note import State
from rota.domain.status import Status
from rota.views.shape import Shape, shaped
from rota.views.stored_json import decoded


class Progress(Shape, frozen=True):
    """The last report of the attempt with this fence, with its checkpoint."""

    done: float | None
    """How much is done, as the job counts it; null if it was not reported."""
    total: float | None
    """How much there is to do; null if it was not reported."""
    note: str | None
    """What the job has said with its last report; null if nothing."""
    at: datetime
    """When progress was last reported."""
    fence: int
    """The number of the start that has reported it."""
    checkpoint: Any
    """The last checkpoint that the job has saved; null if there is none."""


def progress_detail(told: State | None) -> Progress | None:
    if told is None:
        return None
    return shaped(
        Progress,
        told,
        done=_finite(told.done),
        total=_finite(told.total),
        checkpoint=decoded(told.checkpoint),
    )


def percent(told: Progress | None, status: Status) -> int | None:
    """Rounded down; 100 only for a success, None if nothing was reported."""
    return percent_of(told.done if told else None, told.total if told else None, status)


def percent_of(done: float | None, total: float | None, status: Status) -> int | None:
    if status is Status.SUCCESS:
        return 100
    if not total or total < 0 or not math.isfinite(total) or not math.isfinite(done or 0.0):
        return None
    return min(99, max(0, math.floor(100 * (done or 0.0) / total)))


def _finite(value: float | None) -> float | None:
    """JSON has no infinity."""
    return value if value is not None and math.isfinite(value) else None
