"""An execution as the answer to an enqueue shows it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rota.domain.instant import moment
from rota.domain.status import Status
from rota.ops.submission import Accepted, Header
from rota.store import reader
from rota.store.port import View
from rota.views.execution_members import members
from rota.views.shape import Shape, shaped
from rota.views.stored_json import decoded


class Enqueued(Shape, frozen=True):
    """An execution in short. `created` is false if a key was known, and an execution was there already."""

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
    error_message: str | None
    worker_id: str | None
    created_at: datetime
    run_at: datetime
    started_at: datetime | None
    """When its last attempt started; null before that."""
    completed_at: datetime | None
    tags: list[str] | None
    run_id: str | None
    step: str | None
    parent_id: str | None
    replay_of: str | None
    created: bool


class EnqueuedMany(Shape, frozen=True):
    """The executions that answer for an array, in its order."""

    items: list[Enqueued]
    """One for each execution of the request, in its order."""


def of_new(accepted: Accepted, header: Header, job_id: str, base: int) -> Enqueued:
    """An execution that was created a moment ago: nothing has to be read. Versions are counted from `base`."""
    run_at = header.run_at(accepted.created_at)
    created = moment(accepted.created_at)
    return Enqueued(
        execution_id=accepted.id,
        status=Status.QUEUED if run_at <= accepted.created_at else Status.SCHEDULED,
        job_id=job_id,
        job=header.job,
        app=header.app,
        version=accepted.version - base,
        queue=header.queue,
        priority=header.priority,
        reason=None,
        retry_count=0,
        error_message=None,
        worker_id=None,
        created_at=created,
        run_at=created if run_at == accepted.created_at else moment(run_at),
        started_at=None,
        completed_at=None,
        tags=decoded(header.tags),
        run_id=None,
        step=None,
        parent_id=None,
        replay_of=None,
        created=True,
    )


def of_known(view: View, namespace: str, accepted: Sequence[Accepted]) -> dict[str, Enqueued]:
    """Executions as they stand now, by id. One whose history was deleted is left out."""
    rows = reader.executions_of(view, namespace, [one.id for one in accepted])
    created = {one.id: one.created for one in accepted}
    return {row.id: shaped(Enqueued, row, **members(Enqueued, row), step=None, created=created[row.id]) for row in rows}
