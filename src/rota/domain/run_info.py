"""Facts about a run of a workflow, as its steps and the arguments of its steps see them."""

from __future__ import annotations

from datetime import datetime

import msgspec


class RunInfo(msgspec.Struct, frozen=True):
    """A run, and for a job that runs in it, which step the job is.

    `scheduled_for` is the tick of the run's schedule, or the time it was asked for. `index` and `width` are the number
    of the item and the count of items if the step is a map, otherwise None.
    """

    id: str
    workflow: str
    scheduled_for: datetime
    started_at: datetime
    step: str = ""
    index: int | None = None
    width: int | None = None
