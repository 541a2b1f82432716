"""Which subscriptions there are for the name and subject of an event, and whether they want the event."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from rota.domain import event as events
from rota.domain import event_filter
from rota.domain.instant import moment
from rota.store.port import Tx

_filter = msgspec.json.Decoder(dict[str, Any]).decode
_excluded = msgspec.json.Decoder(list[str]).decode


class Emitted(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """An event that is in the database; the payload is JSON."""

    id: str
    namespace: str
    name: str
    subject: str
    payload: str
    emitted_at: int

    @cached_property
    def value(self) -> Any:
        return msgspec.json.decode(self.payload)

    @property
    def topic(self) -> tuple[str, str, str]:
        return self.namespace, self.name, self.subject

    @property
    def info(self) -> str:
        return events.info(self.id, self.name, self.subject, self.emitted_at)

    @property
    def received(self) -> dict[str, Any]:
        """The value of a step that has waited for it: the members of `Event` (domain/workflow/wait.py)."""
        named = {"id": self.id, "name": self.name, "subject": self.subject or None}
        return {**named, "payload": self.value, "emitted_at": moment(self.emitted_at)}


class Subscription(msgspec.Struct, frozen=True, array_like=True):
    """A row of `subscription`: a job or a waiting step, and which events it gets."""

    name: str
    subscriber: str
    since_at: int
    app: str | None
    job: str | None
    execution: str | None
    """The step that waits; None for a job."""
    filter: str | None
    target: str | None
    """JSON. For a job: its `Target`. For a step: the ids of events that it does not take."""

    def wants(self, event: Emitted, *, is_new: bool = False, is_replay: bool = False) -> bool:
        """Whether the subscriber gets this event, whose name and subject match.

        A subscriber does not get events from before its subscription, with two exceptions. A new event is later than
        every subscription that its emit found, even if the database's clock was set back in between. And a replay is
        also for jobs that were declared after the event.
        """
        ignores_time = is_new or (is_replay and self.execution is None)
        if event.emitted_at < self.since_at and not ignores_time:
            return False
        if self.execution is not None and self.target is not None and event.id in _excluded(self.target):
            return False
        return self.filter is None or event_filter.matches(_filter(self.filter), event.value)


Pair = tuple[Emitted, Subscription]


def subscriptions(tx: Tx, topic: tuple[str, str, str], after: str, most: int) -> list[Subscription]:
    """The first subscriptions to a namespace, name and subject, in the order of subscribers, after subscriber `after`.

    Filters on the payload are not applied here.
    """
    namespace, name, subject = topic
    where = {"namespace": namespace, "name": name, "subject": subject}
    return tx.records("subscriptions_of", Subscription, **where, after=after, most=most)
