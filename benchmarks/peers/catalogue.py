"""Which peers there are, and what each keeps its jobs in. Imported with and without Rota."""

from __future__ import annotations

from typing import NamedTuple

BROKERS = ("redis", "rabbitmq")


class Peer(NamedTuple):
    """A peer is a file of this folder; with another broker it is another peer."""

    module: str
    broker: str

    @property
    def name(self) -> str:
        return f"{self.module}@{self.broker}"

    @property
    def slug(self) -> str:
        """What its figures' names begin with."""
        return f"{self.module}_{self.broker}"

    def section(self, kind: str) -> str:
        """The section that compares it with Rota on this kind of database; empty if the peer keeps its jobs in another
        kind."""
        if self.broker in BROKERS:
            return "brokers"
        return "peers" if self.broker == kind else ""


PEERS = (
    Peer("huey", "sqlite"),
    Peer("pgqueuer", "postgresql"),
    Peer("procrastinate", "postgresql"),
    Peer("dramatiq", "redis"),
    Peer("dramatiq", "rabbitmq"),
    Peer("huey", "redis"),
    Peer("taskiq", "redis"),
    Peer("saq", "redis"),
    Peer("celery", "rabbitmq"),
    Peer("celery", "redis"),
    Peer("arq", "redis"),
    Peer("rq", "redis"),
)
PREFORK = (Peer("celery", "redis"), Peer("rq", "redis"))
"""Those that run each task in a process."""


class Orchestrator(NamedTuple):
    """A peer that runs workflows. `share` is the part of Rota's steps that it is given."""

    name: str
    module: str
    environment: str
    share: float
    memory_of: str

    @property
    def slug(self) -> str:
        """What its figures' names begin with."""
        return self.module

    def part(self, count: int) -> int:
        return max(2, round(self.share * count))


ORCHESTRATORS = (
    Orchestrator("Celery", "canvas_celery", "peers", 0.1, "memory of the workers"),
    Orchestrator("Prefect", "canvas_prefect", "prefect", 0.02, "memory of the server"),
)
