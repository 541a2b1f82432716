"""Suspicion: which executions may have killed a worker process that ran several of them.

No execution is charged with a crash that it may not have caused. The last to start are the most likely: they run alone
from then on, and a crash is then charged to them. The others run as before; an execution that was present at a third
crash runs alone too. So the guilty execution is found, and the others lose only the attempt.
"""

from __future__ import annotations

from collections.abc import Sequence

from rota.domain.lifecycle import Held

ALONE = 3
"""An execution with at least this suspicion runs in a process of its own."""
LIKELY = 20


def after_death(held: Sequence[Held], *, with_supervisor: bool) -> list[tuple[str, int, int]]:
    """The id, the fence and the new suspicion of each execution that a dead process held.

    If its supervisor died too, a job is seldom the cause, and no execution is more likely than the others.
    """
    newest_first = sorted(held, key=lambda row: (-row.started_at, row.id))
    likely = 0 if with_supervisor else LIKELY
    return [(row.id, row.fence, ALONE if place < likely else 1) for place, row in enumerate(newest_first)]
