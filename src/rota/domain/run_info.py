"""Facts about a run of a workflow: `Context.run` in a job, and `this_run` in the function of a workflow."""

from __future__ import annotations

from datetime import datetime

import msgspec


class RunInfo(msgspec.Struct, frozen=True):
    """A run. In a job, also the step that the job runs as.

    `scheduled_for` is the tick of the run's schedule, or the time for which the run was requested. If the step is a
    map, `index` is the number of the item and `width` the number of items; otherwise both are None.
    """

    id: str
    workflow: str
    scheduled_for: datetime
    started_at: datetime
    step: str = ""
    index: int | None = None
    width: int | None = None
