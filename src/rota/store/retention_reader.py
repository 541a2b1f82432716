"""Reads how long history is kept and how old it is."""

from __future__ import annotations

import msgspec

from rota.domain.retention import Record, Retention
from rota.ids import made_at
from rota.store.port import View

MOST_OVERDUE = 1000
MOST_NEWEST = 200


class History(msgspec.Struct, frozen=True):
    """How old the history is, and how much of it is overdue. `oldest_at` is None if there is none."""

    oldest_at: int | None
    overdue: int
    """How many of the oldest executions should have been deleted two days ago or earlier."""
    last: Record
    now: int


def retentions(view: View) -> dict[str, int | None]:
    """The namespaces, and how many seconds each keeps its history; None if the setting decides."""
    return dict(view.rows("retentions"))


def history(view: View, default_s: int, name: str, slack: int) -> History:
    kept = Retention(default_s, retentions(view))
    oldest = view.one("oldest")
    passes = view.records("retention_pass", Record, name=name)
    overdue = 0
    if kept.shortest_s is not None:
        (overdue,) = view.one("overdue", cutoffs=kept.cutoffs(view.now - slack), most=MOST_OVERDUE) or (0,)
    return History(None if oldest is None else oldest[1], overdue, passes[0] if passes else Record(), view.now)


def enqueuers(view: View, namespace: str) -> dict[str, int]:
    """How far the clock of each recent enqueuer is ahead of the database's clock, by the times in the ids.

    Negative means behind. An id may wait for its commit, so the id that waited least counts.
    """
    ahead: dict[str, int] = {}
    for id, created_at, actor in view.rows("newest_ids", namespace=namespace, most=MOST_NEWEST):
        off = made_at(id) - created_at
        ahead[actor] = max(off, ahead.get(actor, off))
    return ahead
