"""Delivering events to their subscribers: starts jobs and workflows, and ends steps that wait."""

from __future__ import annotations

from collections.abc import Sequence

from rota.domain.workflow import wait
from rota.ops.events.matching import Emitted, Pair, subscriptions
from rota.ops.events.start_jobs import start_jobs
from rota.ops.runs.end_waits import end_waits
from rota.store.port import Tx

CHUNK = 500
"""How many subscriptions of an event upkeep checks in one transaction."""


def deliver(tx: Tx, pairs: Sequence[Pair], *, is_new: bool = False, is_replay: bool = False) -> int:
    """Delivers each event to its subscriber, unless the subscriber does not want it or has received it before.

    Returns the number of deliveries. `is_new`: this transaction has inserted the events. To be called once in a
    transaction, like `after_end`.
    """
    wanted = [pair for pair in pairs if pair[1].wants(pair[0], is_new=is_new, is_replay=is_replay)]
    if wanted and not is_new:
        rows = tx.rows("delivered", rows=[(event.id, one.subscriber) for event, one in wanted])
        received = {(event, subscriber) for event, subscriber in rows}
        wanted = [(event, one) for event, one in wanted if (event.id, one.subscriber) not in received]
    done = start_jobs(tx, [pair for pair in wanted if pair[1].execution is None])
    done += _end_waits(tx, [pair for pair in wanted if pair[1].execution is not None])
    if done:
        tx.run("add_deliveries", rows=done)
    return len(done)


def deliver_open(tx: Tx, event: str | None = None) -> int | None:
    """Delivers this open event, or the next one, to a chunk of its subscribers.

    Returns the number of deliveries; None if there is no such open event.
    """
    found = tx.one("next_open_event") if event is None else tx.one("lock_open_event", event=event)
    if found is None:
        return None
    id, after, is_replay = found
    events = tx.records("events_named", Emitted, ids=[id])
    chunk = [(one, each) for one in events for each in subscriptions(tx, one.topic, after, CHUNK)]
    if len(chunk) < CHUNK:
        tx.run("close_event", event=id)
    else:
        tx.run("move_open_event", event=id, after=chunk[-1][1].subscriber)
    return deliver(tx, chunk, is_replay=bool(is_replay))


def _end_waits(tx: Tx, pairs: Sequence[Pair]) -> list[tuple[str, str, str]]:
    """Ends each step with the earliest of its events. Ignores steps that another transaction has ended."""
    if not pairs:
        return []
    first: dict[str, Emitted] = {}
    for event, one in sorted(pairs, key=lambda pair: (pair[0].emitted_at, pair[0].id)):
        first.setdefault(one.subscriber, event)
    ends = end_waits(tx, {id: wait.event_came(event.received) for id, event in first.items()})
    return [(first[end.id].id, end.id, end.id) for end in ends]
