"""Reads executions, attempts, dead letters, queues and workers."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain.blocker import Kind
from rota.domain.errors import UnknownExecution, UsageError
from rota.domain.served import Served
from rota.domain.status import TERMINAL, Status
from rota.ids import LAST_ID, is_id
from rota.store.port import View, operation

MOST_WAITING = 10_000
"""At most this many waiting executions are counted by what they wait for."""

NEWEST = 10_000
"""How many ids of a table are searched for their ends."""


class ExecutionRow(msgspec.Struct, frozen=True, array_like=True):
    """An execution and its state. Columns that were not asked for are None, and arguments `null`."""

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
    """The error of the last ended attempt, as JSON."""
    job_id: str | None
    schedule: str | None
    tick: int | None
    catch_up: int | None
    headers: str | None
    overrides: str | None
    run: str | None
    step: int | None
    map_index: int | None
    upstream: str | None
    event: str | None
    inputs: str | None
    """Of a step: the references to values of other steps among its arguments, as JSON."""
    result: str | None
    """As JSON; None until it has succeeded."""


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
    usage: str | None = None
    worker_id: int | None = None
    number: int = 1
    """As the function saw it: it counts the attempts before it that count towards the retries."""


class Ending(msgspec.Struct, frozen=True, array_like=True):
    """How an execution ended. `attempts` are those that count towards the retries."""

    status: Status
    reason: str
    result: str | None
    error: str | None
    app: str
    job: str
    attempts: int


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
    revision: int


class WaitRow(msgspec.Struct, frozen=True, array_like=True):
    """How many executions of a job wait in a queue behind blockers of one kind."""

    queue: str
    app: str
    job: str
    kind: Kind
    is_job_paused: int
    count: int


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
    """Why it cannot start processes, as JSON: the reasons by purpose."""
    deploy: int | None = None
    jobs: str = "[]"
    """The jobs that it can run, as JSON."""
    beats: str = ""
    """A digit for each of the last heartbeats: by how many periods it came late."""
    ended: str | None = None
    """The executions that it held when it stopped: how many, and how they continued, as JSON."""
    memory: int | None = None
    """The bytes that the process had in use at the last heartbeat."""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which executions to list, newest first. `error` is a part of the error's text and looks only at ended ones.

    With `run` only the steps of this run are listed, with `step` only those with this number.
    """

    status: Status | None = None
    job: str | None = None
    app: str | None = None
    queue: str | None = None
    since: int | None = None
    error: str | None = None
    run: str | None = None
    step: int | None = None
    before: str = LAST_ID
    limit: int = 50


def known(id: str) -> str:
    """Refuses a text that cannot be an id."""
    if not is_id(id):
        raise unknown(id)
    return id


def unknown(id: str) -> UnknownExecution:
    return UnknownExecution(f"there is no execution {id}")


def execution(view: View, namespace: str, id: str) -> ExecutionRow:
    found = executions_of(view, namespace, [known(id)])
    if not found:
        raise unknown(id)
    return found[0]


def position(before: str) -> str:
    """Refuses the start of a page that is not an id."""
    if not is_id(before):
        raise UsageError(f"{before!r} is not an id: give the last id of the page before")
    return before


def ids_between(view: View, namespace: str, lowest: str, highest: str, most: int) -> list[str]:
    """The newest first."""
    rows = view.rows("ids_between", namespace=namespace, lowest=lowest, highest=highest, most=most)
    return [str(row[0]) for row in rows]


def ids_ending(view: View, namespace: str, end: str) -> list[str]:
    """The ids that end with `end`, among dead letters, the newest executions, and the unfinished ones of each state."""
    rows = view.rows("ids_ending", namespace=namespace, pattern=f"%{end}", newest=NEWEST)
    return [str(row[0]) for row in rows]


FIRST_FENCE, LAST_FENCE = -1, 2**31 - 1


def attempts(
    view: View,
    namespace: str,
    id: str,
    after: int | None = None,
    most: int | None = None,
    *,
    is_ascending: bool = True,
) -> list[AttemptRow]:
    """The attempts behind one with this fence, in the order of the fences, or the newest first."""
    statement = "attempts_asc" if is_ascending else "attempts"
    start = after if after is not None else FIRST_FENCE if is_ascending else LAST_FENCE
    most = LAST_FENCE if most is None else most
    found = view.records(statement, AttemptRow, namespace=namespace, id=known(id), after=start, most=most)
    if not found and view.one("exists", namespace=namespace, id=id) is None:
        raise unknown(id)
    return found


@operation(is_repeatable=True)
def ending(view: View, namespace: str, id: str) -> Ending | None:
    """How the execution ended; None if it has not."""
    found = view.one("ending", namespace=namespace, id=known(id))
    if found is None:
        raise unknown(id)
    status, *others = found
    return None if status is None else Ending(Status(status), *others)


class RunEnd(msgspec.Struct, frozen=True, array_like=True):
    """How a run has ended; `result` and `error` are JSON."""

    id: str
    job: str
    status: str
    reason: str
    result: str | None
    error: str | None


def ends_of_runs(view: View, ids: Sequence[str]) -> list[RunEnd]:
    return view.records("ends_of_runs", RunEnd, ids=list(ids))


