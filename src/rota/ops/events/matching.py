"""Which subscriptions an event concerns, and whether they want it."""

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
        """The members of the `Event` (domain/workflow/wait.py) that is the value of a step which has waited for it."""
        named = {"id": self.id, "name": self.name, "subject": self.subject or None}
        return {**named, "payload": self.value, "emitted_at": moment(self.emitted_at)}


class Subscription(msgspec.Struct, frozen=True, array_like=True):
    """A job or a waiting step, and which events it gets."""

    name: str
    subscriber: str
    since_at: int
    app: str | None
    job: str | None
    execution: str | None
    """The step that waits; None for a job."""
    filter: str | None
    target: str | None
    """JSON: for a job its `Target`; for a step the ids of events that it does not take."""

    def wants(self, event: Emitted, *, is_new: bool = False, is_replay: bool = False) -> bool:
        """Whether it gets an event with its name and subject.

        A new event is younger than every subscription that its emit found, also if the clock of the database was set
        back meanwhile. A replay is also for jobs that were declared later.
        """
        ignores_time = is_new or (is_replay and self.execution is None)
        if event.emitted_at < self.since_at and not ignores_time:
            return False
        if self.execution is not None and self.target is not None and event.id in _excluded(self.target):
            return False
        return self.filter is None or event_filter.matches(_filter(self.filter), event.value)


Pair = tuple[Emitted, Subscription]


def subscriptions(tx: Tx, topic: tuple[str, str, str], after: str, most: int) -> list[Subscription]:
    """Those that an event with this namespace, name and subject concerns, whatever its payload, behind `after`."""
    namespace, name, subject = topic
    where = {"namespace": namespace, "name": name, "subject": subject}
    return tx.records("subscriptions_of", Subscription, **where, after=after, most=most)
