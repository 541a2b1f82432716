"""An execution: in a list, and in full with its attempts and why it is not running."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from rota.domain import overrides
from rota.domain.errors import UsageError
from rota.domain.event import decode_info
from rota.domain.overrides import Overrides
from rota.domain.status import TERMINAL, Status
from rota.domain.workflow import wait as waits
from rota.store import execution_reader, notes, reader
from rota.store.execution_reader import Criteria
from rota.store.port import View
from rota.store.reader import ExecutionRow, Filter
from rota.views import lookup
from rota.views.attempt import Attempt, attempts
from rota.views.callback import CallbackState, callback_state
from rota.views.execution_list import schedule_ids
from rota.views.execution_members import members
from rota.views.inputs import complete_arguments
from rota.views.progress import Progress, percent, progress_detail
from rota.views.shape import Page, Shape, page, seconds, shaped
from rota.views.step import StepNames, StepPlace, step_names, step_place
from rota.views.stored_json import decoded
from rota.views.wait import WaitInfo, wait_info
from rota.views.why import Why, why


class Execution(Shape, frozen=True):
    """An execution in a list. A step of a run has the run, the name of the step, and the index of an item of a map."""

    execution_id: str
    status: Status
    job_id: str | None
    job: str
    app: str
    version: int
    queue: str
    priority: int
    reason: str | None
    retry_count: int
    attempt_count: int
    fence: int
    crashes: int
    error_message: str | None
    worker_id: str | None
    worker: str | None
    created_at: datetime
    run_at: datetime
    start_by: datetime | None
    started_at: datetime | None
    """When its last attempt started; null before that."""
    completed_at: datetime | None
    cancel_requested_at: datetime | None
    last_heartbeat: datetime | None
    tags: list[str] | None
    key: str | None
    actor: str | None
    parent_id: str | None
    replay_of: str | None
    run_id: str | None
    step: str | None
    index: int | None
    arguments: Any


class StartedBy(Shape, frozen=True):
    """The event that started an execution."""

    event_id: str
    name: str
    subject: str | None
    emitted_at: datetime


class ExecutionDetail(Execution, frozen=True):
    """An execution in full.

    `attempt_count` counts the attempts that count towards the retries, the running one included: it is then
    `ctx.attempt`. `fence` counts all starts, `crashes` the crashed ones. `started_at` is the start of the last attempt.
    `run_at` is when it is due. `arguments` includes the values of other steps; a value that retention has deleted is
    shown as its reference, such as `{"$": "extract.files"}`. `why` says why it is not running. `error` has the keys
    type, message and traceback. `replay_of` is the execution that it replays, `replayed_by` its own last replay.
    `callback` is the URL that is called at its end.

    `schedule`, `tick` and `catch_up` say which tick started it, and `late_by` how long after the tick that was.
    `upstream` are the executions of other jobs that it was started after, by job. `event` is the event that started it.

    `step_of` says for a step of a run which steps it waited for, and which wait for it. `wait` says for a step that
    waits what it waits for: a time, an answer or an event.

    `timeout` and `retry` are None unless the execution has its own in place of its job's. `retry` is the policy as
    data, such as {"policy": "Exponential", "attempts": 3}; its durations are seconds.
    """

    result: Any
    error: Any
    """The error of its last attempt, with type, message, traceback and source; null if there is none."""
    progress: int | None
    progress_detail: Progress | None
    """What the job has reported of its progress; null if nothing."""
    why: Why | None
    schedule: str | None
    """The name of the schedule that started it; null if none did."""
    schedule_id: str | None
    tick: datetime | None
    catch_up: bool
    """Whether the tick was missed and caught up."""
    late_by: timedelta | None
    """How many seconds after its tick it started; null before that, or if no tick started it."""
    upstream: dict[str, str] | None
    """The ids of the executions that it was started after, by job; null if there are none."""
    event: StartedBy | None
    """The event that started it; null if none did."""
    headers: dict[str, str] | None
    timeout: timedelta | None
    """Its own timeout in seconds, in place of that of its job; null if it has none."""
    retry: dict[str, Any] | None
    """Its own policy of retries, in place of that of its job; null if it has none."""
    step_of: StepPlace | None
    """Which step of which run it is; null if it is none."""
    wait: WaitInfo | None
    """What the step waits for; null if it is not a wait."""
    replayed_by: str | None
    """The id of its last replay; null if there is none."""
    callback: CallbackState | None
    """The callback and how far it is; null if there is none."""
    attempts: list[Attempt]
    """The last ten attempts that have ended, oldest first."""


class Replayed(Shape, frozen=True):
    """A new execution of an ended one."""

    execution_id: str
    replay_of: str


class ExecutionStatus(Shape, frozen=True):
    """An execution and the status that a request has led to."""

    execution_id: str
    status: Status


def check(wanted: Filter) -> Filter:
    """Refuses filters that contradict each other."""
    if wanted.error and wanted.status not in (None, Status.FAILED):
        raise UsageError(f"--error finds failed executions, so it does not go with --status {wanted.status}")
    given = [name for name in ("app", "job", "queue", "error", "since") if getattr(wanted, name) is not None]
    if wanted.run is not None and given:
        raise UsageError(f"--run lists the steps of one run, and takes --step and --status, but not --{given[0]}")
    return wanted


def executions(view: View, namespace: str, wanted: Filter) -> Page[Execution]:
    """A page of executions, newest first."""
    found = rows(view, namespace, lookup.chosen(view, namespace, wanted))
    names = step_names(view, namespace, found.items)
    items = [shaped(Execution, row, **_members(Execution, row, names)) for row in found.items]
    return Page(items, found.has_more)


def rows(view: View, namespace: str, wanted: Filter) -> Page[ExecutionRow]:
    """The rows of such a page. `wanted.job` is the exact name of a job, as `lookup.chosen` returns it."""
    if wanted.run is not None:
        steps = reader.page_of_steps(view, wanted.run, wanted.step, wanted.status, wanted.before, wanted.limit + 1)
        return page(reader.executions_of(view, namespace, steps), wanted.limit)
    where = execution_reader.Where(after=reader.position(wanted.before))
    found = execution_reader.page(view, namespace, _criteria(wanted), where, wanted.limit)
    return Page(reader.executions_of(view, namespace, found.keys), found.has_more)


def _criteria(wanted: Filter) -> Criteria:
    """`error` finds failed executions only."""
    status = wanted.status or (Status.FAILED if wanted.error else None)
    return Criteria(
        status=() if status is None else (status,),
        job=() if wanted.job is None else (wanted.job,),
        app=() if wanted.app is None else (wanted.app,),
        queue=() if wanted.queue is None else (wanted.queue,),
        created_from=wanted.since,
        error=wanted.error,
    )


def execution(view: View, namespace: str, id: str, most_attempts: int | None = None) -> ExecutionDetail:
    """With all its attempts, or the last ones only."""
    row = reader.execution(view, namespace, id)
    ended = attempts(view, namespace, id, most_attempts)
    last = ended[-1] if ended and row.status in TERMINAL else None
    told = progress_detail(notes.state(view, namespace, id))
    own = _own_rules(row.overrides)
    place = step_place(view, namespace, id) if row.run is not None else None
    is_wait = place is not None and waits.is_wait(row.job)
    end = reader.ending(view, namespace, id) if is_wait and row.status in TERMINAL else None
    return shaped(
        ExecutionDetail,
        row,
        **_members(ExecutionDetail, row, step_names(view, namespace, [row]))
        | {"arguments": complete_arguments(view, row), "result": last.result if last else None},
        progress=percent(told, row.status),
        progress_detail=told,
        why=why(view, namespace, id),
        schedule_id=schedule_ids(view, namespace, [row]).get((row.app, row.schedule)),
        late_by=None if row.tick is None or row.started_at is None else seconds(row.started_at - row.tick),
        upstream=decoded(row.upstream),
        event=_started_by(row.event),
        timeout=own.timeout_s,
        retry=own.retry,
        step_of=place,
        wait=wait_info(row, end.result if end else None, place.run_id, place.step) if place and place.step else None,
        replayed_by=reader.replayed_as(view, id) if row.status in TERMINAL else None,
        callback=callback_state(view, namespace, id),
        attempts=ended,
    )


def check_ended(view: View, namespace: str, ids: list[str]) -> None:
    for id in ids:
        status = reader.status(view, namespace, id)
        if status not in TERMINAL:
            raise UsageError(f"{id} is {status} and has not ended: wait for it, or `rota cancel` it first")


def _started_by(stored: str | None) -> StartedBy | None:
    if stored is None:
        return None
    found = decode_info(stored)
    return StartedBy(found.id, found.name, found.subject, found.emitted_at)


def _own_rules(stored: str | None) -> Overrides:
    try:
        return Overrides() if stored is None else overrides.decode(stored)
    except msgspec.DecodeError:
        return Overrides()


def _members(kind: type[Execution], row: ExecutionRow, names: StepNames) -> dict[str, Any]:
    return members(kind, row) | {"step": names.get((row.run, row.step))}
