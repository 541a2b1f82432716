"""The job that an enqueue is for: by its id or name, remembered for a few seconds.

Only the defaults and the parameters of a job are remembered. Its version, its lane and whether it still exists are
looked up by the statement that inserts the execution.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rota import ids
from rota.api.problem import Problem, bad_member
from rota.api.services import Services
from rota.domain.callback import is_reserved
from rota.store import definition_reader
from rota.store.definition_reader import JobRow

REMEMBERED_S = 5.0
_source = msgspec.json.Decoder(dict[str, Any]).decode
MOST_REMEMBERED = 10_000


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What an enqueue needs to know of its job."""

    namespace: str
    id: str
    app: str
    name: str
    queue: str
    priority: int
    start_within_s: float | None
    retry: dict[str, Any]
    parameters: dict[str, dict[str, Any]]
    key: tuple[str, ...]
    """Equal for equal definitions of the same job."""
    takes_all: bool
    """Whether every argument is right, so that arguments need not be decoded."""
    schema: dict[str, Any] | None = None
    """The JSON schema of its arguments, if it has one."""
    graph: dict[str, Any] | None = None
    """The data form of a workflow, with the JSON schemas of its parameters; None for other jobs."""
    arguments: str = "{}"
    """Its arguments if the caller gives none."""
    base: int = 0
    """What is subtracted from the number of a version to show it: callers count from 1 for each job."""


class Targets:
    """The jobs that requests of this server were for."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._known: dict[tuple[str, str, str | None], tuple[Target, float]] = {}

    async def find(self, namespace: str, name: str, app: str | None, pointer: str = "") -> Target:
        """The job, or a problem with a pointer to the member `job`. A job that is not there is looked up each time."""
        target = self.remembered(namespace, name, app)
        if target is None:
            rows = await self._services.read(definition_reader.called, namespace, name, app)
            target = _chosen(namespace, name, [row for row in rows if not is_reserved(row.app)], pointer)
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[namespace, name, app] = target, self._services.clock.monotonic()
        return target

    def remembered(self, namespace: str, name: str, app: str | None) -> Target | None:
        known = self._known.get((namespace, name, app))
        if known is None or self._services.clock.monotonic() - known[1] >= REMEMBERED_S:
            return None
        return known[0]


def _chosen(namespace: str, name: str, rows: list[JobRow], pointer: str) -> Target:
    if len(rows) > 1:
        found = [{"jobId": row.id, "app": row.app} for row in rows]
        words = f"several apps have a job {name!r}: add app, or give the id of the job"
        raise Problem("ambiguous_name", words, existing=found)
    if not rows:
        what = "id" if ids.is_id(name) else "name"
        words = f"there is no job with the {what} {name[:128]!r}: check it, or create the job first"
        raise bad_member(f"{pointer}/job", words, "unknown_job")
    return target(namespace, rows[0])


def target(namespace: str, row: JobRow) -> Target:
    about = row.about
    graph = about.target.get("graph")
    source = {} if row.source is None or graph is not None else _source(row.source)
    schema = source.get("parameters")
    return Target(
        namespace=namespace,
        id=row.id,
        app=row.app,
        name=row.name,
        queue=about.queue,
        priority=about.priority,
        start_within_s=about.start_within_s,
        retry=about.retry,
        parameters=about.parameters,
        key=(namespace, row.id, row.app, row.name, row.definition),
        takes_all=all(one.get("others") and not one.get("required") for one in about.parameters.values())
        and bool(about.parameters)
        and schema is None
        and graph is None,
        schema=schema,
        graph=graph,
        arguments=msgspec.json.encode(source.get("arguments") or {}).decode(),
        base=row.base,
    )
