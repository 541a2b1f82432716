"""Steps that wait for an event: their subscriptions, and the search for events that were emitted before.

On PostgreSQL a wait and an emit may run at the same time, under READ COMMITTED. The emit inserts its event and then
reads the subscriptions; the wait inserts its subscription and then reads the events. If neither has committed when the
other reads, neither sees the other. So a new wait is `unsure`, and upkeep settles it (`settle_waits` in `unsure.py`):

1. Upkeep reads the wait, so the wait is committed. Only then does the transaction of upkeep get an id. It writes this
   id into the column `unsure` of the wait's subscription: the mark.
2. Once the xmin of a snapshot has reached the mark, all transactions with a lower id have ended. Upkeep then reads the
   events once more, and clears the mark.

An emit that has missed the wait read the subscriptions before the wait was committed. Before that read it had inserted
its event, and so had its transaction id. So its id is lower than the mark, and it has ended when upkeep reads the
events.

Two other marks look sufficient but are too low, because an emit with a higher id may have missed the wait as well. One
is the id of the wait's own transaction. The other is the xmax of a snapshot that sees the wait: that is the highest id
that has *ended*, plus one, and the emit may have that id or a higher one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from rota.domain.instant import MICROSECONDS
from rota.ids import FIRST_ID, first_at
from rota.ops.events.matching import Emitted, Subscription
from rota.ops.submission import MOST_CLOCK_SKEW_S
from rota.store.hints import Due
from rota.store.port import Tx

PAGE = 500


class EventWait(msgspec.Struct, frozen=True, kw_only=True):
    """A step that begins to wait, with the values of earlier steps in place of templates.

    It takes the earliest event since `since` that has one of the `names` and the `subject`, matches `where`, and is not
    in `taken`. These are the ids of the events that waits upstream of it took.
    """

    execution: str
    namespace: str
    names: tuple[str, ...]
    subject: str | None
    where: dict[str, Any] | None
    since: int
    taken: tuple[str, ...]


def subscribe(tx: Tx, wait: EventWait) -> dict[str, Any] | None:
    """Inserts the subscriptions of the step. If a matching event exists already, deletes them and returns the event.

    The caller then ends the step in this transaction. Otherwise a later emit ends the step by `end_waits`. The caller
    writes the row of the execution after this call, in the same transaction.
    """
    rows = _subscriptions(wait)
    tx.run("add_waits", namespace=wait.namespace, subject=wait.subject or "", rows=rows)
    found = look_back(tx, wait.namespace, wait.subject or "", rows)
    if found is None:
        tx.tell(Due(tx.now))  # Upkeep settles the wait.
        return None
    tx.run("drop_waits", ids=[wait.execution])
    tx.run("add_deliveries", rows=[(found.id, wait.execution, wait.execution)])
    return found.received


def look_back(tx: Tx, namespace: str, subject: str, rows: Sequence[Subscription]) -> Emitted | None:
    """The earliest stored event that a wait wants. `rows` are the subscriptions of the wait, one for each name."""
    since = rows[0].since_at
    statement = "events_of_subject" if subject else "events_of_names"
    where = {"namespace": namespace, "names": [row.name for row in rows], **({"subject": subject} if subject else {})}
    # An id contains the time of its maker's clock. The lower bound lets PostgreSQL skip older partitions.
    low = first_at(since - round(2 * MOST_CLOCK_SKEW_S * MICROSECONDS))
    after = (since, FIRST_ID)
    while True:
        page = tx.records(statement, Emitted, **where, low=low, at=after[0], id=after[1], most=PAGE)
        if (found := _first(rows[0], page)) is not None or len(page) < PAGE:
            return found
        after = (page[-1].emitted_at, page[-1].id)


def _first(one: Subscription, events: Iterable[Emitted]) -> Emitted | None:
    return next((event for event in events if one.wants(event)), None)


def _subscriptions(wait: EventWait) -> list[Subscription]:
    where = msgspec.json.encode(wait.where).decode() if wait.where else None
    excluded = msgspec.json.encode(wait.taken).decode() if wait.taken else None
    id = wait.execution
    return [Subscription(name, id, wait.since, None, None, id, where, excluded) for name in sorted(set(wait.names))]
