"""Steps that wait for an event: the subscription, and the look back.

On PostgreSQL a wait and an emit may run side by side, under READ COMMITTED. The emit inserts its event and then looks
for subscriptions; the wait inserts its subscription and then looks for events. If neither has committed when the other
looks, both find nothing. So a new wait is `unsure`, and upkeep settles it (`settle_waits` in `unsure.py`):

1. It reads the wait, so the wait is committed. Only then does its transaction get an id, which it notes.
2. Once the xmin of a snapshot has reached the noted id, all transactions with a lower id have ended. It then looks for
   events once more, and the wait is sure.

An emit that has missed the wait has looked before the wait was committed. It had inserted its event, and so had its
transaction id, before it looked. So its id is lower than the noted one, and it has ended when upkeep looks.

Two marks that seem to do are too low, because a younger emit may have missed the wait too. One is the id of the wait's
own transaction. The other is the xmax of a snapshot that sees the wait: that is the highest id that has *ended*, plus
one, and the emit may have that id or a higher one.
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
    """A step that begins to wait, with the values of earlier steps in it.

    It takes the earliest event since `since` with one of the `names` that fits `subject` and `where` and is not among
    `taken`, which are the events that waits upstream of it took.
    """

    execution: str
    run: str
    namespace: str
    names: tuple[str, ...]
    subject: str | None
    where: dict[str, Any] | None
    since: int
    taken: tuple[str, ...]


def begin_wait(tx: Tx, wait: EventWait) -> dict[str, Any] | None:
    """Subscribes the step. Returns an event that is there already, by which the step ends in this transaction.

    Later events end it by `end_waits`. The row of the execution is written after this call, in the same transaction.
    """
    rows = _subscriptions(wait)
    tx.run("add_waits", namespace=wait.namespace, subject=wait.subject or "", rows=rows)
    found = look_back(tx, wait.namespace, wait.subject or "", rows)
    if found is None:
        tx.tell(Due(tx.now))  # Upkeep looks once more.
        return None
    tx.run("drop_waits", ids=[wait.execution])
    tx.run("add_deliveries", rows=[(found.id, wait.execution, wait.execution)])
    return found.received


def look_back(tx: Tx, namespace: str, subject: str, rows: Sequence[Subscription]) -> Emitted | None:
    """The earliest event that one wait wants; `rows` are its subscriptions, which differ in the name."""
    since = rows[0].since_at
    statement = "events_of_subject" if subject else "events_of_names"
    where = {"namespace": namespace, "names": [row.name for row in rows], **({"subject": subject} if subject else {})}
    # Ids have the time of their maker's clock. The bound lets PostgreSQL leave out older partitions.
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
