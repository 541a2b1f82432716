"""What a supervisor is told when it starts."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence

import msgspec

from rota.domain.headcount import Headcount
from rota.domain.requirement import Offers
from rota.engine.node import Place
from rota.ops.fleet import Newcomer


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to run: the children's command line, how many of them, and how they work."""

    command: Sequence[str]
    processes: Headcount
    queues: Sequence[str] | None
    concurrency: int
    lease_s: float
    poll_s: float
    grace_s: float
    version: str
    quiet_s: float = 30.0
    retention_days: int = 30
    offers: Offers = Offers()

    def place(self, worker: int, namespace: str, app: str) -> Place:
        """For one child."""
        return Place(
            worker=worker,
            namespace=namespace,
            app=app,
            queues=self.queues,
            concurrency=self.concurrency,
            lease_s=self.lease_s,
            poll_s=self.poll_s,
            grace_s=self.grace_s,
        )

    def newcomer(self, namespace: str, app: str, pid: int) -> Newcomer:
        """What the store is told of one child."""
        host = socket.gethostname()
        return Newcomer(
            namespace=namespace,
            app=app,
            name=f"{host}:{pid}",
            host=host,
            pid=pid,
            version=self.version,
            queues=None if self.queues is None else list(self.queues),
            concurrency=self.concurrency,
            offers=self.offers,
            supervisor=f"{host}:{os.getpid()}",
            least=self.processes.least,
            most=self.processes.most,
        )
