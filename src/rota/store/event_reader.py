"""Reads events, what they started, and who subscribes."""

from __future__ import annotations

import msgspec

from rota.domain.status import Status
from rota.ids import FIRST_ID, LAST_ID, is_id
from rota.store import reader
from rota.store.port import View


class EventRow(msgspec.Struct, frozen=True, array_like=True):
    """An event. `is_open`: some of its subscribers have not been looked at yet."""

    id: str
    name: str
    subject: str
    key: str | None
    actor: str
    payload: str
    emitted_at: int
    replay_of: str | None
    delivered: int
    is_open: int


class DeliveryRow(msgspec.Struct, frozen=True, array_like=True):
    """One subscriber that has had an event. The columns of the execution are None if it was deleted."""

    execution: str
    at: int
    app: str | None
    job: str | None
    run: str | None
    step: int | None
    status: Status | None


class SubscriptionRow(msgspec.Struct, frozen=True, array_like=True):
    """Who gets the events of a name."""

    name: str
    subject: str
    app: str | None
    job: str | None
    execution: str | None
    since_at: int
    filter: str | None
    target: str | None


class EventFilter(msgspec.Struct, frozen=True):
    """Which events a list has; None for any."""

    name: str | None = None
    subject: str | None = None
    since: int | None = None
    before: str = LAST_ID
    limit: int = 50


def events(view: View, namespace: str, wanted: EventFilter) -> list[EventRow]:
    """Newest first."""
    return view.records(
        "events",
        EventRow,
        namespace=namespace,
        name=wanted.name,
        subject=wanted.subject,
        since=wanted.since or 0,
        before=reader.position(wanted.before),
        most=wanted.limit,
    )


def event(view: View, namespace: str, id: str) -> EventRow | None:
    if not is_id(id):
        return None
    return next(iter(view.records("event_of", EventRow, namespace=namespace, id=id)), None)


def ids_between(view: View, namespace: str, low: str, high: str, most: int) -> list[str]:
    return [row[0] for row in view.rows("event_ids", namespace=namespace, low=low, high=high, most=most)]


def newest_ids(view: View, namespace: str, most: int) -> list[str]:
    return ids_between(view, namespace, FIRST_ID, LAST_ID, most)


def deliveries(view: View, id: str, most: int) -> list[DeliveryRow]:
    """In the order in which they were made."""
    return view.records("deliveries_of", DeliveryRow, event=id, most=most)


def subscriptions(view: View, namespace: str, name: str | None, most: int) -> list[SubscriptionRow]:
    """Jobs first, then the steps that wait."""
    return view.records("all_subscriptions", SubscriptionRow, namespace=namespace, name=name, most=most)
