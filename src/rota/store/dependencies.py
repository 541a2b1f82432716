"""The edges of job dependencies, as rows."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain.dependency import CountedEnd, JobRef
from rota.store.port import View


class Edge(msgspec.Struct, frozen=True, array_like=True):
    """A job, an upstream of it, and the execution of the upstream whose end counts for the next round."""

    namespace: str
    app: str
    job: str
    upstream_app: str
    upstream: str
    outcome: CountedEnd
    met: str | None = None

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        return self.namespace, self.app, self.job, self.upstream_app, self.upstream

    @property
    def dependent(self) -> JobRef:
        return JobRef(self.app, self.job)

    @property
    def ref(self) -> JobRef:
        """The upstream."""
        return JobRef(self.upstream_app, self.upstream)


def edges(view: View, namespace: str) -> list[Edge]:
    """All edges of a namespace, sorted by the job that depends."""
    return view.records("edges", Edge, namespace=namespace)


def edges_of(view: View, namespace: str, jobs: Sequence[JobRef]) -> list[Edge]:
    """The edges of jobs that depend on others."""
    if not jobs:
        return []
    return view.records("edges_of", Edge, namespace=namespace, jobs=[(one.app, one.job) for one in jobs])
