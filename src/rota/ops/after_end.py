"""What follows the end of an execution, in the transaction that ends it.

Every terminal move hands its ends to `after_end`: an attempt that finishes, a cancel, a replacement, a missed start
deadline, the rescue of a dead worker's executions, a job that completes in its own transaction. Each consequence is one
function in `CONSEQUENCES`; a new one (dependents, callbacks, statistics) is one more.

A success of a job to which no consequence but the general ones applies is plain. Most ends are, and a finish writes a
hundred of them in one statement without reading them. So an `End` has what each move knows, and a consequence that
needs more (namespace, job, run) reads it for the ends that are not plain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from rota.domain.status import Reason, Status
from rota.ids import FIRST_ID, LAST_ID
from rota.ops import job_pauses
from rota.store.hints import Due, Ended
from rota.store.port import Tx

NEWS_S = 1.0
"""How old the news may be that no schedule waits for an execution. One that is overlooked is found by `sweep`."""
MOST = 500
MOST_LOOKS = 20_000


class End(msgspec.Struct, frozen=True, gc=False):
    """One execution that has ended."""

    id: str
    status: Status
    reason: Reason
    is_plain: bool = False


class Swept(msgspec.Struct, frozen=True):
    """How many schedules were woken, and behind which execution the next piece begins."""

    woken: int
    after: str


def after_end(tx: Tx, ends: Sequence[End]) -> None:
    """To be called once by each transaction that ends executions, with the ends in the order in which they happened."""
    if ends:
        for follow in CONSEQUENCES:
            follow(tx, ends)


def _notify(tx: Tx, ends: Sequence[End]) -> None:
    """Wakes callers that wait for a result."""
    tx.tell(Ended(tuple([end.id for end in ends])))


def _wake_schedules(tx: Tx, ends: Sequence[End]) -> None:
    """Schedules with a fixed delay, or that do not overlap, wait for the end of their last execution."""
    if tx.recent("has_followers", NEWS_S)[0]:
        _wake(tx, [end.id for end in ends])


def _count_failures(tx: Tx, ends: Sequence[End]) -> None:
    """Jobs that pause themselves count failures in a row. An execution that was cancelled or skipped is neither."""
    counted = [(end.id, end.status is Status.FAILED) for end in ends if not end.is_plain and end.status in _COUNTED]
    if counted:
        job_pauses.count(tx, counted)


_COUNTED = (Status.SUCCESS, Status.FAILED)
CONSEQUENCES: tuple[Callable[[Tx, Sequence[End]], None], ...] = (_notify, _wake_schedules, _count_failures)


def catch_up(tx: Tx) -> int:
    """Wakes schedules that wait for an execution which has ended already."""
    return sweep(tx, FIRST_ID).woken


def sweep(tx: Tx, after: str, most: int = MOST_LOOKS) -> Swept:
    """`catch_up` for the executions behind `after`, in a bounded transaction."""
    end = tx.one("followers_end", after=after, most=most)
    last = LAST_ID if end is None else end[0]
    ids = [row[0] for row in tx.rows("forgotten_followers", after=after, last=last, most=MOST)]
    if ids:
        _wake(tx, ids)
    following = FIRST_ID if end is None else last
    return Swept(len(ids), after if len(ids) == MOST else following)


def _wake(tx: Tx, ids: Sequence[str]) -> None:
    woken = tx.rows("wake_followers", ids=list(ids))
    if woken:
        tx.tell(Due(min(row[0] for row in woken)))
