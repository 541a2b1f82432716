"""A queue and how full it is."""

from __future__ import annotations

from datetime import datetime

import msgspec

from rota.store import reader
from rota.store.port import View
from rota.store.reader import QueueRow
from rota.views.shape import Paused, Shape, paused, shaped


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
    return [shaped(Queue, row, paused=paused(row)) for row in reader.queues(view, namespace)]


def queue(view: View, namespace: str, name: str) -> Known | None:
    rows = reader.queues(view, namespace, name)
    return Known(_detail(rows[0]), rows[0].revision) if rows else None


def changed(of: QueueDetail, *, is_changed: bool) -> QueueChanged:
    return QueueChanged(**msgspec.structs.asdict(of), changed=is_changed)


def _detail(row: QueueRow) -> QueueDetail:
    return shaped(QueueDetail, row, paused=paused(row), definition=shaped(QueueDefinition, row))
