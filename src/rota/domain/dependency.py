"""Dependencies between jobs: which ends of other jobs a job starts after."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter

import msgspec

from rota.domain.errors import DefinitionError
from rota.domain.status import Status


class CountedEnd(StrEnum):
    """Which ends of an upstream job start the job that depends on it."""

    SUCCESS = "success"
    FAILED = "failed"
    DONE = "done"
    """Every end, also a cancel and a missed start deadline."""

    def counts(self, status: Status) -> bool:
        return self is CountedEnd.DONE or self.value == status.value


class JobRef(msgspec.Struct, frozen=True, order=True):
    """A job or a workflow, of any app of the namespace."""

    app: str
    job: str

    def __str__(self) -> str:
        return f"{self.app}.{self.job}"


class Upstream(msgspec.Struct, frozen=True, order=True):
    """One edge, in the definition of the job that depends."""

    app: str
    job: str
    outcome: CountedEnd = CountedEnd.SUCCESS

    @property
    def ref(self) -> JobRef:
        return JobRef(self.app, self.job)


Edges = Mapping[JobRef, Collection[JobRef]]
"""The upstreams of each job that has any."""


def label(upstream: JobRef, app: str) -> str:
    """How a job of `app` names its upstream: with the app if that is another one."""
    return upstream.job if upstream.app == app else str(upstream)


def check(own: Mapping[JobRef, Sequence[Upstream]], known: Collection[JobRef], others: Edges) -> None:
    """Refuses an upstream that is not `known`, and a cycle. `others` are the edges of other apps."""
    for job, upstreams in own.items():
        for upstream in upstreams:
            if upstream.ref not in known:
                near = get_close_matches(str(upstream.ref), map(str, known), 1)
                hint = f"did you mean {near[0]}?" if near else "start a worker of its app once, or check the name"
                raise DefinitionError(f"job {job} depends on {upstream.ref}, which is not known: {hint}")
    edges = {job: {upstream.ref for upstream in upstreams} for job, upstreams in own.items()}
    if found := cycle({**others, **edges}, edges):
        raise DefinitionError(f"jobs depend on each other, so none of them would start: {' → '.join(map(str, found))}")


def cycle(edges: Edges, start: Iterable[JobRef]) -> list[JobRef]:
    """A cycle upstream of `start`: each job depends on the next one, and the last is the first. Empty if none is."""
    seen: dict[JobRef, Collection[JobRef]] = {}
    left = list(start)
    while left:
        job = left.pop()
        if job not in seen:
            seen[job] = edges.get(job, ())
            left += seen[job]
    try:
        TopologicalSorter(seen).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []
