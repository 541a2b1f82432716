"""When the sweeper (`ops/runs/sweep.py`) next looks at an open run. All times are in microseconds.

A look costs a read for each open step. So a run is not looked at while all its open steps are known to wait: a million
steps that sleep for a month cost nothing until the month is over.
"""

from __future__ import annotations

from collections.abc import Collection

from rota.domain.instant import MICROSECONDS
from rota.domain.workflow.letters import OPEN
from rota.domain.workflow.wait import Sleep, Wait

QUIET = 60 * MICROSECONDS
"""How long nothing has changed when the sweeper looks."""
LONGEST = 86_400 * MICROSECONDS


def for_wait(wait: Wait, ends_at: int, now: int) -> int:
    """When to look for the end of a wait: a minute after its time is over.

    An answer or an event may end a wait earlier, so a run that waits for one of these is looked at every day.
    """
    return ends_at + QUIET if isinstance(wait, Sleep) else min(ends_at + QUIET, now + LONGEST)


def after_change(now: int, letters: str, begun: Collection[int]) -> int:
    """The first look at a run that has just changed. `begun` has `for_wait` for each wait that the change began."""
    return min(begun) if begun and len(begun) == letters.count(OPEN) else now + QUIET


def after_look(now: int, opened_at: int, steps: Collection[int | None]) -> int:
    """The next look at a run that needed no repair.

    `steps` says for each open step when to look for its end; None if that is not known, as for a job. If all are known
    the run is looked at when the first one is due. Otherwise the wait until the next look is as long as the time since
    that instant, or since the run opened if it is not known: at least `QUIET`, and at most a day.
    """
    known = [at for at in steps if at is not None]
    since = min(known) if known and len(known) == len(steps) else opened_at
    return since if since > now else now + min(max(now - since, QUIET), LONGEST)
