"""A job as it is registered."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rota.domain import job as domain
from rota.store import reader
from rota.store.port import View
from rota.store.reader import JobRow
from rota.views.shape import Paused, Shape, paused, shaped


class Job(Shape, frozen=True):
    """`target` says what runs it, if that is not a function in the worker's own process."""

    job_id: str
    name: str
    app: str
    version: int
    state: str
    paused: Paused | None
    description: str
    parameters: dict[str, Any]
    target: dict[str, Any]
    queue: str
    priority: int
    retry: dict[str, Any]
    timeout: timedelta | None
    total_timeout: timedelta | None
    progress_timeout: timedelta | None
    time_slice: timedelta | None
    start_within: timedelta | None
    pool: str
    requires: list[str]
    resources: dict[str, float]
    breakers: list[str]
    affinity: str | None
    affinity_wait: timedelta | None
    pause_after: int | None


def jobs(view: View, namespace: str, app: str | None = None) -> list[Job]:
    return [_job(row) for row in reader.jobs(view, namespace) if app in (None, row.app)]


def _job(row: JobRow) -> Job:
    known = domain.decode(row.definition)
    needs = known.needs
    return shaped(
        Job,
        known,
        job_id=row.id,
        app=row.app,
        version=row.version,
        state="active" if row.paused_at is None else "paused",
        paused=paused(row),
        timeout=known.timeout_s,
        total_timeout=known.total_timeout_s,
        progress_timeout=known.progress_timeout_s,
        time_slice=known.slice_s,
        start_within=known.start_within_s,
        pool=needs.pool,
        requires=needs.tags,
        resources=needs.resources,
        breakers=needs.breakers,
        affinity=needs.affinity or None,
        affinity_wait=needs.affinity_wait_s if needs.affinity else None,
    )
