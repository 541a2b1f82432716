"""Everything that is only read: executions, attempts, dead letters, queues, workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rota.domain import requirement
from rota.domain.errors import UnknownExecution, UsageError
from rota.domain.served import Served
from rota.domain.status import TERMINAL, Status
from rota.ids import LAST_ID, is_id, range_of
from rota.store.port import View, operation

MOST_COUNTED = 10_000
"""Executions ahead of another are counted up to here."""


class ExecutionRow(msgspec.Struct, frozen=True, array_like=True):
    """An execution and where it stands."""

    id: str
    namespace: str
    app: str
    job: str
    job_version: int
    queue: str
    priority: int
    actor: str
    arguments: str
    key: str | None
    created_at: int
    run_at: int
    deadline: int | None
    parent: str | None
    replay_of: str | None
    tags: str | None
    status: Status
    reason: str
    fence: int
    attempts: int
    crashes: int
    due_at: int | None
    started_at: int | None
    finished_at: int | None
    cancel_at: int | None
    worker: str | None
    worker_id: int | None
    heartbeat_at: int | None
    error: str | None
    """Of the last attempt that has ended, as JSON."""
    job_id: str | None
    schedule: str | None
    tick: int | None
    catch_up: int | None
    headers: str | None
    overrides: str | None


class AttemptRow(msgspec.Struct, frozen=True, array_like=True):
    """One attempt, or the end of an execution that was never started."""

    id: str
    fence: int
    final: int
    status: str
    reason: str
    attempts: int
    crashes: int
    worker: str | None
    started_at: int | None
    finished_at: int
    result: str | None
    error: str | None


class Ending(msgspec.Struct, frozen=True, array_like=True):
    """How an execution ended."""

    status: Status
    reason: str
    result: str | None
    error: str | None


class DeadRow(msgspec.Struct, frozen=True, array_like=True):
    """A dead letter."""

    id: str
    app: str
    job: str
    queue: str
    reason: str
    failed_at: int
    error: str | None


class QueueRow(msgspec.Struct, frozen=True, array_like=True):
    """A queue and how full it is."""

    name: str
    policy: str
    max_depth: int | None
    paused_at: int | None
    paused_by: str | None
    paused_note: str | None
    queued: int
    scheduled: int
    running: int
    waiting: int
    oldest_at: int | None
    dead: int


class WorkerRow(msgspec.Struct, frozen=True, array_like=True):
    """One incarnation of a worker process."""

    id: int
    app: str
    name: str
    host: str
    pid: int
    version: str
    offers: str
    queues: str
    concurrency: int
    state: str
    started_at: int
    heartbeat_at: int
    lease_until: int
    stopped_at: int | None
    running: int
    supervisor: str = ""
    least: int = 1
    most: int = 1
    trouble: str | None = None
    """Why it cannot start processes, as JSON: the reasons by what they are for."""
    deploy: int | None = None
    jobs: str = "[]"
    """The jobs that it can run, as JSON."""


class JobRow(msgspec.Struct, frozen=True, array_like=True):
    """A job as it is registered; the definition is JSON."""

    app: str
    name: str
    definition: str
    paused_at: int | None
    paused_by: str | None
    paused_note: str | None
    id: str
    version: int


class Stranded(msgspec.Struct, frozen=True, array_like=True):
    """Work of an app that no live worker would claim. `queued` counts up to a bound for each job."""

    app: str
    queue: str
    queued: int
    requirements: str
    job: str
    """The job, if live workers serve the queue and none of them has it; else empty."""


class ClaimFacts(msgspec.Struct, frozen=True, array_like=True):
    """The values that the conditions of a claim depend on, for one execution.

    `ahead` counts up to `MOST_COUNTED` in the queue, of all jobs with the same needs. `live_workers` serve the queue;
    `offers` and `troubles` are of those that have the job.
    """

    status: Status
    app: str
    queue: str
    reason: str
    due_at: int | None
    paused_at: int | None
    paused_by: str | None
    paused_note: str | None
    live_workers: int
    offers: str | None
    requirements: str | None
    ahead: int
    cancel_at: int | None
    lease_until: int | None
    circuits: str | None = None
    """Open breakers of the namespace, as JSON: the name, and when one may try."""
    job: str = ""
    job_paused_at: int | None = None
    job_paused_by: str | None = None
    job_paused_note: str | None = None
    troubles: str | None = None
    """What live workers offer, as JSON, each with the reasons why it cannot start processes, by what they are for."""
    blockers: str | None = None
    """Of a waiting execution, as JSON: kinds and keys."""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which executions to list, newest first. `error` is a part of the error's text and looks only at ended ones."""

    status: Status | None = None
    job: str | None = None
    app: str | None = None
    queue: str | None = None
    since: int | None = None
    error: str | None = None
    before: str = LAST_ID
    limit: int = 50


