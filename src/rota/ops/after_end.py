"""The consequences of the end of an execution, in the transaction that ends it.

Every terminal move hands its ends to `after_end`: an attempt that finishes, a cancel, a replacement, a missed start
deadline, the rescue of a dead worker's executions, a job that completes in its own transaction. Each consequence is one
function in `CONSEQUENCES`; a new one is one more.

Most ends are plain: a success of a job that does not count failures. `finish` writes a hundred of them in one statement
without reading their rows. So an `End` has only what every move knows. A consequence that needs more (namespace, job,
run) reads it for the ends that are not plain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rota.domain.status import Reason, Status
from rota.ops import job_pauses
from rota.ops.callbacks import call_back, call_forgotten
from rota.ops.dependencies import start_dependents
from rota.ops.end_record import End
from rota.ops.runs.advance import advance_runs
from rota.ops.statistics import count_ends
from rota.store.hints import Due, Ended
from rota.store.port import Tx

NEWS_S = 1.0
"""The absence of waiting schedules is cached this long. `wake_forgotten` wakes one that began to wait since."""
MOST = 500


def after_end(tx: Tx, ends: Sequence[End], stops: Mapping[str, Reason] | None = None) -> list[End]:
    """To be called once by each transaction that ends executions, with the ends in the order in which they happened.

    `stops` are runs to stop, and why. Returns the runs that have ended as a result.
    """
    steps = [end for end in ends if end.run is not None]
    runs = advance_runs(tx, steps, stops) if steps or stops else []
    follow(tx, runs, ends)
    return runs


def follow(tx: Tx, runs: Sequence[End], others: Sequence[End] = ()) -> None:
    """The rest of `after_end`, once the runs of all these ends have been advanced. `runs` are ends of runs."""
    ends = [*others, *runs] if runs else others
    if ends:
        for consequence in CONSEQUENCES:
            consequence(tx, ends)
    if top := {end.id: end.status.value for end in runs if end.run is None}:
        tx.tell(Ended((), top))


def _notify(tx: Tx, ends: Sequence[End]) -> None:
    """Wakes callers that wait for a result."""
    tx.tell(Ended(tuple([end.id for end in ends])))


def _wake_schedules(tx: Tx, ends: Sequence[End]) -> None:
    """Schedules with a fixed delay, or that do not overlap, wait for the end of their last execution."""
    if tx.recent("awaited_ends", NEWS_S)[0]:
        _wake(tx, [end.id for end in ends])


def _count_failures(tx: Tx, ends: Sequence[End]) -> None:
    """Jobs that pause themselves count failures in a row. Cancelled and skipped executions do not count."""
    new = [end for end in ends if not end.is_plain and not end.is_repeated]
    counted = [(end.id, end.status is Status.FAILED) for end in new if end.status in _COUNTED]
    if counted:
        job_pauses.count(tx, counted)


_COUNTED = (Status.SUCCESS, Status.FAILED)
CONSEQUENCES: tuple[Callable[[Tx, Sequence[End]], None], ...] = (
    _notify,
    _wake_schedules,
    _count_failures,
    start_dependents,
    call_back,
    count_ends,
)
"""In the order in which they lock: rows of `hand`, `job`, `dependency`, `callback_open`."""


def wake_forgotten(tx: Tx) -> int:
    """Wakes schedules that wait for an execution which has ended already, and places callbacks that were missed.

    Returns the number of these executions.
    """
    ids = [row[0] for row in tx.rows("forgotten_followers", most=MOST)]
    if ids:
        _wake(tx, ids)
    return len(ids) + call_forgotten(tx)


def _wake(tx: Tx, ids: Sequence[str]) -> None:
    woken = tx.rows("wake_followers", ids=list(ids))
    if woken:
        tx.tell(Due(min(row[0] for row in woken)))
