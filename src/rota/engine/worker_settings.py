"""The settings of a supervisor and of its children."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain.headcount import Headcount
from rota.domain.requirement import Offers
from rota.domain.served import Served
from rota.engine.host import Hello, Host
from rota.engine.scribe import MOST_LOG_BYTES
from rota.engine.worker_loops import Assignment
from rota.ops.fleet import Newcomer

TRANSACTIONS_IF_ALONE = 2
"""For a supervisor that never has more than one process: the database works on one while the process prepares the
other. Each of several processes has one: with more, each would be smaller and would wait for the flushes of the others.
"""


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The command line of the children, their number, and how they work."""

    command: Sequence[str]
    processes: Headcount
    queues: Sequence[str] | None
    concurrency: int
    lease_s: float
    poll_s: float
    grace_s: float
    version: str
    quiet_s: float = 30.0
    max_log_bytes: int = MOST_LOG_BYTES
    offers: Offers = Offers()

    def served(self, hello: Hello) -> Served:
        """What a child with this hello may claim."""
        queues = None if self.queues is None else list(self.queues)
        return Served.of([hello.namespace, *hello.others], hello.app, queues, hello.jobs)

    def assignment(self, worker: int) -> Assignment:
        """The first message to a child."""
        return Assignment(
            worker=worker,
            queues=self.queues,
            concurrency=self.concurrency,
            transactions=1 if self.processes.most > 1 else TRANSACTIONS_IF_ALONE,
            lease_s=self.lease_s,
            poll_s=self.poll_s,
            grace_s=self.grace_s,
            max_log_bytes=self.max_log_bytes,
        )

    def newcomer(self, hello: Hello, pid: int, host: Host) -> Newcomer:
        """The row of a new worker."""
        return Newcomer(
            namespace=hello.namespace,
            others=hello.others,
            app=hello.app,
            name=f"{host.name}:{pid}",
            host=host.name,
            pid=pid,
            version=self.version,
            queues=None if self.queues is None else list(self.queues),
            jobs=hello.jobs,
            concurrency=self.concurrency,
            offers=self.offers,
            supervisor=f"{host.name}:{host.pid}",
            least=self.processes.least,
            most=self.processes.most,
            deploy=hello.deploy,
        )
