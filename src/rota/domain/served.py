"""Which work a worker takes: executions of the jobs that it can run, in the queues that it serves.

Every worker of an app also opens the runs of all workflows of the app: that needs no code.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rota.domain import requirement

ALL_APPS = "*"
"""The app of a worker without code, which runs jobs of all apps from their definitions."""
COMMANDS, REQUESTS = "*command", "*http"
"""Such a worker has these in place of the names of jobs. No name of a job has a star."""


class Served(msgspec.Struct, frozen=True):
    """Sets, given as lists; None is all of them. A worker serves one app, or all apps of one or more namespaces."""

    namespaces: list[str]
    apps: list[str] | None
    queues: list[str] | None
    jobs: list[str]

    @classmethod
    def one(cls, namespace: str, app: str, queues: list[str] | None, jobs: list[str]) -> Served:
        return cls.of([namespace], app, queues, jobs)

    @classmethod
    def of(cls, namespaces: list[str], app: str, queues: list[str] | None, jobs: list[str]) -> Served:
        return cls(namespaces, None if app == ALL_APPS else [app], queues, jobs)

    def where(self) -> dict[str, Any]:
        """Namespaces, apps and queues as the parameters of a statement."""
        return {
            "namespaces": self.namespaces,
            "all_apps": self.apps is None,
            "apps": self.apps or [],
            "all_queues": self.queues is None,
            "queues": self.queues or [],
            "workflow": requirement.WORKFLOW,
        }