def replayed_as(view: View, id: str) -> str | None:
    """The last replay of an ended execution."""
    found = view.one("replayed_as", id=known(id))
    return None if found is None else found[0]


def status(view: View, namespace: str, id: str) -> Status:
    found = view.one("current_statuses", namespace=namespace, ids=[known(id)])
    if found is None:
        raise unknown(id)
    return Status(found[1])


def unended(view: View, namespace: str, ids: Sequence[str]) -> list[str]:
    """Those of the executions that exist and have not ended."""
    rows = view.rows("current_statuses", namespace=namespace, ids=list(ids)) if ids else []
    return [row[0] for row in rows if row[1] not in TERMINAL]


def ended(view: View, waited: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of the executions, each with its namespace, that have ended or are not there."""
    ids = [id for _, id in waited]
    rows = view.rows("unended_of", ids=ids, lowest=min(ids), highest=max(ids)) if ids else []
    return set(waited) - {(str(row[0]), str(row[1])) for row in rows}


def executions_of(
    view: View,
    namespace: str,
    ids: Sequence[str],
    *,
    arguments: bool = True,
    error: bool = True,
    headers: bool = True,
    result: bool = False,
) -> list[ExecutionRow]:
    """Newest first. Columns that may be large are read only if they are asked for."""
    if not ids:
        return []
    asked = {"with_arguments": arguments, "with_error": error, "with_headers": headers, "with_result": result}
    where = {"namespace": namespace, "ids": list(ids), "lowest": min(ids), "highest": max(ids)}
    return view.records("executions", ExecutionRow, **where, **asked)


def page_of_steps(
    view: View,
    run: str,
    number: int | None,
    status: str | None,
    before: str,
    most: int,
    *,
    is_ascending: bool = False,
) -> list[str]:
    """The ids of the executions of a run, or of one of its steps: the newest first, unless `is_ascending`."""
    name = "page_of_steps_asc" if is_ascending else "page_of_steps"
    bounds = {"run": run, "number": number, "status": status, "before": position(before), "most": most}
    return [row[0] for row in view.rows(name, **bounds)]


def dead(view: View, namespace: str, wanted: Filter, reason: str | None = None) -> list[DeadRow]:
    return view.records(
        "dead_letters",
        DeadRow,
        namespace=namespace,
        app=wanted.app,
        job=wanted.job,
        queue=wanted.queue,
        reason=reason,
        since=wanted.since,
        error=wanted.error,
        before=position(wanted.before),
        most=wanted.limit,
    )


@operation(is_repeatable=True)
def has_ready(view: View, served: Served) -> bool:
    """Whether a claim would find an execution: an idle worker checks this with a plain read, without a transaction."""
    return view.one("has_ready", jobs=served.jobs, **served.where()) is not None


@operation(is_repeatable=True)
def cancels(view: View, worker: int) -> list[str]:
    """The executions of this worker that are to be cancelled."""
    return [row[0] for row in view.rows("cancels_of_worker", worker=worker)]


@operation(is_repeatable=True)
def holds_more(view: View, worker: int, named: Sequence[str]) -> bool:
    """Whether the worker has executions in the store besides the named ones."""
    return view.one("unnamed_of_worker", worker=worker, named=list(named)) is not None


def queues(view: View, namespace: str, name: str | None = None) -> list[QueueRow]:
    """All of them, or the one of this name."""
    return view.records("queues", QueueRow, namespace=namespace, every=name is None, name=name or "")


def waits(view: View, namespace: str, queue: str | None = None) -> list[WaitRow]:
    """What executions wait for in all queues or in one, most first. At most `MOST_WAITING` executions are counted."""
    about = {"namespace": namespace, "every": queue is None, "name": queue or "", "most": MOST_WAITING}
    return view.records("waiting_by_kind", WaitRow, **about)


def workers(view: View, namespace: str, since: int) -> list[WorkerRow]:
    """Live workers, and those that stopped at or after `since`."""
    return view.records("workers", WorkerRow, namespace=namespace, since=since)


def apps_of_job(view: View, namespace: str, job: str) -> list[str]:
    """The apps that have a job of this name."""
    return [row[0] for row in view.rows("apps_of_job", namespace=namespace, job=job)]


def definition(view: View, namespace: str, app: str, job: str) -> str | None:
    """The registered definition as JSON; None if the app has no such job."""
    found = view.one("job_definition", namespace=namespace, app=app, job=job)
    return None if found is None else str(found[0])


def clock(view: View) -> tuple[int, int]:
    """The database's time, and the newest time in its rows, which is later only if a clock was set back."""
    (now,), (newest,) = view.rows("clock")[0], view.rows("newest")[0]
    return now, newest


def database(view: View) -> str:
    """The kind and the version of the database."""
    return str(view.rows("database")[0][0])


def are_dead(view: View, namespace: str, ids: Sequence[str]) -> set[str]:
    """Those of `ids` that are dead letters."""
    return {row[0] for row in view.rows("dead_of", namespace=namespace, ids=[id for id in ids if is_id(id)])}


def dead_count(view: View, namespace: str) -> int:
    return int(view.rows("dead_count", namespace=namespace)[0][0])
