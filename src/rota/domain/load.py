"""The load: ready and running executions, the slots of the live workers, and a suggested number of slots.

    keeping up     max(running, arrivals per second x seconds per run)    slots that the steady flow needs
    catching up    ready x seconds per run / target                       slots more, to work off what waits in time
    suggested      keeping up + catching up

Catching up needs at least one slot if anything is ready, and never more slots than ready executions. The steady flow is
the larger of two estimates: the executions that run now, and Little's law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

import msgspec

from rota.domain import requirement
from rota.domain.instant import MICROSECONDS
from rota.domain.served import ALL_APPS

WINDOW_S = 300.0
"""Rates are measured over this many seconds."""
SOON_S = 60.0
ASSUMED_RUN_S = 1.0
"""The assumed duration of an execution before any has run."""


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of one lane. Times are in microseconds."""

    app: str
    job: str
    queue: str
    requirements: str = ""
    runs: str | None = None
    """What a worker must have among its jobs to run this one, if that is not the job itself."""
    is_paused: bool = False
    may_start: bool = True
    """False if the queue is paused or a breaker of the job is open."""
    ready: int = 0
    oldest_at: int | None = None
    due_soon: int = 0
    running: int = 0
    running_for: int = 0
    """How long the running executions have run so far, added up."""
    arrivals_per_s: float = 0.0
    ended_per_s: float = 0.0
    ended: int = 0
    took: int = 0
    """How many ended attempts were read, and how long they took together."""
    stuck: int = 0
    """If no live worker can start a process for the job: how many were claimed a moment ago or are to run again.

    A worker claims such an execution from time to time, and gives it back."""
    oldest_open: str | None = None
    """If no live worker can run the job: the id of the oldest execution that is ready or stuck."""
    skip_at: int | None = None
    """If no live worker can run the job: the earliest start deadline of those."""


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """One live worker process. `queues` is None for all of its app."""

    app: str
    queues: list[str] | None
    jobs: frozenset[str]
    offers: str
    slots: int
    running: int
    trouble: frozenset[str] = frozenset()
    """The kinds of jobs for which this worker can start no process."""

    def serves(self, lane: Lane) -> bool:
        is_its = self.app in (lane.app, ALL_APPS) and (self.queues is None or lane.queue in self.queues)
        can_run = (lane.runs or lane.job) in self.jobs and requirement.fits(lane.requirements, self.offers)
        return is_its and can_run and requirement.can_start(lane.requirements, self.trouble)


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Everything at one instant, by the clock of the database."""

    at: int
    lanes: list[Lane]
    workers: list[Capacity]


class Figures(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The figures for an autoscaler or an operator who adds and removes workers."""

    ready: int
    """How many executions are ready to start."""
    oldest_ready_s: float | None
    """For how many seconds the oldest of them waits; null if none is ready."""
    due_soon: int
    """How many executions become due within a minute."""
    running: int
    """How many executions run now."""
    slots: int
    """How many executions the live workers can run at once."""
    free_slots: int
    """How many slots are free."""
    busy_share: float | None
    """The share of the slots that is busy; null without slots."""
    arrivals_per_s: float
    """How many executions came per second, in the last five minutes."""
    ended_per_s: float
    """How many executions ended per second, in the last five minutes."""
    run_s: float | None
    """How many seconds an execution took on average; null if none has run."""
    suggested_slots: int
    """How many slots would keep up, and work off what is ready within the target."""
    suggested_workers: int
    """How many workers have that many slots."""


class Group(Figures, frozen=True, kw_only=True):
    """The work of one queue for one pool."""

    app: str
    queue: str
    pool: str
    paused: bool
    """Whether its queue or its jobs are paused."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """For all groups together, and for each. A worker that serves several groups is counted in each of them."""

    slots_of_a_worker: int
    total: Figures
    groups: list[Group]


def report(measured: Measured, target_s: float, slots_of_a_worker: int) -> Report:
    """All figures, with a suggestion that works off the ready executions within `target_s`."""

    def group_of(lane: Lane) -> tuple[str, str, str]:
        return lane.app, lane.queue, pool_of(lane)

    groups = []
    for (app, queue, pool), members in groupby(sorted(measured.lanes, key=group_of), group_of):
        lanes = list(members)
        figures = _figures(measured, lanes, suggested_slots(lanes, target_s), slots_of_a_worker)
        is_paused = lanes[0].is_paused
        groups.append(Group(app=app, queue=queue, pool=pool, paused=is_paused, **msgspec.structs.asdict(figures)))
    wanted = sum(group.suggested_slots for group in groups)
    total = _figures(measured, measured.lanes, wanted, slots_of_a_worker)
    return Report(slots_of_a_worker=slots_of_a_worker, total=total, groups=groups)


def suggested_slots(lanes: Sequence[Lane], target_s: float) -> int:
    """How many slots work off the ready executions within `target_s`, and keep up with new ones meanwhile.

    In a lane that is paused, or whose breaker is open, only running executions need a slot.
    """
    running, open_lanes = sum(lane.running for lane in lanes), [lane for lane in lanes if lane.may_start]
    known_s, ready = _run_s(open_lanes), sum(lane.ready for lane in open_lanes)
    run_s = ASSUMED_RUN_S if known_s is None else known_s
    keeping_up = max(running, _up(sum(lane.arrivals_per_s for lane in open_lanes) * run_s))
    return keeping_up + min(ready, max(1, _up(ready * run_s / target_s)))


def usual_slots(measured: Measured, otherwise: int) -> int:
    """The slots of the largest live worker process; `otherwise` if none is live."""
    return max((worker.slots for worker in measured.workers), default=otherwise)


def pool_of(lane: Lane) -> str:
    return requirement.decode(lane.requirements).pool


def _figures(measured: Measured, lanes: Sequence[Lane], wanted: int, slots_of_a_worker: int) -> Figures:
    serving = [worker for worker in measured.workers if any(worker.serves(lane) for lane in lanes)]
    slots = sum(worker.slots for worker in serving)
    free = sum(max(0, worker.slots - worker.running) for worker in serving)
    oldest_at = min((lane.oldest_at for lane in lanes if lane.oldest_at is not None), default=None)
    return Figures(
        ready=sum(lane.ready for lane in lanes),
        oldest_ready_s=None if oldest_at is None else _seconds(max(0, measured.at - oldest_at)),
        due_soon=sum(lane.due_soon for lane in lanes),
        running=sum(lane.running for lane in lanes),
        slots=slots,
        free_slots=free,
        busy_share=round(1 - free / slots, 3) if slots else None,
        arrivals_per_s=round(sum(lane.arrivals_per_s for lane in lanes), 3),
        ended_per_s=round(sum(lane.ended_per_s for lane in lanes), 3),
        run_s=_run_s(lanes),
        suggested_slots=wanted,
        suggested_workers=math.ceil(wanted / slots_of_a_worker),
    )


def _run_s(lanes: Sequence[Lane]) -> float | None:
    """The mean duration of ended attempts; if none has ended, the mean so far of the running ones."""
    ended, running = sum(lane.ended for lane in lanes), sum(lane.running for lane in lanes)
    if ended:
        return _seconds(sum(lane.took for lane in lanes) / ended)
    return _seconds(sum(lane.running_for for lane in lanes) / running) if running else None


def _seconds(microseconds: float) -> float:
    return round(microseconds / MICROSECONDS, 3)


def _up(value: float) -> int:
    """The next whole number, without the rounding errors of a division."""
    return math.ceil(round(value, 6))
