"""Reads events, deliveries and subscriptions."""

from __future__ import annotations

import msgspec

from rota.domain.status import Status
from rota.ids import FIRST_ID, LAST_ID, is_id
from rota.store import reader
from rota.store.port import View

FOREVER = 2**62
UNBOUNDED = 2**31 - 1


class EventRow(msgspec.Struct, frozen=True, array_like=True):
    """An event. `is_open` is 1 while upkeep still has to check some subscriptions."""

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
    """A delivery of an event to a subscriber. The columns of the execution are None if it was deleted."""

    execution: str
    at: int
    app: str | None
    job: str | None
    run: str | None
    step: int | None
    status: Status | None


class SubscriptionRow(msgspec.Struct, frozen=True, array_like=True):
    """A subscription to the events of a name."""

    name: str
    subject: str
    app: str | None
    job: str | None
    execution: str | None
    since_at: int
    filter: str | None
    target: str | None


class EventFilter(msgspec.Struct, frozen=True):
    """Which events to list, newest first. None means any."""

    name: str | None = None
    subject: str | None = None
    since: int | None = None
    before: str = LAST_ID
    """The page begins behind this id."""
    limit: int = 50
    until: int = FOREVER
    is_ascending: bool = False
    budget: int = UNBOUNDED
    """How many events a page reads."""


def events(view: View, namespace: str, wanted: EventFilter) -> tuple[list[EventRow], str | None]:
    """Newest first, unless the filter says otherwise; and how far the page looked, if its budget ended early."""
    suffix = "_asc" if wanted.is_ascending else ""
    where = {"namespace": namespace, "before": reader.position(wanted.before)}
    is_bounded = wanted.budget < UNBOUNDED
    bounds = view.rows(f"end_of_events_budget{suffix}", **where, budget=wanted.budget) if is_bounded else []
    end = bounds[0][0] if bounds else LAST_ID if wanted.is_ascending else FIRST_ID
    rows = view.records(
        f"events{suffix}",
        EventRow,
        **where,
        end=end,
        name=wanted.name,
        subject=wanted.subject,
        since=wanted.since or 0,
        until=wanted.until,
        most=wanted.limit,
    )
    return rows, end if bounds and len(rows) < wanted.limit else None


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