def known(id: str) -> str:
    """`id`, unless no execution can have it."""
    if not is_id(id):
        raise UnknownExecution(f"there is no execution {id}")
    return id


def execution(view: View, namespace: str, id: str) -> ExecutionRow:
    found = view.records("execution", ExecutionRow, namespace=namespace, ids=[known(id)])
    if not found:
        raise UnknownExecution(f"there is no execution {id}")
    return found[0]


def _position(before: str) -> str:
    if not is_id(before):
        raise UsageError(f"{before!r} is no id: a page goes on before the last id of the page before it")
    return before


def resolve(view: View, namespace: str, prefix: str) -> str:
    """The id that starts with `prefix`, if there is exactly one."""
    bounds = range_of(prefix.lower())
    found = (
        [row[0] for row in view.rows("ids_like", namespace=namespace, lowest=bounds[0], highest=bounds[1])]
        if bounds
        else []
    )
    if len(found) == 1:
        return str(found[0])
    if not found:
        raise UnknownExecution(f"there is no execution {prefix}; `rota executions` lists them")
    raise UsageError(f"{prefix} could be {found[0]} or {found[1]}: give more of the id")


def attempts(view: View, namespace: str, id: str) -> list[AttemptRow]:
    found = view.records("attempts", AttemptRow, namespace=namespace, id=known(id))
    if not found and view.one("exists", namespace=namespace, id=id) is None:
        raise UnknownExecution(f"there is no execution {id}")
    return found


def ending(view: View, namespace: str, id: str) -> Ending | None:
    """How the execution ended; None if it has not."""
    found = view.records("ending", Ending, namespace=namespace, id=known(id))
    if not found and view.one("exists", namespace=namespace, id=id) is None:
        raise UnknownExecution(f"there is no execution {id}")
    return found[0] if found else None


def status(view: View, namespace: str, id: str) -> Status:
    found = view.one("standings", namespace=namespace, ids=[known(id)])
    if found is None:
        raise UnknownExecution(f"there is no execution {id}")
    return Status(found[1])


def executions(view: View, namespace: str, wanted: Filter) -> list[ExecutionRow]:
    """A page of executions; the page after it starts `before` the last id of this one."""
    common = {
        "namespace": namespace,
        "app": wanted.app,
        "queue": wanted.queue,
        "since": wanted.since,
        "before": _position(wanted.before),
        "most": wanted.limit,
    }
    ids = [row[0] for row in _page(view, wanted, common)]
    return view.records("execution", ExecutionRow, namespace=namespace, ids=ids)


def _page(view: View, wanted: Filter, common: dict[str, Any]) -> list[tuple[Any, ...]]:
    status = wanted.status or (Status.FAILED if wanted.error else None)
    if status in TERMINAL:
        if status is Status.SUCCESS:
            return view.rows("page_succeeded", **common, job=wanted.job)
        return view.rows("page_ended", **common, status=status.value, job=wanted.job, error=wanted.error)
    if status is not None:
        return view.rows("page_live", **common, status=status.value, job=wanted.job)
    if wanted.job is not None:
        return view.rows("page_of_job", **common, job=wanted.job)
    return view.rows("page_all", **common)


