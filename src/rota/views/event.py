"""Events: as a list, in full with their deliveries, and their subscribers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from rota import ids
from rota.domain import subscription
from rota.domain.errors import UnknownEvent, UsageError
from rota.domain.status import Status
from rota.store import event_reader
from rota.store.event_reader import EventFilter, EventRow
from rota.store.port import View
from rota.views.lookup import LEAST_END, MOST_NAMED
from rota.views.shape import Page, Shape, page, shaped
from rota.views.stored_json import decoded

MOST_DELIVERIES = 1000
MOST_START = 200
"""Characters of a payload in a list, where all payloads in full may be many megabytes."""
NEWEST = 10_000
"""Among how many of the newest events the end of an id is searched for."""


class Event(Shape, frozen=True):
    """An event as a list has it. `is_delivered` is False while upkeep still has to check some subscriptions."""

    event_id: str
    name: str
    subject: str | None
    key: str | None
    actor: str | None
    emitted_at: datetime
    replay_of: str | None
    deliveries: int
    is_delivered: bool
    """Whether all subscriptions were checked."""
    payload_start: str
    """The first 200 characters of the payload, as JSON."""


class Delivery(Shape, frozen=True):
    """An execution that the event started; or the step of a run that it woke, which then has a `run_id`.

    The members about the execution are None if it was deleted.
    """

    execution_id: str
    app: str | None
    job: str | None
    status: Status | None
    run_id: str | None
    delivered_at: datetime
    """When it was given the event."""


class EventDetail(Event, frozen=True):
    """An event in full. `started` has the first thousand deliveries."""

    payload: Any
    started: list[Delivery]
    """The first thousand executions and steps that it was given to."""


class Subscriber(Shape, frozen=True):
    """A job that events of a name start; or a step of a run that waits for one, which then has an `execution_id`."""

    name: str
    subject: str | None
    app: str | None
    job: str | None
    execution_id: str | None
    where: Any
    debounce: timedelta | None
    since: datetime


class Repeated(Shape, frozen=True):
    """A new event that repeats another one."""

    event_id: str
    replay_of: str


def events(view: View, namespace: str, wanted: EventFilter) -> Page[Event]:
    """Newest first."""
    rows, end = event_reader.events(view, namespace, msgspec.structs.replace(wanted, limit=wanted.limit + 1))
    return page([shaped(Event, row, **_members(row)) for row in rows], wanted.limit, end)


def event(view: View, namespace: str, id: str) -> EventDetail:
    row = event_reader.event(view, namespace, id) if ids.is_id(id) else None
    if row is None:
        raise UnknownEvent(f"there is no event {id}")
    started = [
        shaped(Delivery, one, execution_id=one.execution, run_id=one.run, delivered_at=one.at)
        for one in event_reader.deliveries(view, row.id, MOST_DELIVERIES)
    ]
    return shaped(EventDetail, row, **_members(row), payload=decoded(row.payload), started=started)


def event_id(view: View, namespace: str, part: str) -> str:
    """The only id of an event that starts with `part`, or among the newest events ends with it."""
    end = part.lower().lstrip("…")
    bounds = ids.range_of(end) if end == part.lower() and end else None
    found = event_reader.ids_between(view, namespace, *bounds, MOST_NAMED + 1) if bounds else []
    if len(end) >= LEAST_END and len(found) != 1:
        found += [id for id in event_reader.newest_ids(view, namespace, NEWEST) if id.endswith(end)]
    found = sorted(set(found), reverse=True)
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{part} may be any of {', '.join(found[:MOST_NAMED])}: give more of the id")
    raise UnknownEvent(f"there is no event {part}; `rota events` lists them")


def subscribers(view: View, namespace: str, name: str | None, limit: int) -> Page[Subscriber]:
    """Jobs first, then the steps that wait."""
    rows = event_reader.subscriptions(view, namespace, name, limit + 1)
    return page(
        [
            shaped(
                Subscriber,
                row,
                subject=row.subject or None,
                execution_id=row.execution,
                where=decoded(row.filter),
                debounce=subscription.decode_target(row.target).debounce_s if row.job and row.target else None,
                since=row.since_at,
            )
            for row in rows
        ],
        limit,
    )


def _members(row: EventRow) -> dict[str, Any]:
    return {
        "event_id": row.id,
        "subject": row.subject or None,
        "actor": row.actor or None,
        "deliveries": row.delivered,
        "is_delivered": not row.is_open,
        "payload_start": row.payload[:MOST_START],
    }
