"""Who may have killed a worker process that ran several executions when it died.

Nobody is charged with a crash that it may not have caused. The last to start are the likely ones: they run alone from
then on, where a crash is their own. The others run on as before; whoever was there for the third time runs alone too.
So the one that did it is found, however many there were, and the innocent lose nothing but the attempt.
"""

from __future__ import annotations

from collections.abc import Sequence

from rota.domain.lifecycle import Held

ALONE = 3
"""From this suspicion on an execution has a process to itself."""
LIKELY = 20


def after_death(held: Sequence[Held], *, whole_node: bool) -> list[tuple[str, int, int]]:
    """The id, the fence and the least suspicion of each of those that were held by a process that died.

    If its whole node is gone with it, that is seldom the doing of a job, and nobody is more likely than the others.
    """
    newest_first = sorted(held, key=lambda row: (-row.started_at, row.id))
    likely = 0 if whole_node else LIKELY
    return [(row.id, row.fence, ALONE if place < likely else 1) for place, row in enumerate(newest_first)]