def dead(view: View, namespace: str, wanted: Filter, reason: str | None = None) -> list[DeadRow]:
    return view.records(
        "dead_letters",
        DeadRow,
        namespace=namespace,
        job=wanted.job,
        queue=wanted.queue,
        reason=reason,
        since=wanted.since,
        error=wanted.error,
        before=_position(wanted.before),
        most=wanted.limit,
    )


@operation(is_repeatable=True)
def has_ready(view: View, served: Served) -> bool:
    """Whether a claim would find anything: a look without a transaction, so that an idle worker writes nothing."""
    return view.one("has_ready", jobs=served.jobs, **served.where()) is not None


@operation(is_repeatable=True)
def cancels(view: View, worker: int) -> list[str]:
    """What this worker holds and was asked to stop."""
    return [row[0] for row in view.rows("cancels_of_worker", worker=worker)]


@operation(is_repeatable=True)
def holds_more(view: View, worker: int, named: Sequence[str]) -> bool:
    """Whether the store says that the worker holds anything that it did not name."""
    return view.one("unnamed_of_worker", worker=worker, named=list(named)) is not None


def queues(view: View, namespace: str) -> list[QueueRow]:
    return view.records("queues", QueueRow, namespace=namespace)


def workers(view: View, namespace: str, since: int) -> list[WorkerRow]:
    """Live workers, and those that stopped at or after `since`."""
    return view.records("workers", WorkerRow, namespace=namespace, since=since)


def jobs(view: View, namespace: str) -> list[JobRow]:
    return view.records("jobs", JobRow, namespace=namespace)


def apps_of_job(view: View, namespace: str, job: str) -> list[str]:
    """The apps that have a job of this name."""
    return [row[0] for row in view.rows("apps_of_job", namespace=namespace, job=job)]


def definition(view: View, namespace: str, app: str, job: str) -> str | None:
    """The registered definition as JSON; None if the app has no such job."""
    found = view.one("job_definition", namespace=namespace, app=app, job=job)
    return None if found is None else str(found[0])


def claim_facts(view: View, namespace: str, id: str) -> ClaimFacts:
    """What a claim of this execution would look at."""
    found = view.records("claim_facts", ClaimFacts, namespace=namespace, id=known(id), most=MOST_COUNTED + 1)
    if not found:
        raise UnknownExecution(f"there is no execution {id}")
    facts = found[0]
    # Databases order aggregates differently.
    listed = {name: _in_order(getattr(facts, name)) for name in ("offers", "circuits", "troubles", "blockers")}
    return msgspec.structs.replace(facts, **listed)


def stranded(view: View, namespace: str) -> list[Stranded]:
    """Waiting work that no live worker would take, by app, queue and needs; paused queues are not counted."""
    found: dict[tuple[str, str, str, str], int] = {}
    for app, queue, requirements, job, queued, live, listed in view.rows(
        "stranded", namespace=namespace, most=MOST_COUNTED + 1
    ):
        offers = _offers(listed)
        if not any(requirement.fits(requirements, one) for one in offers):
            key = (app, queue, requirements, job if live and not offers else "")
            found[key] = found.get(key, 0) + queued
    return [
        Stranded(app, queue, queued, requirements, job) for (app, queue, requirements, job), queued in found.items()
    ]


def _in_order(listed: str | None) -> str:
    return msgspec.json.encode(sorted(msgspec.json.decode(listed or "[]"))).decode()


def _offers(listed: str | None) -> list[str]:
    return msgspec.json.decode(listed, type=list[str]) if listed else []


def clock(view: View) -> tuple[int, int]:
    """The database's time, and the newest instant that it holds; the second is not after the first."""
    (now,), (newest,) = view.rows("clock")[0], view.rows("newest")[0]
    return now, newest


def are_dead(view: View, namespace: str, ids: Sequence[str]) -> set[str]:
    """Those of `ids` that are dead letters."""
    return {row[0] for row in view.rows("dead_of", namespace=namespace, ids=[id for id in ids if is_id(id)])}


def dead_count(view: View, namespace: str) -> int:
    return int(view.rows("dead_count", namespace=namespace)[0][0])
