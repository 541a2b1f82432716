"""Queues with their rates, and when they will be empty."""

from __future__ import annotations

from datetime import datetime

from rota.domain.findings import queues as rules
from rota.domain.findings.facts import QueueState
from rota.domain.findings.finding import Series
from rota.domain.instant import moment
from rota.domain.load import Lane
from rota.domain.outlook import Outlook, forecast
from rota.store.finding_reader import Read
from rota.views.finding import FindingSeries, series
from rota.views.queue import QueueWait, waits
from rota.views.shape import Paused, Shape, paused


class JobShare(Shape, frozen=True):
    """How much of a queue is of a job."""

    app: str
    job: str
    queued: int
    """How many of its executions are queued there."""
    running: int
    """How many of its executions run now."""


class QueueOutlook(Shape, frozen=True):
    """A queue as it is and will be. `state` is active, paused or no_worker.

    Rates are those of the last five minutes. `emptyInS` is null if the queue will not be empty; `ifResumedS` is for a
    paused queue, at the fastest rate of the last hour. `slots` are those of the live workers that serve it.
    """

    name: str
    state: str
    """`active`, `paused`, or `no_worker` if no live worker can run some of the queued executions."""
    queued: int
    """How many executions are queued."""
    running: int
    waiting: int
    """How many executions wait for something other than a slot, such as those of a paused job."""
    waits: list[QueueWait]
    """What they wait for, most first, of up to 10,000 executions of all queues."""
    oldest_at: datetime | None
    """Since when the oldest one has been due."""
    in_per_s: float
    """Executions that arrive per second, in the last five minutes."""
    out_per_s: float
    """Executions that end per second, in the last five minutes."""
    slots: int
    """How many executions the live workers that can run its jobs can run at once."""
    lacks: str | None
    """Why no live worker runs some of the queued executions, such as a pool that no worker has; null if workers do."""
    outlook: Outlook
    """`now`, `empties`, `growing`, `unknown`, `never` or `paused`."""
    empty_in_s: float | None
    """In how many seconds the queue is expected to be empty; null if it will not be."""
    if_resumed_s: float | None
    """The same for a paused queue, at the fastest rate of the last hour; null if that is not known."""
    paused: Paused | None
    policy: str
    max_depth: int | None
    series: FindingSeries | None
    """How many were queued in each minute of the last hour."""
    jobs: list[JobShare]
    """The jobs that have executions in the queue, those with the most first."""


class QueueOutlooks(Shape, frozen=True):
    """All queues by name."""

    at: datetime
    """When they were measured."""
    queues: list[QueueOutlook]
    """All queues, by name."""


def outlooks(read: Read) -> QueueOutlooks:
    by_name = {queue.name: queue for queue in read.facts.queues}
    found = [_outlook(read, by_name[name], policy, most) for name, policy, most in read.queues]
    return QueueOutlooks(moment(read.facts.now), found)


def _outlook(read: Read, queue: QueueState, policy: str, max_depth: int | None) -> QueueOutlook:
    facts, live = read.facts, rules.claiming(read.facts)
    lanes = [lane for lane in facts.lanes if lane.queue == queue.name]
    waiting = [lane for lane in lanes if lane.ready or lane.stuck]
    queued = sum(lane.ready for lane in lanes)
    lacks = rules.lacking(waiting, live)
    arrive, end = sum(lane.arrivals_per_s for lane in lanes), sum(lane.ended_per_s for lane in lanes)
    served = rules.worked_off_per_s(facts, lanes) if waiting else end
    peak, is_paused = read.peaks.get(queue.name, 0.0), queue.paused_at is not None
    open_count = sum(lane.ready + lane.stuck for lane in lanes)
    expected = forecast(open_count, arrive, served, peak, is_paused=is_paused, is_served=lacks is None)
    oldest_at, held = rules.oldest_at(waiting), waits(read.waits, queue.name)
    depth: Series | None = rules.depth(facts, queue.name)
    return QueueOutlook(
        name=queue.name,
        state="paused" if is_paused else "active" if lacks is None else "no_worker",
        queued=queued,
        running=sum(lane.running for lane in lanes),
        waiting=sum(one.count for one in held),
        waits=held,
        oldest_at=None if oldest_at is None else moment(oldest_at),
        in_per_s=round(arrive, 3),
        out_per_s=round(end, 3),
        slots=sum(one.slots for one in live if any(rules.lacks(lane, [one]) == rules.Lack.NOTHING for lane in lanes)),
        lacks=lacks,
        outlook=expected.outlook,
        empty_in_s=expected.empty_in_s,
        if_resumed_s=expected.if_resumed_s,
        paused=paused(queue),
        policy=policy,
        max_depth=max_depth,
        series=None if depth is None else series(depth),
        jobs=_shares(lanes),
    )


def _shares(lanes: list[Lane]) -> list[JobShare]:
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for lane in lanes:
        queued, running = sums.get((lane.app, lane.job), (0, 0))
        sums[lane.app, lane.job] = (queued + lane.ready, running + lane.running)
    shares = [JobShare(app, job, *counts) for (app, job), counts in sums.items() if any(counts)]
    return sorted(shares, key=lambda one: (-one.queued, -one.running, one.app, one.job))
