"""Replaying an event: to the jobs that have not received it, or to all subscribers as a new event."""

from __future__ import annotations

from rota.domain.errors import UnknownEvent
from rota.ids import is_id
from rota.ops.audit import audit
from rota.ops.events.deliver import deliver_open
from rota.ops.events.emit import Emission, EmitHeader, emit, open_events
from rota.ops.events.matching import Emitted
from rota.store.port import Tx


def replay(tx: Tx, namespace: str, id: str, actor: str) -> int:
    """Delivers an event to the jobs that subscribe to it now and have not received it.

    Returns the number of deliveries so far. If there is more than one chunk of subscriptions, upkeep continues.
    """
    event = _event(tx, namespace, id)
    open_events(tx, [(event.id, "")], is_replay=True)
    audit(tx, namespace, actor, "event.replay", event.id)
    return deliver_open(tx, event.id) or 0


def repeat(tx: Tx, namespace: str, id: str, new: str, actor: str) -> str:
    """Emits a copy of an event to all subscribers, with the id `new`. Returns that id."""
    event = _event(tx, namespace, id)
    audit(tx, namespace, actor, "event.repeat", event.id, after={"event": new})
    emission = Emission(new, event.name, event.payload, event.subject, None, "", event.id)
    emit(tx, EmitHeader(namespace, actor), [emission])
    return new


def _event(tx: Tx, namespace: str, id: str) -> Emitted:
    rows = tx.records("events_named", Emitted, ids=[id]) if is_id(id) else []
    found = [event for event in rows if event.namespace == namespace]
    if not found:
        raise UnknownEvent(f"there is no event {id}")
    return found[0]
