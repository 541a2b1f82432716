"""Finds executions by the start of their ids, and jobs, workflows, queues, schedules and workers by their names."""

from __future__ import annotations

from rota import ids
from rota.domain import requirement
from rota.store import execution_reader
from rota.store.execution_reader import Criteria, Where
from rota.store.port import View
from rota.store.scan import Budget
from rota.views.shape import Shape

MOST = 20
LEAST_OF_ID = 4
_PATHS = {
    "job": "jobs",
    "workflow": "workflows",
    "queue": "queues",
    "schedule": "schedules",
    "worker": "workers",
    "execution": "executions",
}


class Hit(Shape, frozen=True):
    """A thing that was found, and where it is read."""

    kind: str
    """`job`, `workflow`, `queue`, `schedule`, `worker` or `execution`."""
    id: str
    name: str | None
    """Its name; null for an execution."""
    app: str | None
    path: str
    """The path of the thing in the API."""


class Hits(Shape, frozen=True):
    """At most twenty: executions first, then names that begin with the text, then those that have it elsewhere."""

    items: list[Hit]
    """The things that were found."""


def search(view: View, namespace: str, text: str) -> Hits:
    part = text.strip().lower()
    found = [_hit("execution", id, None, None) for id in _executions(view, namespace, part)]
    rows = view.rows(
        "search_names", namespace=namespace, part=part, workflow=requirement.WORKFLOW, most=MOST - len(found)
    )
    return Hits([*found, *(_hit(kind, id, name, app) for kind, app, name, id in rows)])


def _hit(kind: str, id: str, name: str | None, app: str | None) -> Hit:
    return Hit(kind, id, name, app, f"/api/v1/{_PATHS[kind]}/{id}")


def _executions(view: View, namespace: str, part: str) -> list[str]:
    """The newest first."""
    bounds = ids.range_of(part) if len(part) >= LEAST_OF_ID else None
    if bounds is None:
        return []
    lowest, highest = bounds
    if lowest == highest:
        return execution_reader.page(view, namespace, Criteria(id=(part,)), Where(), 1).keys
    found = execution_reader.page(view, namespace, Criteria(), Where(after=highest), MOST, Budget())
    return [id for id in found.keys if id >= lowest]
