"""Settling waits that an emit may have missed; `waits.py` says why."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter

from rota.ops.events.deliver import deliver
from rota.ops.events.matching import Pair, Subscription
from rota.ops.events.waits import look_back
from rota.store.port import Tx

MOST = 500


class Unsure(Subscription, frozen=True, array_like=True):
    """A subscription of a wait, and its mark: 0 if the wait is new."""

    namespace: str
    subject: str
    unsure: int


def settle_waits(tx: Tx) -> int:
    """Notes new waits, and looks for events for those that were noted. Returns how many subscriptions changed.

    The transaction has written nothing before: it gets its id, which is the mark, after it has read the new waits. It
    locks no subscription before it has ended the steps: whatever ends a step deletes its subscriptions after it has
    locked the step.
    """
    rows = tx.records("unsure_waits", Unsure, most=MOST)
    due = [row for row in rows if is_due(row)]
    pairs: list[Pair] = []
    for _, group in groupby(due, key=attrgetter("subscriber")):
        of_one = list(group)
        event = look_back(tx, of_one[0].namespace, of_one[0].subject, of_one)
        pairs += [] if event is None else [(event, of_one[0])]
    deliver(tx, pairs)
    if rows:
        marks = [(row.subscriber, row.name, row.unsure, is_due(row)) for row in rows]
        tx.run("note_waits", rows=marks)
    return len(rows)


def is_due(row: Unsure) -> bool:
    """Whether the wait was noted. It was read because every emit that may have missed it has ended since."""
    return row.unsure > 0
