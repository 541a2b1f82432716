"""A job as it is registered."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rota.domain import job as domain
from rota.domain.dependency import JobRef
from rota.store import reader
from rota.store.dependencies import edges
from rota.store.port import View
from rota.store.reader import JobRow
from rota.views.shape import Paused, Shape, paused, shaped


class Dependency(Shape, frozen=True):
    """A job whose end starts this one. `met` is the execution that has ended so since the last start."""

    app: str
    job: str
    outcome: str
    met: str | None


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
    depends_on: list[Dependency]


def jobs(view: View, namespace: str, app: str | None = None) -> list[Job]:
    found: dict[JobRef, list[Dependency]] = {}
    for edge in edges(view, namespace):
        shown = Dependency(app=edge.upstream_app, job=edge.upstream, outcome=edge.outcome.value, met=edge.met)
        found.setdefault(edge.dependent, []).append(shown)
    rows = [row for row in reader.jobs(view, namespace) if app in (None, row.app)]
    return [_job(row, found.get(JobRef(row.app, row.name), [])) for row in rows]


def _job(row: JobRow, depends_on: list[Dependency]) -> Job:
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
        depends_on=depends_on,
        affinity=needs.affinity or None,
        affinity_wait=needs.affinity_wait_s if needs.affinity else None,
    )
