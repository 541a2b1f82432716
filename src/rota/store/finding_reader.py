"""Reads the facts that findings are made of: few statements, each bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rota.domain.breaker import Circuit
from rota.domain.findings import jobs
from rota.domain.findings import queues as queue_rules
from rota.domain.findings.facts import (
    MINUTES,
    Approval,
    BrokenVersion,
    ErrorCount,
    Facts,
    JobPause,
    LeftOut,
    Minutes,
    Overdue,
    PauseChange,
    QueueState,
    Running,
    RunState,
    Usual,
    WayBack,
    Worker,
)
from rota.domain.findings.queues import Lack
from rota.domain.instant import MICROSECONDS
from rota.domain.load import Lane
from rota.domain.schedule import SHARDS
from rota.domain.workflow import wait
from rota.domain.workflow.wait import Approve
from rota.ids import first_at
from rota.store import error_reader, reader
from rota.store.error_reader import ErrorGroup
from rota.store.load_reader import LaneRow, may_start, open_circuits
from rota.store.port import Row, View
from rota.store.reader import WaitRow

MINUTE, HOUR = 60 * MICROSECONDS, 3600 * MICROSECONDS
MOST_READY = 100_000
MOST_ROWS = 100
MOST_JOBS = 20
"""The usual duration is read for at most this many jobs with long-running executions."""
RATE_MINUTES = 5
LATELY, LEFT_OUT = HOUR, 6 * HOUR
OVERDUE = 60 * MICROSECONDS
STOPPED = 6 * HOUR
USUAL_HOURS = 7 * 24
USUAL_WEEKS = 4
LAST_RUNS, LOOKS = 30, 100
MOST_BROKEN = 10
"""The ends of the version in force are read for at most this many jobs."""
MOST_AUDITED = 1000
"""Pauses that ended lately are looked for among this many of the newest entries of the audit trail."""
CLAIMED = MINUTE
"""An execution that runs for longer than this was really started."""
MOST_OPEN = 1000
SKEW = 300 * MICROSECONDS
"""The id of an execution may be this much older than its creation: it has the time of a client."""


_COLUMNS = {"created": 0, "success": 1, "failed": 2}
"""All other outcomes are in the column behind these."""


class _Counts:
    """How many executions were created and have ended in each of the last minutes, in one lane."""

    def __init__(self) -> None:
        self.created, self.success, self.failed, self.others = ([0] * MINUTES for _ in range(4))
        self.columns = (self.created, self.success, self.failed, self.others)

    def add(self, minute: int, outcome: str, count: int) -> None:
        if 0 <= minute < MINUTES and outcome != "retries":
            self.columns[_COLUMNS.get(outcome, len(_COLUMNS))][minute] += count


class Read(msgspec.Struct, frozen=True):
    """The facts, and what the overview shows besides."""

    facts: Facts
    ended: Minutes
    """All jobs together. `failed` and `success` do not include cancelled and skipped executions."""
    others: int
    """How many were cancelled or skipped in the last minutes over which rates are measured."""
    queues: list[tuple[str, str, int | None]]
    """The name, the policy and the depth limit of each queue."""
    waits: list[WaitRow]
    """What executions wait for other than a slot, with open runs."""
    peaks: dict[str, float]
    """The most executions that ended per second in a minute of the last hour, by queue."""


def read(view: View, namespace: str) -> Read:
    now = view.now
    rows = view.records("lanes_in_use", LaneRow, namespace=namespace, most=MOST_READY)
    circuits = open_circuits(view, namespace)
    counts = _counts(view, namespace, now)
    queues = view.rows("queue_states", namespace=namespace)
    pauses = view.records("job_pauses", JobPause, namespace=namespace, most=reader.MOST_WAITING, jobs=MOST_ROWS)
    groups = error_reader.groups(view, namespace, now - LATELY)
    broken = _broken(view, namespace, pauses, groups)
    errors = error_reader.with_errors(view, namespace, groups, broken)
    rates_from = now - now % MINUTE - (RATE_MINUTES - 1) * MINUTE
    workers = _workers(view, namespace, now)
    facts = Facts(
        now=now,
        rates_from=rates_from,
        pause_changes=view.records(
            "pauses_lately", PauseChange, namespace=namespace, since=rates_from, looks=MOST_AUDITED
        ),
        lanes=_with_stuck(view, rows, _lanes(view, rows, counts, circuits, now), workers),
        queues=_queues(view, namespace, queues, now),
        minutes=_by_job(rows, counts),
        usual=_usual(view, namespace, rows, counts, now),
        errors=errors,
        ways_back=_ways_back(view, namespace, errors, broken),
        broken={job: one for job, one in broken.items() if _is_introduced(errors, *job)},
        pauses=pauses,
        left_out=view.records(
            "ticks_left_out", LeftOut, namespace=namespace, since=now - LEFT_OUT, lately=now - LATELY
        ),
        overdue=_overdue(view, namespace, now),
        running=_running(view, namespace, now),
        workers=workers,
        circuits=list(circuits.values()),
        paused_runs=view.records("runs_paused", RunState, namespace=namespace, most=MOST_ROWS),
        approvals=_approvals(view, namespace),
    )
    totals = _summed(list(counts.values()))
    others = sum(sum(one.others[-jobs.RECENT :]) for one in counts.values())
    settings, waits = [(row[0], row[4], row[5]) for row in queues], reader.waits(view, namespace)
    return Read(facts, totals, others, settings, waits, _peaks(rows, counts))


def usual_hour(view: View, namespace: str) -> list[tuple[int, int, int]]:
    """Successes, failures and other ends in the same hour of the last weeks, as far as there were any."""
    hour, week = view.now - view.now % HOUR, 7 * 24 * HOUR
    hours = [hour - number * week for number in range(1, USUAL_WEEKS + 1)]
    return [tuple(row[1:]) for row in view.rows("ended_in_hours", namespace=namespace, hours=hours)]


# --- Lanes, queues and counts ----------------------------------------------------------------------


def _counts(view: View, namespace: str, now: int) -> dict[int, _Counts]:
    start = now - now % MINUTE - (MINUTES - 1) * MINUTE
    found: dict[int, _Counts] = {}
    for lane, at, *values in view.rows("minutes_of_lanes", namespace=namespace, start=start):
        own = found.get(lane) or found.setdefault(lane, _Counts())
        minute = (at - start) // MINUTE
        if minute < MINUTES:
            for column, count in zip(own.columns, values, strict=True):
                column[minute] += count
    for lane, at, outcome, count in view.rows("unfolded_counts", namespace=namespace, start=start, stop=now + MINUTE):
        found.setdefault(lane, _Counts()).add((at - start) // MINUTE, outcome, count)
    return found


def _lanes(
    view: View, rows: Sequence[LaneRow], counts: Mapping[int, _Counts], circuits: Mapping[str, Circuit], now: int
) -> list[Lane]:
    running = {lane: count for lane, count, _ in view.rows("running_in_lanes")}
    passed_s = (RATE_MINUTES - 1) * 60 + max(1, now % MINUTE // MICROSECONDS)
    return [
        Lane(
            app=row.app,
            job=row.job,
            queue=row.queue,
            requirements=row.requirements,
            runs=row.runs,
            is_paused=bool(row.paused),
            may_start=may_start(row.requirements, circuits, now),
            ready=row.ready,
            oldest_at=row.oldest_at,
            running=running.get(row.id, 0),
            arrivals_per_s=sum(own.created[-RATE_MINUTES:]) / passed_s,
            ended_per_s=sum(map(sum, (own.success[-RATE_MINUTES:], own.failed[-RATE_MINUTES:]))) / passed_s,
        )
        for row in rows
        for own in (counts.get(row.id) or _Counts(),)
    ]


def _with_stuck(view: View, rows: Sequence[LaneRow], lanes: Sequence[Lane], workers: Sequence[Worker]) -> list[Lane]:
    """With the open executions of the lanes that no live worker can run."""
    live = queue_rules.claiming(Facts(now=view.now, workers=list(workers)))
    found, looked = list(lanes), 0
    for place, (row, lane) in enumerate(zip(rows, lanes, strict=True)):
        lack = queue_rules.lacks(lane, live)
        if looked < MOST_ROWS and (lack == Lack.PROCESS or (lack != Lack.NOTHING and lane.ready)):
            looked += 1
            opened = view.rows("open_in_lane", lane=row.id, since=view.now - CLAIMED, most=MOST_OPEN)
            found[place] = _stuck(lane, opened, is_claimed=lack == Lack.PROCESS)
    return found


def _stuck(lane: Lane, rows: Sequence[Row], *, is_claimed: bool) -> Lane:
    """Each row has the id, when it was due, its start deadline, and whether it is not ready."""
    own = [row for row in rows if is_claimed or not row[3]]
    oldest = min(own, key=lambda row: (row[1], row[0]), default=None)
    if oldest is None:
        return lane
    skip_at = min((row[2] for row in own if row[2] is not None), default=None)
    stuck = sum(row[3] for row in own)
    return msgspec.structs.replace(lane, stuck=stuck, oldest_at=oldest[1], oldest_open=str(oldest[0]), skip_at=skip_at)


def _by_job(rows: Sequence[LaneRow], counts: Mapping[int, _Counts]) -> dict[tuple[str, str], Minutes]:
    """The counts of each job that has created or ended executions."""
    own: dict[tuple[str, str], list[_Counts]] = {}
    for row in rows:
        if row.id in counts:
            own.setdefault((row.app, row.job), []).append(counts[row.id])
    return {job: _summed(several) for job, several in own.items()}


def _summed(several: Sequence[_Counts]) -> Minutes:
    def total(name: str) -> list[int]:
        columns = [getattr(one, name) for one in several]
        return [sum(minute) for minute in zip(*columns, strict=True)] if columns else [0] * MINUTES

    return Minutes(total("success"), total("failed"), total("created"))


def _peaks(rows: Sequence[LaneRow], counts: Mapping[int, _Counts]) -> dict[str, float]:
    own: dict[str, list[_Counts]] = {}
    for row in rows:
        if row.id in counts:
            own.setdefault(row.queue, []).append(counts[row.id])
    ended = {queue: _summed(several) for queue, several in own.items()}
    return {queue: max(map(sum, zip(one.success, one.failed, strict=True))) / 60 for queue, one in ended.items()}


def _usual(
    view: View, namespace: str, rows: Sequence[LaneRow], counts: Mapping[int, _Counts], now: int
) -> dict[tuple[str, str], Usual]:
    """For jobs with failures in the last minutes: how many executions ended in the days before."""
    failing = {row.id: (row.app, row.job) for row in rows if row.id in counts and any(counts[row.id].failed)}
    if not failing:
        return {}
    stop = now - now % HOUR - HOUR
    bounds = {"start": stop - USUAL_HOURS * HOUR, "stop": stop}
    found: dict[tuple[str, str], Usual] = {}
    for lane, success, failed in view.rows("usual_of_lanes", namespace=namespace, lanes=sorted(failing), **bounds):
        before = found.get(failing[lane], Usual(0, 0))
        found[failing[lane]] = Usual(before.success + success, before.failed + failed)
    return found


def _queues(view: View, namespace: str, rows: Sequence[Row], now: int) -> list[QueueState]:
    start = now - now % MINUTE - (MINUTES - 1) * MINUTE
    depths: dict[str, list[int | None]] = {}
    for queue, at, queued in view.rows("depths_of_queues", namespace=namespace, start=start):
        depths.setdefault(queue, [None] * MINUTES)[min(MINUTES - 1, (at - start) // MINUTE)] = queued
    return [QueueState(row[0], row[1], row[2], row[3], depths.get(row[0], [])) for row in rows]


# --- Versions ---------------------------------------------------------------------------------------


def _ways_back(
    view: View, namespace: str, errors: Sequence[ErrorCount], broken: Mapping[tuple[str, str], BrokenVersion]
) -> dict[tuple[str, str], WayBack]:
    """For the error of each job with most new letters, if it came with a version that is not the first one."""
    versions: dict[tuple[str, str], tuple[int | None, int | None]] = {}
    for one in sorted(errors, key=lambda one: -one.new):
        if one.new or (one.app, one.job) in broken:
            versions.setdefault((one.app, one.job), (one.first_version, one.last_version))
    for job, known in broken.items():
        versions.setdefault(job, (known.version, known.version))
    found = {
        job: error_reader.way_back(view, namespace, *job, *first_and_last)
        for job, first_and_last in list(versions.items())[:MOST_JOBS]
    }
    return {job: way for job, way in found.items() if way is not None}


def _broken(
    view: View, namespace: str, pauses: Sequence[JobPause], groups: Sequence[ErrorGroup]
) -> dict[tuple[str, str], BrokenVersion]:
    """Among the jobs that were paused last and those with the newest dead letters: whose version in force only fails.

    Dead letters alone do not tell: they may be replayed or discarded while the version stays in force.
    """
    known = [(one.at, one.app, one.job) for one in pauses] + [(one.last_at, one.app, one.job) for one in groups]
    jobs = list(dict.fromkeys((app, job) for _, app, job in sorted(known, reverse=True)))[:MOST_BROKEN]
    if not jobs:
        return {}
    found = {}
    for app, job, version, number, registered_at in view.rows(
        "later_versions_in_force", namespace=namespace, jobs=jobs
    ):
        about = {"namespace": namespace, "app": app, "job": job, "number": number}
        ends = view.rows("ends_of_version", **about, lowest=first_at(registered_at - SKEW), looks=LOOKS)
        failed = [at for status, at in ends if status == "failed"]
        if failed and all(status == "failed" for status, at in ends if at >= failed[0]):
            found[app, job] = BrokenVersion(version, failed[0], len(failed))
    return found


def _is_introduced(errors: Sequence[ErrorCount], app: str, job: str) -> bool:
    """False if all errors of a job are known to be older than its second version."""
    versions = [one.first_version for one in errors if (one.app, one.job) == (app, job)]
    return not versions or any(version is None or version > 1 for version in versions)


# --- Schedules, executions, workers, runs -----------------------------------------------------------


def _overdue(view: View, namespace: str, now: int) -> list[Overdue]:
    shards = [(number,) for number in range(SHARDS)]
    about = {"namespace": namespace, "shards": shards, "before": now - OVERDUE, "most": MOST_ROWS}
    return view.records("schedules_overdue", Overdue, **about)


def _running(view: View, namespace: str, now: int) -> list[Running]:
    rows = view.rows("longest_running", namespace=namespace, before=now - jobs.LEAST_LONG, most=MOST_ROWS)
    took: dict[tuple[str, str], list[int]] = {}
    found = []
    for id, app, job, started_at, attempts, done, total, schedule, left_out in rows:
        if (app, job) not in took:
            took[app, job] = durations(view, namespace, app, job, id) if len(took) < MOST_JOBS else []
        found.append(
            Running(
                id=id,
                app=app,
                job=job,
                started_at=started_at,
                attempt=attempts + 1,
                took=took[app, job],
                percent=_percent(done, total),
                schedule=schedule,
                left_out=int(left_out or 0),
            )
        )
    return found


def durations(view: View, namespace: str, app: str, job: str, before: str) -> list[int]:
    """How long the last successes of a job took, of those that were created before this execution."""
    about = {"namespace": namespace, "app": app, "job": job, "before": before}
    return [int(row[0]) for row in view.rows("durations_before", **about, looks=LOOKS, most=LAST_RUNS)]


def _percent(done: float | None, total: float | None) -> int | None:
    return None if not total or done is None or not 0 <= done <= total else min(99, int(100 * done / total))


def _workers(view: View, namespace: str, now: int) -> list[Worker]:
    found = []
    for row in reader.workers(view, namespace, now - STOPPED):
        ended = msgspec.json.decode(row.ended, type=dict[str, int | str]) if row.ended else {}
        found.append(
            Worker(
                id=row.id,
                name=row.name,
                app=row.app,
                state=row.state,
                queues=msgspec.json.decode(row.queues, type=list[str] | None),
                jobs=msgspec.json.decode(row.jobs, type=frozenset[str]),
                offers=row.offers,
                slots=row.concurrency,
                busy=row.running,
                lease_until=row.lease_until,
                started_at=row.started_at,
                stopped_at=row.stopped_at,
                trouble=msgspec.json.decode(row.trouble, type=dict[str, str]) if row.trouble else {},
                beats=row.beats,
                held=int(ended.get("held", 0)),
                cause=str(ended.get("cause", "")),
            )
        )
    return found


def _approvals(view: View, namespace: str) -> list[Approval]:
    return [
        Approval(id, run, app, _question(arguments), created_at, deadline)
        for id, run, app, arguments, created_at, deadline in view.rows(
            "unanswered", namespace=namespace, most=MOST_ROWS
        )
    ]


def _question(arguments: str) -> str:
    asked = wait.of_execution(wait.APPROVAL_JOB, arguments)
    return asked.text if isinstance(asked, Approve) and isinstance(asked.text, str) else "an approval"
