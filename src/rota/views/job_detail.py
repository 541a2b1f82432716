"""A job: what was defined, and how it stands, by its newest executions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from rota.domain import parameter_schema, trigger_words
from rota.domain.dependency import JobRef, label
from rota.domain.instant import moment
from rota.domain.job import Definition
from rota.domain.schedule import decode as decode_spec
from rota.domain.status import TERMINAL, Status
from rota.executors import kinds
from rota.store import definition_reader as reader
from rota.store import dependencies, notes
from rota.store.definition_reader import JobRow, RecentExecution, ScheduleOfJob
from rota.store.port import View
from rota.views import progress
from rota.views.shape import Paused, Shape, paused, seconds

LAST_OUTCOMES = 20
_source = msgspec.json.Decoder(dict[str, Any]).decode


class JobSchedule(Shape, frozen=True):
    """A schedule of a job, in short."""

    schedule_id: str
    name: str
    words: str
    next_at: datetime | None
    paused: Paused | None


class LastExecution(Shape, frozen=True):
    """The newest execution of a job."""

    execution_id: str
    status: Status
    reason: str
    started_at: datetime | None
    completed_at: datetime | None


class MadeOf(Shape, frozen=True):
    """The template that a job was made of."""

    name: str
    version: int


class JobState(Shape, frozen=True, kw_only=True):
    """How a job stands. `status`, `startedAt` and `progress` are of the execution that it is about."""

    job_id: str
    status: str
    """`paused`, `scheduled`, `active`, or the status of the execution that says most about the job."""
    started_at: datetime | None
    """When the execution that `status` speaks of began to run; null if none has."""
    progress: int | None
    """How far the execution that `status` speaks of is, in whole per cent; null if it has not reported any."""
    name: str
    app: str
    state: str
    """`active`, `paused` or `deleted`."""
    origin: str
    version: int
    paused: Paused | None
    schedules: list[JobSchedule]
    next_at: datetime | None
    last_execution: LastExecution | None
    """The newest execution; null if there is none."""
    created_at: datetime
    created_by: str | None
    updated_at: datetime
    template: MadeOf | None
    """The template that it is made of; null if there is none."""
    met: dict[str, str]
    """By the name of each job that it depends on and that has ended as needed since the last start: its execution."""


class LastOutcome(Shape, frozen=True):
    """One of the newest executions of a job. `tookS` is the time of its last attempt (so far); null if it never ran."""

    execution_id: str
    status: Status
    started_at: datetime | None
    took_s: float | None
    """How many seconds its last attempt ran, or has run; null if it never ran."""


class Job(JobState, frozen=True, kw_only=True):
    """A job: how it stands, and what was defined. `retries: 3` is four attempts; `timeout: 0` is no bound.

    `lastOutcomes` are its last 20 executions, newest first; null unless `fields` names it.
    """

    last_outcomes: list[LastOutcome] | None = None
    """The last 20 executions, newest first; null unless `fields` names it."""

    command: str | list[Any] | None = None
    environment: dict[str, Any] | None = None
    inherits: list[str] | None = None
    directory: str | None = None
    success_codes: list[int] | None = None
    retry_codes: list[int] | None = None
    permanent_codes: list[int] | None = None
    result: str | None = None
    """What becomes the result of a command: none, json or text."""
    memory: int | str | None = None
    grace: int | float | str | None = None
    http: dict[str, Any] | None = None
    function: dict[str, Any] | None = None
    isolation: str | None = None
    """`process` if each execution of the function runs in a process of its own; null otherwise. Only of code."""
    parameters: dict[str, Any] | None = None
    """The JSON Schema of its arguments, or the values for its template; null if there are none."""
    schedule: Any = None
    on: Any = None
    """The events that start it."""
    dependencies: list[Any] = msgspec.field(default_factory=list)
    arguments: dict[str, Any] | None = None
    """The arguments of executions that its schedule or its dependencies start."""
    queue: str = "default"
    priority: int = 0
    retries: int | None = None
    retry: dict[str, Any] | None = None
    timeout: float = 0
    total_timeout: float | None = None
    start_within: float | None = None
    progress_timeout: float | None = None
    time_slice: float | None = None
    """How many seconds an attempt may run before it returns to the queue at its next checkpoint; only of code."""
    pool: str = "default"
    requires: list[str] = msgspec.field(default_factory=list)
    resources: dict[str, float] = msgspec.field(default_factory=dict)
    breakers: list[str] = msgspec.field(default_factory=list)
    affinity: str | None = None
    affinity_wait: float | None = None
    """For how many seconds an execution waits for the worker that it prefers; null without affinity."""
    pause_after: int | None = None
    tags: list[str] = msgspec.field(default_factory=list)
    description: str = ""


class JobInFull(Job, frozen=True, kw_only=True):
    """A job with its definition, which PUT takes as it is. A write adds warnings."""

    definition: dict[str, Any]
    warnings: list[str] = msgspec.field(default_factory=list)


def jobs(view: View, namespace: str, rows: Sequence[JobRow]) -> list[Job]:
    found = _Found(view, namespace, rows)
    return [Job(**found.members(row), **_defined(source_of(view, namespace, row))) for row in rows]


def last_outcomes(view: View, namespace: str, rows: Sequence[JobRow]) -> list[list[LastOutcome]]:
    """The last outcomes of each of these jobs."""
    newest = [reader.newest(view, namespace, row, LAST_OUTCOMES) for row in rows]
    found = reader.recent_executions(view, namespace, [id for ids in newest for id in ids])
    return [[_outcome(found[id], view.now) for id in ids if id in found] for ids in newest]


def _outcome(one: RecentExecution, now: int) -> LastOutcome:
    ended_at = now if one.finished_at is None else one.finished_at
    took = None if one.started_at is None else max(0, ended_at - one.started_at)
    return LastOutcome(one.id, one.status, _moment(one.started_at), seconds(took))


def job(view: View, namespace: str, row: JobRow, warnings: Sequence[str] = ()) -> JobInFull:
    source = source_of(view, namespace, row)
    members = _Found(view, namespace, [row]).members(row)
    return JobInFull(**members, **_defined(source), definition=source, warnings=list(warnings))


def source_of(view: View, namespace: str, row: JobRow) -> dict[str, Any]:
    """The definition as the API takes it. That of code has no schedules: these are shown beside it."""
    if row.source is not None:
        return _source(row.source)
    about = row.about
    ids = reader.ids_of(view, namespace, [(one.app, one.job) for one in about.depends_on])
    upstreams = [
        id if one.outcome == "success" else {"job": id, "on": one.outcome.value}
        for one in about.depends_on
        if (id := ids.get((one.app, one.job)))
    ]
    return of_code(row.app, about, upstreams)


def of_code(app: str, about: Definition, dependencies: list[Any]) -> dict[str, Any]:
    target = {name: value for name, value in about.target.items() if name != "kind"}
    kind, needs = about.target.get("kind", kinds.PROCESS), about.needs
    shown: dict[str, Any] = {"name": about.name, "app": app}
    match kind:
        case kinds.COMMAND:
            shown |= {"command": target.get("argv"), "environment": target.get("environment")}
            shown |= {"inherits": target.get("inherits"), "directory": target.get("directory")}
            shown |= {"successCodes": target.get("success"), "retryCodes": target.get("retry")}
            shown |= {"permanentCodes": target.get("permanent"), "result": target.get("result")}
            shown |= {"memory": target.get("memory_bytes"), "grace": target.get("grace_s")}
        case kinds.HTTP:
            shown["http"] = target
        case _:
            shown["function"] = {"app": app, "name": about.name}
    on = about.on
    return shown | {
        "parameters": parameter_schema.schema(about.parameters) if about.parameters else None,
        "on": None if on is None else {"event": on.names, "where": on.where, "debounce": on.debounce_s},
        "dependencies": dependencies,
        "queue": about.queue,
        "priority": about.priority,
        "retry": {**about.retry, "policy": str(about.retry["policy"]).lower()} if about.retry else None,
        "timeout": about.timeout_s or 0,
        "totalTimeout": about.total_timeout_s,
        "startWithin": about.start_within_s,
        "progressTimeout": about.progress_timeout_s,
        "pool": needs.pool,
        "requires": needs.tags,
        "resources": needs.resources,
        "breakers": needs.breakers,
        "affinity": needs.affinity or None,
        "pauseAfter": about.pause_after,
        "description": about.description,
    }


class _Found:
    """The data for the members of some jobs, read with few statements."""

    def __init__(self, view: View, namespace: str, rows: Sequence[JobRow]) -> None:
        self._view, self._namespace = view, namespace
        self.newest = {row.id: reader.newest(view, namespace, row) for row in rows}
        every = [id for ids in self.newest.values() for id in ids]
        self.recent_executions = reader.recent_executions(view, namespace, every)
        self.schedules: dict[tuple[str, str], list[ScheduleOfJob]] = {}
        for one in reader.schedules(view, namespace, [row.name for row in rows if row.deleted_at is None]):
            self.schedules.setdefault((one.app, one.job), []).append(one)
        self.met = met(view, namespace, rows)

    def members(self, row: JobRow) -> dict[str, Any]:
        defined = row.about
        executions = [self.recent_executions[id] for id in self.newest[row.id] if id in self.recent_executions]
        own = [] if row.deleted_at is not None else self.schedules.get((row.app, row.name), [])
        ticks = [one.next_at for one in own if one.next_at is not None and one.paused_at is None]
        status, execution = job_status(row.state, executions, has_tick=bool(ticks))
        return {
            "job_id": row.id,
            "status": status,
            "started_at": None if execution is None else _moment(execution.started_at),
            "progress": None if execution is None else self._progress(execution),
            "name": row.name,
            "app": row.app,
            "state": row.state,
            "origin": row.origin,
            "version": row.version - row.base,
            "paused": paused(row),
            "schedules": [_schedule(one) for one in own],
            "next_at": _moment(min(ticks, default=None)),
            "last_execution": _last(executions[0]) if executions else None,
            "created_at": moment(row.made_at),
            "created_by": row.created_by,
            "updated_at": moment(row.made_at if row.updated_at is None else row.updated_at),
            "template": None if row.template is None else made_of(row.template),
            "met": self.met.get(row.id, {}),
            "time_slice": defined.slice_s,
            "affinity_wait": defined.needs.affinity_wait_s if defined.needs.affinity else None,
            "isolation": kinds.PROCESS if defined.target.get("kind") == kinds.PROCESS else None,
        }

    def _progress(self, execution: RecentExecution) -> int | None:
        told = None
        if execution.status is not Status.SUCCESS:
            told = progress.progress_detail(notes.state(self._view, self._namespace, execution.id))
        return progress.percent(told, execution.status)


def met(view: View, namespace: str, rows: Sequence[JobRow]) -> dict[str, dict[str, str]]:
    """By the id of a job: the executions whose ends count for its next start, by the names of their jobs."""
    ids = {JobRef(row.app, row.name): row.id for row in rows if row.deleted_at is None and row.about.depends_on}
    found: dict[str, dict[str, str]] = {}
    for edge in dependencies.edges_of(view, namespace, list(ids)):
        if edge.met is not None:
            found.setdefault(ids[edge.dependent], {})[label(edge.ref, edge.app)] = edge.met
    return found


def job_status(
    state: str, executions: Sequence[RecentExecution], *, has_tick: bool
) -> tuple[str, RecentExecution | None]:
    """The status of a job and the execution that it is about; `executions` are its newest ones, newest first."""
    running = next((one for one in executions if one.status is Status.RUNNING), None)
    if state == "paused":
        return state, running
    if running is not None:
        return "running", running
    pending = next((one for one in executions if one.status not in TERMINAL), None)
    if pending is not None:
        return pending.status.value, pending
    newest = executions[0] if executions else None
    if has_tick:
        return "scheduled", None
    return (newest.status.value, newest) if newest is not None else (state, None)


def _schedule(row: ScheduleOfJob) -> JobSchedule:
    words = trigger_words.explain(decode_spec(row.spec).trigger)
    return JobSchedule(
        schedule_id=str(row.id), name=row.name, words=words, next_at=_moment(row.next_at), paused=paused(row)
    )


def _last(one: RecentExecution) -> LastExecution:
    return LastExecution(
        execution_id=one.id,
        status=one.status,
        reason=one.reason,
        started_at=_moment(one.started_at),
        completed_at=_moment(one.finished_at),
    )


def _moment(instant: int | None) -> datetime | None:
    return None if instant is None else moment(instant)


def _defined(source: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a definition that a job shows too; null is the default."""
    given = {name: source[encoded] for name, encoded in _DEFINED if source.get(encoded) is not None}
    return {name: value for name, value in given.items() if name not in JobState.__struct_fields__}


made_of = msgspec.json.Decoder(MadeOf).decode
_DEFINED = list(zip(Job.__struct_fields__, Job.__struct_encode_fields__, strict=True))
