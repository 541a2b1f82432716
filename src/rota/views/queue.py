"""A queue and how full it is."""

from __future__ import annotations

from datetime import datetime

from rota.store import reader
from rota.store.port import View
from rota.views.shape import Paused, Shape, paused, shaped


class Queue(Shape, frozen=True):
    """`oldestAt` is when the first in line became due."""

    name: str
    policy: str
    max_depth: int | None
    queued: int
    scheduled: int
    running: int
    waiting: int
    dead: int
    oldest_at: datetime | None
    paused: Paused | None


def queues(view: View, namespace: str) -> list[Queue]:
    """By name."""
    return [shaped(Queue, row, paused=paused(row)) for row in reader.queues(view, namespace)]
