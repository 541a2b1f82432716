"""Everything that is only read: executions, attempts, dead letters, queues, workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rota.domain import requirement
from rota.domain.errors import UnknownExecution, UsageError
from rota.domain.standing import MOST_COUNTED, Standing
from rota.domain.status import TERMINAL, Status
from rota.ids import LAST_ID, is_id, range_of
from rota.store.port import View, asks_once


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


class JobRow(msgspec.Struct, frozen=True, array_like=True):
    """A job as it is registered; the definition is JSON."""

    app: str
    name: str
    definition: str
    paused_at: int | None
    paused_by: str | None
    paused_note: str | None


class Stranded(msgspec.Struct, frozen=True, array_like=True):
    """Work of an app that no live worker would claim. `queued` counts up to a bound."""

    app: str
    queue: str
    queued: int
    requirements: str
    offers: str | None

    @property
    def is_stranded(self) -> bool:
        return not any(requirement.fits(self.requirements, one) for one in _offers(self.offers))


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
    found = view.one("status_of", namespace=namespace, id=known(id))
    if found is None:
        raise UnknownExecution(f"there is no execution {id}")
    return Status(found[0])


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


@asks_once
def has_ready(view: View, namespace: str, app: str, queues: Sequence[str] | None) -> bool:
    """Whether a claim would find anything: a look without a transaction, so that an idle worker writes nothing."""
    wanted = {"all_queues": queues is None, "queues": list(queues or ())}
    return view.one("has_ready", namespace=namespace, app=app, **wanted) is not None


@asks_once
def cancels(view: View, worker: int) -> list[str]:
    """What this worker holds and was asked to stop."""
    return [row[0] for row in view.rows("cancels_of_worker", worker=worker)]


@asks_once
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


def standing(view: View, namespace: str, id: str) -> tuple[Standing, int]:
    """What a claim of this execution would look at, and the instant for which that holds."""
    found = view.records("standing", Standing, namespace=namespace, id=known(id), most=MOST_COUNTED + 1)
    if not found:
        raise UnknownExecution(f"there is no execution {id}")
    circuits, troubles = (
        msgspec.json.encode(sorted(msgspec.json.decode(listed or "[]"))).decode()
        for listed in (found[0].circuits, found[0].troubles)
    )
    offers = _in_order(found[0].offers)
    return msgspec.structs.replace(found[0], offers=offers, circuits=circuits, troubles=troubles), view.now


def stranded(view: View, namespace: str) -> list[Stranded]:
    """Waiting work that no live worker would take, by app, queue and needs; paused queues are not counted."""
    rows = view.records("stranded", Stranded, namespace=namespace, most=MOST_COUNTED + 1)
    return [msgspec.structs.replace(row, offers=_in_order(row.offers)) for row in rows if row.is_stranded]


def _in_order(listed: str | None) -> str:
    """The same list in the same words, whichever database has made it."""
    return msgspec.json.encode(sorted(_offers(listed))).decode()


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
