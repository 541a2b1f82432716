"""Reads what the open streams of a server show, for all of them at once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rota.domain.status import Status
from rota.store.port import View

MOST_COUNTED = 10_000
"""Ready executions of one lane are counted up to this number."""
MOST_CHANGES = 1000
MOST_DELTAS = 10_000
"""How many rows of the statistics that are not folded yet are read. Upkeep folds them within seconds."""


class QueueCount(msgspec.Struct, frozen=True, array_like=True):
    """How much a queue has."""

    namespace: str
    queue: str
    queued: int
    running: int


class WorkerCount(msgspec.Struct, frozen=True, array_like=True):
    """How many live workers a namespace has."""

    namespace: str
    workers: int
    slots: int


class Change(msgspec.Struct, frozen=True, array_like=True):
    """A row of the audit trail."""

    id: int
    namespace: str
    action: str
    subject: str
    actor: str
    at: int


class Watched(msgspec.Struct, frozen=True, array_like=True):
    """The state of an execution or a run. `letters` are the states of a run's steps."""

    id: str
    namespace: str
    status: Status
    reason: str
    fence: int
    done: float | None
    total: float | None
    letters: str


class OutcomeCount(msgspec.Struct, frozen=True, array_like=True):
    """How many executions of a namespace have ended or were retried, by the minute in which they were."""

    namespace: str
    minute: int
    success: int
    failed: int
    cancelled: int
    skipped: int
    retries: int


class Look(msgspec.Struct, frozen=True):
    """The result of one read of the database."""

    queues: list[QueueCount]
    workers: list[WorkerCount]
    changes: list[Change]
    watched: list[Watched]
    outcomes: list[OutcomeCount]


def look(view: View, namespaces: Sequence[str], after: int, ids: Sequence[str], since: int) -> Look:
    """Everything that streams of these namespaces show: changes only after this one, outcomes since this minute."""
    among = list(namespaces)
    return Look(
        view.records("feed_lanes", QueueCount, namespaces=among, most=MOST_COUNTED),
        view.records("feed_workers", WorkerCount, namespaces=among),
        view.records("feed_changes", Change, namespaces=among, after=after, most=MOST_CHANGES),
        view.records("feed_executions", Watched, ids=list(ids)) if ids else [],
        view.records("feed_outcomes", OutcomeCount, namespaces=among, since=since, most=MOST_DELTAS),
    )


def newest_change(view: View) -> int:
    return int(view.rows("newest_change")[0][0])
