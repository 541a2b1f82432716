"""Reads jobs as the HTTP API shows them, also deleted ones: their definitions, versions and newest executions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rota import ids
from rota.domain import job, requirement
from rota.domain.errors import UsageError
from rota.domain.instant import MICROSECONDS
from rota.domain.job import Definition
from rota.domain.status import Status
from rota.store.port import View

MOST = 2**31 - 1
"""No bound."""
LAST_VERSION = 2**62
"""Behind every version of a job."""
NEWEST = 20
"""How many executions decide the status of a job."""
CLOCK_SKEW = 24 * 3600 * MICROSECONDS
"""How far the clock of a client may be off. The ids of executions contain the time of that clock."""


class Ambiguous(UsageError):
    """Several apps have a job of that name; `ids` are theirs."""

    code = "ambiguous_name"

    def __init__(self, message: str, ids: list[str]) -> None:
        super().__init__(message)
        self.ids = ids


class JobRow(msgspec.Struct, frozen=True, array_like=True):
    """A job with its version in force. `last` is the last version of a deleted job."""

    id: str
    app: str
    name: str
    version: int
    base: int
    last: int | None
    origin: str
    revision: int
    runs: str | None
    paused_at: int | None
    paused_by: str | None
    paused_note: str | None
    created_at: int | None
    created_by: str | None
    updated_at: int | None
    deleted_at: int | None
    definition: str
    source: str | None
    template: str | None
    """The template that it was made of, as JSON."""

    @property
    def about(self) -> Definition:
        return job.decode(self.definition)

    @property
    def made_at(self) -> int:
        return ids.made_at(self.id) if self.created_at is None else self.created_at

    @property
    def state(self) -> str:
        if self.deleted_at is not None:
            return "deleted"
        return "active" if self.paused_at is None else "paused"


class RecentExecution(msgspec.Struct, frozen=True, array_like=True):
    """An execution in short."""

    id: str
    status: Status
    reason: str
    started_at: int | None
    finished_at: int | None


class ScheduleOfJob(msgspec.Struct, frozen=True, array_like=True):
    """A schedule of a job, in short."""

    app: str
    job: str
    id: int
    name: str
    spec: str
    next_at: int | None
    paused_at: int | None
    paused_by: str | None
    paused_note: str | None


class VersionRow(msgspec.Struct, frozen=True, array_like=True):
    """A version of a job; `source` is the definition as the API takes it, None for code."""

    number: int
    definition: str
    source: str | None
    created_at: int
    created_by: str | None
    template: str | None


class TemplateRow(msgspec.Struct, frozen=True, array_like=True):
    """A template; its content is JSON."""

    name: str
    version: int
    content: str
    created_at: int
    created_by: str
    updated_at: int


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs to list. `name` is the start of a name; all `tags` must be present. None means any."""

    name: str | None = None
    app: Sequence[str] | None = None
    state: Sequence[str] | None = None
    origin: Sequence[str] | None = None
    queue: Sequence[str] | None = None
    tag: Sequence[str] | None = None

    def fits(self, row: JobRow) -> bool:
        """Workflows are not listed as jobs."""
        about = row.about
        tags = [] if row.source is None else msgspec.json.decode(row.source, type=dict[str, Any]).get("tags") or []
        return (
            about.target.get("kind") != "workflow"
            and row.name.startswith(self.name or "")
            and (self.app is None or row.app in self.app)
            and (self.state is None or row.state in self.state)
            and (self.origin is None or row.origin in self.origin)
            and (self.queue is None or about.queue in self.queue)
            and (self.tag is None or set(self.tag) <= set(tags))
        )


def find(view: View, namespace: str, reference: str, app: str | None = None) -> JobRow | None:
    """The job with this id, also a deleted one, or with this name. Raises Ambiguous if several apps have the name."""
    if ids.is_id(reference):
        return with_id(view, namespace, reference)
    found = called(view, namespace, reference, app)
    if len(found) > 1:
        apps = ", ".join(row.app for row in found)
        raise Ambiguous(f"the apps {apps} have a job {reference}: add ?app=, or use an id", [row.id for row in found])
    return found[0] if found else None


