"""Finds jobs by id or name, and the live workers that can run one."""

from __future__ import annotations

import msgspec

from rota.domain import requirement
from rota.ids import is_id
from rota.store.port import View


class FoundJob(msgspec.Struct, frozen=True, array_like=True):
    """A job and its definition in force, as JSON."""

    id: str
    app: str
    name: str
    definition: str
    source: str | None = None
    """The definition as the API takes it, as JSON; None for jobs of code."""
    base: int = 0
    """The versions up to this number are of deleted jobs of the same name."""


def jobs_called(view: View, namespace: str, thing: str, app: str | None) -> list[FoundJob]:
    """The jobs with this id or name; several apps may have one name."""
    if is_id(thing):
        found = view.records("job_of_id", FoundJob, namespace=namespace, id=thing)
    else:
        found = view.records("jobs_named", FoundJob, namespace=namespace, name=thing)
    return [row for row in found if app in (None, row.app)]


def takers(view: View, namespace: str, app: str, job: str, queue: str) -> list[int]:
    """The live workers that would take an execution of the job from this queue."""
    rows = view.rows("takers", namespace=namespace, app=app, job=job, workflow=requirement.WORKFLOW)
    return [
        worker
        for worker, offers, queues, requirements in rows
        if requirement.fits(requirements, offers) and queue in (msgspec.json.decode(queues) or [queue])
    ]
