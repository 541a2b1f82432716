"""Settling unsure waits, which an emit may have missed. The docstring of `waits.py` explains why."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter

from rota.ops.events.deliver import deliver
from rota.ops.events.matching import Pair, Subscription
from rota.ops.events.waits import look_back
from rota.store.port import Tx

MOST = 500
"""How many waits are settled in one transaction."""


class Unsure(Subscription, frozen=True, array_like=True):
    """A subscription of a wait. `unsure` is the mark of the wait: 0 if it is new, otherwise a transaction id."""

    namespace: str
    subject: str
    unsure: int


def settle_waits(tx: Tx) -> int:
    """Marks new waits, and reads the events for those that were marked before. Returns how many waits changed.

    The mark of a wait is the id of this transaction. The database assigns that id at the first write, and it must do so
    after the new waits were read, so the caller must not have written anything in this transaction.
    It locks subscriptions only after it has ended the steps, because every transaction that ends a step first locks the
    step and then deletes its subscriptions.
    """
    rows = tx.records("unsure_waits", Unsure, most=MOST)
    waits = [list(group) for _, group in groupby(rows, key=attrgetter("subscriber"))]
    pairs: list[Pair] = []
    for wait in waits:
        event = look_back(tx, wait[0].namespace, wait[0].subject, wait) if is_due(wait[0]) else None
        pairs += [] if event is None else [(event, wait[0])]
    deliver(tx, pairs)
    if waits:
        tx.run("note_waits", rows=[(one.subscriber, one.unsure, is_due(one)) for one, *_ in waits])
    return len(waits)


def is_due(row: Unsure) -> bool:
    """Whether the wait was marked before. `unsure_waits` reads such a wait only once every emit that may have missed it
    has ended."""
    return row.unsure > 0