def called(view: View, namespace: str, reference: str, app: str | None = None) -> list[JobRow]:
    """The jobs with this id or name, without deleted ones; several apps may have one name."""
    if ids.is_id(reference):
        found = view.records("job_with_id", JobRow, namespace=namespace, id=reference)
        return [row for row in found if app in (None, row.app)]
    return view.records("job_called", JobRow, namespace=namespace, name=reference, app=app)


def with_id(view: View, namespace: str, id: str) -> JobRow | None:
    for statement in ("job_with_id", "deleted_with_id"):
        if found := view.records(statement, JobRow, namespace=namespace, id=id):
            return found[0]
    return None


def jobs(
    view: View,
    namespace: str,
    position: Sequence[str] | None,
    most: int,
    *,
    prefix: str = "",
    is_down: bool = False,
    is_deleted: bool = False,
) -> list[JobRow]:
    """By name, behind the position, which is a name, an app and an id."""
    name, app, id = position or ("", "", ids.FIRST_ID)
    where = {"namespace": namespace, "is_first": position is None, "name": name, "app": app, "prefix": prefix}
    if is_deleted:
        return view.records("deleted_listed" if is_down else "deleted_listed_asc", JobRow, id=id, most=most, **where)
    return view.records("jobs_listed" if is_down else "jobs_listed_asc", JobRow, most=most, **where)


def all_jobs(view: View, namespace: str) -> list[JobRow]:
    """By app and name, workflows too."""
    return sorted(jobs(view, namespace, None, MOST), key=lambda row: (row.app, row.name))


def newest(view: View, namespace: str, row: JobRow, most: int = NEWEST) -> list[str]:
    """The ids of its newest executions."""
    lowest = ids.first_at(row.made_at - CLOCK_SKEW)
    where = {"namespace": namespace, "job": row.name, "app": row.app, "base": row.base, "last": row.last}
    return [found[0] for found in view.rows("newest_of_job", lowest=lowest, most=most, **where)]


def recent_executions(view: View, namespace: str, ids: Sequence[str]) -> dict[str, RecentExecution]:
    if not ids:
        return {}
    found = view.records("recent_executions", RecentExecution, namespace=namespace, ids=list(ids))
    return {one.id: one for one in found}


def schedules(view: View, namespace: str, names: Sequence[str]) -> list[ScheduleOfJob]:
    return view.records("schedules_of_jobs", ScheduleOfJob, namespace=namespace, jobs=sorted(set(names)))


def ids_of(view: View, namespace: str, jobs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The ids of jobs by app and name."""
    if not jobs:
        return {}
    return {(app, name): id for app, name, id in view.rows("ids_of_jobs", namespace=namespace, jobs=sorted(set(jobs)))}


def versions(
    view: View, namespace: str, row: JobRow, low: int, high: int, most: int, *, is_up: bool = False
) -> list[VersionRow]:
    """The versions of a job between two internal numbers, both excluded."""
    end = high if row.last is None else min(high, row.last + 1)
    where = {"namespace": namespace, "app": row.app, "job": row.name, "low": max(low, row.base), "high": end}
    return view.records("versions_listed_asc" if is_up else "versions_listed", VersionRow, most=most, **where)


def takers(view: View, namespace: str, app: str, job: str, queue: str) -> list[int]:
    """The live workers that would take an execution of the job from this queue."""
    rows = view.rows("takers", namespace=namespace, app=app, job=job, workflow=requirement.WORKFLOW)
    return sorted(
        worker
        for worker, offers, queues, requirements in rows
        if requirement.fits(requirements, offers) and queue in (msgspec.json.decode(queues) or [queue])
    )


def template(view: View, namespace: str, name: str) -> TemplateRow | None:
    found = view.records("template", TemplateRow, namespace=namespace, name=name)
    return found[0] if found else None


def templates(view: View, namespace: str, name: str | None, most: int, *, is_down: bool = False) -> list[TemplateRow]:
    """By name, behind a name."""
    where = {"namespace": namespace, "is_first": name is None, "name": name or "", "most": most}
    return view.records("templates_listed" if is_down else "templates_listed_asc", TemplateRow, **where)
