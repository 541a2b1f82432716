"""Chores that any node may do at any time: promote what is due, expire what came too late, rescue the dead's work."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain import rank, schedule
from rota.domain.instant import MICROSECONDS
from rota.domain.served import Served
from rota.domain.status import Reason, Status
from rota.ops import ending, fleet
from rota.ops.fleet import Death
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
    """What there is to do, as far as a look can tell. Times are those of the next scheduled row and deadline."""

    now: int
    next_due_at: int | None
    next_deadline: int | None
    dead_workers: bool
    next_tick_at: int | None = None
    """When a schedule wants us: for those that others look after, a little after it is due."""
    has_followers: bool = False
    has_lifted: bool = False
    """Whether executions wait to be released from a blocker that has ended."""
    workers: int = 0
    places: list[int] = []
    """How many workers there are, and which ones among them are ours, counted from the oldest."""
    ready: dict[int, int] = {}
    """For each lane of the node's own that has work, the lowest rank in it."""


@operation(is_repeatable=True)
def look(
    view: View,
    lease_s: float,
    served: Served | None = None,
    shards: Sequence[tuple[int, int]] = ALL_SHARDS,
    ours: Sequence[int] = (),
) -> Chores:
    """A cheap read that says whether any chore needs a transaction, and what is ready in the queues that are `served`.

    Of every job, because the processes of one node may be of different releases and have different jobs.

    `shards` are those of the schedules, each with the time for which its ticks are left to others.
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
    now, next_due_at, next_deadline, dead, next_tick_at, has_followers, has_lifted, workers, places, ready = found
    return Chores(
        now,
        next_due_at,
        next_deadline,
        bool(dead),
        next_tick_at,
        bool(has_followers),
        bool(has_lifted),
        workers,
        sorted(msgspec.json.decode(places, type=list[int])) if places else [],
        dict(msgspec.json.decode(ready, type=list[tuple[int, int]])) if ready else {},
    )


def promote(tx: Tx) -> int:
    """Moves what is due from scheduled to ready, ranked by the instant at which it became due."""
    due = tx.records("due", _Due, most=MOST)
    if due:
        rows = [(row.id, rank.rank(row.policy, row.run_at, row.priority)) for row in due]
        tx.run("promote", rows=rows, ids=[row.id for row in due])
        tx.tell(Ready.of((row.lane, place) for row, (_, place) in zip(due, rows, strict=True)))
    return len(due)


def expire(tx: Tx) -> int:
    """Ends as skipped what has not started by its start deadline."""
    ids = [row[0] for row in tx.rows("expiries_due", most=MOST)]
    if not ids:
        return 0
    ending.end_pending(tx, _late(tx, ids), Status.SKIPPED, Reason.START_DEADLINE)
    # An execution that moved from one table to another during the look is still pending: its reminder stays.
    left = set(_late(tx, ids))
    tx.run("drop_expiries", ids=[id for id in ids if id not in left])
    return len(ids) - len(left)


def _late(tx: Tx, ids: list[str]) -> list[str]:
    """Those that never started and whose deadline has passed. A debounce may have moved it since the reminder."""
    pending = [row.id for row in tx.records("pending", ending.Pending, ids=ids) if row.first_start_at is None]
    return [row[0] for row in tx.rows("past_deadline", ids=pending)] if pending else []


def rescue(tx: Tx, lease_s: float, looked_at: int | None = None, spared: Sequence[int] = ()) -> Death:
    """Declares dead the workers whose lease had run out when the caller looked, and gives their executions to others.

    Does nothing if the clock has left the time at which the caller looked: after a jump every lease looks over. The
    caller spares its own: it knows better why they end, and says so itself.
    """
    lease = round(lease_s * MICROSECONDS)
    if looked_at is not None and not 0 <= tx.now - looked_at <= lease // 2:
        return Death()
    expired_at = tx.now if looked_at is None else looked_at
    workers = tx.rows("workers_expired", lease=lease, expired_at=expired_at, most=MOST_WORKERS)
    cause = "worker {} sent no heartbeat within its lease"
    gone = [(id, cause.format(name)) for id, name in workers if id not in spared]
    deaths = [fleet.declare_dead(tx, id, words, whole_node=True) for id, words in gone]
    return Death(sum(one.executions for one in deaths), [failure for one in deaths for failure in one.failures])
