"""Queues that no worker serves, that are paused or grow, and breakers that hold executions back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rota.domain import requirement
from rota.domain.breaker import UNTIL_CLOSED, Circuit
from rota.domain.findings.facts import Facts, PauseChange, QueueState, Worker
from rota.domain.findings.finding import (
    Action,
    Finding,
    Kind,
    Series,
    Severity,
    Subject,
    Unit,
    by,
    do,
    length,
    number,
    open_page,
)
from rota.domain.instant import MICROSECONDS
from rota.domain.load import Lane
from rota.domain.served import ALL_APPS

MINUTE = 60 * MICROSECONDS
LEAST_QUEUED, LEAST_AGE, GROWTH, LOOK_BACK = 10, 60 * MICROSECONDS, 1.5, 15
"""A queue grows if it has this many, the oldest waits for this long, and it is this many times as long as that many
minutes ago, while more arrive than end."""
LEAST_SERVED = 10 * MICROSECONDS
"""A rate is known after a queue was served for this long."""


class Lack:
    """What a lane lacks: nothing, or a worker that serves its queue, has its job, meets its needs, or can start it."""

    NOTHING, WORKER, JOB, NEEDS, PROCESS = range(5)


_MEANS = {
    Lack.WORKER: "Executions wait, and no live worker of their app serves the queue.",
    Lack.JOB: "Executions wait, and no live worker that serves the queue has their job.",
    Lack.NEEDS: "Executions wait, and no live worker has the pool, the tags and the resources that they need.",
    Lack.PROCESS: "Executions wait: the live workers that may run them can start no process for them.",
}
_MEND = "mend the trouble of the worker, such as a full disk, or start another worker on another machine"


def lacks(lane: Lane, workers: Sequence[Worker]) -> int:
    """`workers` are those that may claim."""
    own = [one for one in workers if _is_of_app(one, lane)]
    serving = [one for one in own if one.queues is None or lane.queue in one.queues]
    if not serving:
        return Lack.WORKER
    if not requirement.is_workflow(lane.requirements):
        serving = [one for one in serving if (lane.runs or lane.job) in one.jobs]
        if not serving:
            return Lack.JOB
    serving = [one for one in serving if requirement.fits(lane.requirements, one.offers)]
    if not serving:
        return Lack.NEEDS
    can_start = any(requirement.can_start(lane.requirements, one.trouble) for one in serving)
    return Lack.NOTHING if can_start else Lack.PROCESS


def lack_words(lack: int, lane: Lane, job: str = "", it: str = "it") -> str:
    """Why no live worker runs the executions of a lane. `job` and `it` name its job in other sentences."""
    match lack:
        case Lack.WORKER:
            return f"no live worker of app {lane.app} serves it"
        case Lack.JOB:
            return f"no live worker has {job or 'this job'}"
        case Lack.NEEDS:
            return f"no live worker has {requirement.words(lane.requirements)}"
        case _:
            wanted = requirement.words(lane.requirements)
            return f"no live worker{f' with {wanted}' if wanted else ''} can start a process for {it}"


def lacking(lanes: Sequence[Lane], workers: Sequence[Worker]) -> str | None:
    """What these lanes lack, in words; None if a worker can run each of them."""
    found = [
        lack_words(lack, lane, f"the job {lane.job}", lane.job)
        for lane in lanes
        if (lack := lacks(lane, workers)) != Lack.NOTHING
    ]
    return "; ".join(dict.fromkeys(found)) or None


def _is_of_app(worker: Worker, lane: Lane) -> bool:
    return worker.app == lane.app or (worker.app == ALL_APPS and (lane.runs or lane.job) in worker.jobs)


def claiming(facts: Facts) -> list[Worker]:
    return [one for one in facts.workers if one.is_live(facts.now) and one.state == "live"]


def without_worker(facts: Facts) -> Iterator[Finding]:
    groups: dict[tuple[int, str, str, str], list[Lane]] = {}
    live = claiming(facts)
    for lane in facts.lanes:
        if not (lane.ready or lane.stuck) or lane.is_paused:
            continue
        lack = lacks(lane, live)
        if lack == Lack.WORKER:
            groups.setdefault((lack, lane.app, lane.queue, ""), []).append(lane)
        elif lack != Lack.NOTHING:
            needs = "" if lack == Lack.JOB else lane.requirements
            groups.setdefault((lack, lane.app, lane.job, needs), []).append(lane)
    for (lack, app, name, needs), lanes in groups.items():
        yield _without_worker(facts, lack, app, name, needs, lanes)


def _without_worker(facts: Facts, lack: int, app: str, name: str, needs: str, lanes: Sequence[Lane]) -> Finding:
    queued, oldest = sum(lane.ready + lane.stuck for lane in lanes), oldest_at(lanes)
    last = None if lack == Lack.PROCESS else _last_worker(facts, lanes[0])
    cause = _troubles(facts, lanes[0]) if lack == Lack.PROCESS else _last_words(facts, last)
    state = "wait" if lack == Lack.PROCESS else "queued"
    is_queue, wanted = lack == Lack.WORKER, requirement.words(needs)
    subject = Subject("queue" if is_queue else "job", name, name, app)
    since = oldest if last is None or oldest is None else max(oldest, last.stopped_at or 0)
    queues = sorted({lane.queue for lane in lanes})
    age = "" if oldest is None else f", oldest {length(facts.now - oldest)}"
    return Finding(
        kind=Kind.NO_WORKER,
        severity=Severity.CRITICAL,
        subject=subject,
        text=f"{'Queue ' if is_queue else ''}{name} cannot run: {lack_words(lack, lanes[0])}",
        evidence=f"{queued:,} {state} in {', '.join(queues)}{age}{_skipped(facts, lanes)}{cause}",
        since=since,
        measure=float(queued),
        unit=Unit.COUNT,
        affected=queued,
        series=depth(facts, queues[0]) if len(queues) == 1 else None,
        actions=[_why(lanes), Action(label="Start a worker", command=_start(app, lanes[0].requirements))],
        advice=_MEND if lack == Lack.PROCESS else None,
        means=_MEANS[lack],
        aspect=f"{wanted} process".strip() if lack == Lack.PROCESS else wanted,
    )


def _troubles(facts: Facts, lane: Lane) -> str:
    """What the workers say that could run these but for their trouble."""
    known = [one for one in claiming(facts) if lacks(lane, [one]) == Lack.PROCESS]
    wanted = (requirement.STANDS_STILL, requirement.processes(lane.requirements))
    said = [f"{one.name}: {one.trouble[what]}" for one in known for what in wanted if what in one.trouble]
    more = f"; {number(len(said) - 1, 'other worker')}" if len(said) > 1 else ""
    return f". {said[0]}{more}" if said else ""


def _skipped(facts: Facts, lanes: Sequence[Lane]) -> str:
    """When the first execution is skipped because it cannot start in time."""
    first = min((lane.skip_at for lane in lanes if lane.skip_at is not None), default=None)
    if first is None:
        return ""
    left = first - facts.now
    return f"; the first is skipped {'now' if left <= 0 else 'in ' + length(left)}, at its start deadline"


def _last_worker(facts: Facts, lane: Lane) -> Worker | None:
    """The worker that had what these need and stopped last, if that was lately."""
    had = (Lack.NOTHING, Lack.PROCESS)
    gone = [one for one in facts.workers if one.stopped_at is not None and lacks(lane, [one]) in had]
    return max(gone, key=lambda one: one.stopped_at or 0, default=None)


def _last_words(facts: Facts, last: Worker | None) -> str:
    if last is None:
        return ""
    how = "was lost" if last.state == "lost" else "stopped"
    return f". The last one, {last.name}, {how} {length(facts.now - (last.stopped_at or 0))} ago"


def _start(app: str, requirements: str) -> str:
    wanted = requirement.decode(requirements)
    flags = [f"--pool {wanted.pool}"] if wanted.pool != requirement.DEFAULT_POOL else []
    flags += [f"--tag {tag}" for tag in wanted.tags]
    flags += [f"--resource {name}={amount:g}" for name, amount in wanted.resources.items()]
    return " ".join([f"rota worker MODULE:{app}", *flags])


def _why(lanes: Sequence[Lane]) -> Action:
    """The page of the oldest one: a list of those that are queued is empty while they are claimed and given back."""
    known = [lane for lane in lanes if lane.oldest_open is not None]
    if known:
        oldest = min(known, key=lambda lane: lane.oldest_at or 0).oldest_open
        return open_page("Why", f"/executions/{oldest}", f"rota show {oldest}")
    jobs, queues = sorted({lane.job for lane in lanes}), sorted({lane.queue for lane in lanes})
    link = f"/executions?status=queued&queue={queues[0]}" + (f"&job={jobs[0]}" if len(jobs) == 1 else "")
    return open_page("Why", link, f"rota executions --status queued --queue {queues[0]}")


def paused(facts: Facts) -> Iterator[Finding]:
    for queue in facts.queues:
        lanes = [lane for lane in facts.lanes if lane.queue == queue.name and lane.ready]
        if queue.paused_at is not None and lanes:
            yield _paused(facts, queue, queue.paused_at, lanes)


def _paused(facts: Facts, queue: QueueState, paused_at: int, lanes: Sequence[Lane]) -> Finding:
    queued, oldest = sum(lane.ready for lane in lanes), oldest_at(lanes)
    age = "" if oldest is None else f", oldest {length(facts.now - oldest)}"
    return Finding(
        kind=Kind.QUEUE_PAUSED,
        severity=Severity.WARNING,
        subject=Subject("queue", queue.name, queue.name),
        text=f"Queue {queue.name} is paused{by(queue.paused_by, queue.paused_note)}",
        evidence=f"{queued:,} queued{age}",
        since=paused_at,
        measure=float(queued),
        unit=Unit.COUNT,
        affected=queued,
        series=depth(facts, queue.name),
        actions=[do("Resume…", f"/queues/{queue.name}/resume", f"rota queues resume {queue.name}", asks=True)],
    )


def growing(facts: Facts) -> Iterator[Finding]:
    live = claiming(facts)
    for queue in facts.queues:
        lanes = [lane for lane in facts.lanes if lane.queue == queue.name and lane.ready]
        served = [lane for lane in lanes if lacks(lane, live) == Lack.NOTHING and lane.may_start]
        if queue.paused_at is None and served:
            yield from _growing(facts, queue, served)


def _growing(facts: Facts, queue: QueueState, lanes: Sequence[Lane]) -> Iterator[Finding]:
    queued, oldest = sum(lane.ready for lane in lanes), oldest_at(lanes)
    known = [(place, one) for place, one in enumerate(reversed(queue.depth[-LOOK_BACK:])) if one is not None]
    minutes, before = known[-1] if known else (0, None)
    age = 0 if oldest is None else facts.now - oldest
    if before is None or queued < max(LEAST_QUEUED, GROWTH * before) or age < LEAST_AGE:
        return
    arrive, end = sum(lane.arrivals_per_s for lane in lanes), worked_off_per_s(facts, lanes)
    if end is None or arrive <= end:
        return
    yield Finding(
        kind=Kind.QUEUE_GROWING,
        severity=Severity.CRITICAL,
        subject=Subject("queue", queue.name, queue.name),
        text=f"Queue {queue.name} grows: from {before:,} to {queued:,} queued in {number(max(1, minutes), 'minute')}",
        evidence=f"{round(arrive, 2):g} arrive and {round(end, 2):g} end per second, oldest {length(age)}",
        since=oldest,
        measure=float(queued),
        usual=float(before),
        unit=Unit.COUNT,
        affected=queued,
        series=depth(facts, queue.name),
        actions=[
            open_page("Open", f"/queues/{queue.name}", "rota load"),
            open_page("Workers", "/workers", "rota load"),
        ],
    )


def worked_off_per_s(facts: Facts, lanes: Sequence[Lane]) -> float | None:
    """How many executions of some lanes end per second while workers may claim them.

    None if they could claim them for too short a time to tell. A queue that was paused until a moment ago is worked off
    faster than the rate of the last minutes says.
    """
    served = facts.now - facts.rates_from - _stood_still(facts, [lane for lane in lanes if lane.ready])
    if served < LEAST_SERVED:
        return None
    return sum(lane.ended_per_s for lane in lanes) * (facts.now - facts.rates_from) / served


def _stood_still(facts: Facts, lanes: Sequence[Lane]) -> int:
    """For how long none of these lanes was served since `rates_from`: paused, or without a worker."""
    paused = [
        max(_paused_for(facts, "queue", lane.queue), _paused_for(facts, "job", f"{lane.app}.{lane.job}"))
        for lane in lanes
    ]
    has_new_worker = any(one.started_at > facts.rates_from for one in facts.workers)
    alone = [_without_worker_for(facts, lane) for lane in lanes] if has_new_worker else []
    return max(min(paused, default=0), min(alone, default=0))


def _paused_for(facts: Facts, noun: str, subject: str) -> int:
    own = [one for one in facts.pause_changes if one.subject == subject and one.action.startswith(f"{noun}.")]
    bounds = [facts.rates_from, *(one.at for one in own), facts.now]
    return sum(end - begin for one, begin, end in zip(own, bounds, bounds[1:], strict=False) if _ends_a_pause(one))


def _ends_a_pause(one: PauseChange) -> bool:
    return one.action.endswith(".resume")


def _without_worker_for(facts: Facts, lane: Lane) -> int:
    """How long after `rates_from` the first worker that can run this lane started."""
    own = [one for one in facts.workers if (one.stopped_at or facts.now) > facts.rates_from]
    started = [one.started_at for one in own if lacks(lane, [one]) == Lack.NOTHING]
    return max(0, min(started, default=facts.now) - facts.rates_from)


def open_breakers(facts: Facts) -> Iterator[Finding]:
    for circuit in facts.circuits:
        if circuit.opened_at is not None:
            yield _open_breaker(facts, circuit, circuit.opened_at)


def _open_breaker(facts: Facts, circuit: Circuit, opened_at: int) -> Finding:
    lanes = [lane for lane in facts.lanes if circuit.name in requirement.breakers(lane.requirements)]
    queued, jobs = sum(lane.ready for lane in lanes), sorted({lane.job for lane in lanes})
    is_by_hand = (circuit.retry_at or 0) >= UNTIL_CLOSED
    why = "was opened by an operator" if is_by_hand else f"is open after {number(circuit.failures, 'failure')} in a row"
    until = (circuit.retry_at or 0) - facts.now
    tries = "until it is closed" if is_by_hand else f"one tries {'now' if until <= 0 else 'in ' + length(until)}"
    close = do("Close…", f"/breakers/{circuit.name}/close", f"rota breakers close {circuit.name}", asks=True)
    return Finding(
        kind=Kind.BREAKER_OPEN,
        severity=Severity.CRITICAL,
        subject=Subject("breaker", circuit.name, circuit.name),
        text=f"Breaker {circuit.name} {why}",
        evidence=f"{queued:,} queued of {', '.join(jobs) or 'no job'} wait; {tries}",
        since=opened_at,
        measure=float(circuit.failures),
        unit=Unit.COUNT,
        affected=queued,
        actions=[close],
    )


def oldest_at(lanes: Sequence[Lane]) -> int | None:
    return min((lane.oldest_at for lane in lanes if lane.oldest_at is not None), default=None)


def depth(facts: Facts, queue: str) -> Series | None:
    for one in facts.queues:
        if one.name == queue and any(point is not None for point in one.depth):
            return Series("queued", facts.now - facts.now % MINUTE - (len(one.depth) - 1) * MINUTE, 60, one.depth)
    return None
