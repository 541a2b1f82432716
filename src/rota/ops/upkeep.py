"""Upkeep tasks, which any supervisor may do: promoting due executions, expiring late ones, rescuing those of dead
workers.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain import rank, schedule
from rota.domain.instant import MICROSECONDS
from rota.domain.served import Served
from rota.domain.status import Reason, Status
from rota.domain.workflow import wait as waits
from rota.domain.workflow.wait import Ending
from rota.ops import fleet
from rota.ops.after_end import after_end
from rota.ops.end_from_outside import Pending, move_pending
from rota.ops.fleet import Death
from rota.ops.runs.move_waits import move_waits
from rota.ops.runs.pause import not_paused
from rota.store.hints import Ready
from rota.store.port import Tx, View, operation

MOST = 500
MOST_WORKERS = 20
NOTHING = Served([], [], [], [])
ALL_SHARDS = tuple((shard, 0) for shard in range(schedule.SHARDS))


class _Due(msgspec.Struct, frozen=True, array_like=True):
    id: str
    lane: int
    priority: int
    run_at: int
    policy: rank.Policy


class Chores(msgspec.Struct, frozen=True, array_like=True):
    """Which chores are due. `next_due_at` is the time of the next scheduled row."""

    now: int
    next_due_at: int | None
    next_deadline: int | None
    dead_workers: bool
    next_tick_at: int | None = None
    """When the next schedule is due for the caller; in shards of other supervisors, a little after its tick."""
    has_followers: bool = False
    has_lifted: bool = False
    """Whether executions wait to be released from a blocker that has ended."""
    next_run_at: int | None = None
    """When a run or a map needs a chore."""
    has_events: bool = False
    """Whether upkeep has events to deliver or waits to settle."""
    has_subscriptions: bool = False
    """Whether there are subscriptions, so that events may have to be delivered at any time."""
    next_action_at: int | None = None
    """When an action on many things is due."""
    workers: int = 0
    places: list[int] = []
    """How many workers there are, and the positions of the caller's own among them, counted from the oldest."""
    ready: dict[int, int] = {}
    """For each lane that the caller serves and that has ready rows, the lowest rank."""


@operation(is_repeatable=True)
def look(
    view: View,
    lease_s: float,
    served: Served | None = None,
    shards: Sequence[tuple[int, int]] = ALL_SHARDS,
    ours: Sequence[int] = (),
) -> Chores:
    """A cheap read that says whether any chore needs a transaction, and what is ready in the queues that are `served`.

    It reads the lanes of all jobs: the processes of one supervisor may have different releases of the app.

    `shards` are those of the schedules, each with how late a tick must be before the caller takes it.
    """
    found = view.one(
        "look",
        lease=round(lease_s * MICROSECONDS),
        with_ready=served is not None,
        **(served or NOTHING).where(),
        shards=list(shards),
        ours=list(ours),
    )
    assert found is not None, "a statement without FROM has one row"
    now, next_due_at, next_deadline, dead, next_tick_at, has_followers, has_lifted, next_run_at, *rest = found
    events, next_action_at, workers, places, ready = rest
    flags = (bool(dead), next_tick_at, bool(has_followers), bool(has_lifted), next_run_at, events == 2, events > 0)
    positions = sorted(msgspec.json.decode(places, type=list[int])) if places else []
    lanes = dict(msgspec.json.decode(ready, type=list[tuple[int, int]])) if ready else {}
    return Chores(now, next_due_at, next_deadline, *flags, next_action_at, workers, positions, lanes)


def promote(tx: Tx) -> int:
    """Moves due executions from scheduled to ready, ranked by the instant at which they became due."""
    return _promote(tx, tx.records("due", _Due, most=MOST))


def promote_early(tx: Tx, id: str) -> bool:
    """Makes a scheduled execution due now, and moves it to ready; False if it is not scheduled."""
    rows = tx.records("due_later", _Due, id=id)
    if rows:
        tx.run("run_early", id=id)
    return _promote(tx, [msgspec.structs.replace(row, run_at=min(row.run_at, tx.now)) for row in rows]) > 0


def expire(tx: Tx) -> int:
    """Ends the executions whose `expiry` is due.

    An execution that has not started by its start deadline is skipped. A run stops at its timeout, unless it is paused.
    A step that waits ends as its kind says, also in a paused run.
    """
    ids = [row[0] for row in tx.rows("expiries_due", most=MOST)]
    if not ids:
        return 0
    overdue = [row[0] for row in tx.rows("past_run_deadline", ids=ids)]
    stops = dict.fromkeys(not_paused(tx, overdue), Reason.RUN_TIMEOUT)
    late = _late(tx, ids)
    over = _timed_out(tx, [id for id, job in late.items() if waits.is_wait(job)])
    skipped = [id for id in late if id not in over]
    ends = move_pending(tx, skipped, Status.SKIPPED, Reason.START_DEADLINE)
    after_end(tx, [*ends, *move_waits(tx, over)], stops)
    # An execution that moved from one table to another during the read is still pending: its `expiry` row stays.
    left = _late(tx, ids)
    tx.run("drop_expiries", ids=[id for id in ids if id not in left])
    return len(ids) - len(left)


def _promote(tx: Tx, due: list[_Due]) -> int:
    if due:
        rows = [(row.id, rank.rank(row.policy, row.run_at, row.priority)) for row in due]
        tx.run("promote", rows=rows, ids=[row.id for row in due])
        tx.tell(Ready.of((row.lane, place) for row, (_, place) in zip(due, rows, strict=True)))
    return len(due)


def _late(tx: Tx, ids: list[str]) -> dict[str, str]:
    """The executions that never started and whose deadline has passed, with their jobs.

    A debounce may have moved the deadline to a time after that of the `expiry` row.
    """
    pending = [row.id for row in tx.records("pending", Pending, ids=ids) if row.first_start_at is None]
    return dict(tx.rows("past_deadline", ids=pending)) if pending else {}


def _timed_out(tx: Tx, ids: list[str]) -> dict[str, Ending]:
    """How these waits end, whose time is over."""
    rows = tx.rows("waits_among", ids=ids) if ids else []
    return {id: waits.timed_out(waits.of_execution(job, arguments)) for id, job, arguments in rows}


def rescue(tx: Tx, lease_s: float, looked_at: int | None = None, spared: Sequence[int] = ()) -> Death:
    """Declares workers dead whose lease had run out at `looked_at`, and returns their executions to the queue.

    Does nothing if `looked_at` is far from now: after a jump of the clock every lease seems to have run out. `spared`
    are the caller's own workers: it knows why they end, and reports it itself.
    """
    lease = round(lease_s * MICROSECONDS)
    if looked_at is not None and not 0 <= tx.now - looked_at <= lease // 2:
        return Death()
    expired_at = tx.now if looked_at is None else looked_at
    workers = tx.rows("workers_expired", lease=lease, expired_at=expired_at, most=MOST_WORKERS)
    cause = "worker {} sent no heartbeat within its lease"
    gone = [(id, cause.format(name)) for id, name in workers if id not in spared]
    deaths = [fleet.declare_dead(tx, id, words, with_supervisor=True) for id, words in gone]
    return Death(sum(one.executions for one in deaths), [failure for one in deaths for failure in one.failures])
