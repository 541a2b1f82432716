"""A queue and how full it is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from rota.domain.blocker import Kind, reason
from rota.store import reader
from rota.store.port import View
from rota.store.reader import QueueRow, WaitRow
from rota.views.shape import Paused, Shape, paused, shaped


class QueueWait(Shape, frozen=True):
    """Executions of one job that wait for something other than a slot, such as the end of a pause of the job."""

    kind: Kind
    """What they wait for, as a code."""
    app: str
    job: str
    count: int
    """How many executions wait for it."""
    text: str
    """Why they wait, in a sentence."""


class Queue(Shape, frozen=True):
    """`oldestAt` is when the first in line became due."""

    name: str
    policy: str
    max_depth: int | None
    queued: int
    """How many executions are ready to start."""
    scheduled: int
    """How many executions wait for their time."""
    running: int
    waiting: int
    """How many executions wait for something else."""
    waits: list[QueueWait]
    """What they wait for, most first, of up to 10,000 executions."""
    dead: int
    """How many dead letters it has."""
    oldest_at: datetime | None
    """Since when the oldest ready execution waits; null if none does."""
    paused: Paused | None


class QueueDefinition(Shape, frozen=True):
    """The body of a PUT."""

    policy: str
    max_depth: int | None


class QueueDetail(Queue, frozen=True):
    """A queue with its settings as a PUT takes them."""

    definition: QueueDefinition


class QueueChanged(QueueDetail, frozen=True):
    """A queue after an action. `changed` is false if nothing had to change."""

    changed: bool


class Known(msgspec.Struct, frozen=True):
    """A queue and the revision of its settings and pauses."""

    queue: QueueDetail
    revision: int


def queues(view: View, namespace: str) -> list[Queue]:
    """By name."""
    found = reader.waits(view, namespace)
    return [
        shaped(Queue, row, paused=paused(row), waits=waits(found, row.name)) for row in reader.queues(view, namespace)
    ]


def queue(view: View, namespace: str, name: str) -> Known | None:
    rows = reader.queues(view, namespace, name)
    return Known(_detail(rows[0], reader.waits(view, namespace, name)), rows[0].revision) if rows else None


def waits(rows: Sequence[WaitRow], queue: str) -> list[QueueWait]:
    """Without open runs, which count as running."""
    return [
        QueueWait(
            row.kind, row.app, row.job, row.count, reason(row.kind, row.job, is_job_paused=bool(row.is_job_paused))
        )
        for row in rows
        if row.queue == queue and row.kind is not Kind.RUN
    ]


def changed(of: QueueDetail, *, is_changed: bool) -> QueueChanged:
    return QueueChanged(**msgspec.structs.asdict(of), changed=is_changed)


def _detail(row: QueueRow, found: Sequence[WaitRow]) -> QueueDetail:
    definition = shaped(QueueDefinition, row)
    return shaped(QueueDetail, row, paused=paused(row), definition=definition, waits=waits(found, row.name))
