"""Which work a worker takes: executions of the jobs that it can run, in the queues that it serves.

Every worker of an app also opens the runs of all workflows of the app: that needs no code.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rota.domain import requirement


class Served(msgspec.Struct, frozen=True):
    """Sets, given as lists. A worker of today serves one namespace and one app; `queues` is None for all queues."""

    namespaces: list[str]
    apps: list[str]
    queues: list[str] | None
    jobs: list[str]

    @classmethod
    def one(cls, namespace: str, app: str, queues: list[str] | None, jobs: list[str]) -> Served:
        return cls([namespace], [app], queues, jobs)

    def where(self) -> dict[str, Any]:
        """Namespaces, apps and queues as the parameters of a statement."""
        return {
            "namespaces": self.namespaces,
            "apps": self.apps,
            "all_queues": self.queues is None,
            "queues": self.queues or [],
            "workflow": requirement.WORKFLOW,
        }
