"""A handle on an event."""

from __future__ import annotations

from rota.sdk.client import Client
from rota.views.event import EventDetail


class EventHandle:
    """An event that was emitted. `created` is False if an event with the same key existed before."""

    __slots__ = ("_client", "created", "id")

    def __init__(self, client: Client, id: str, *, created: bool = True) -> None:
        self._client = client
        self.id = id
        self.created = created

    def __repr__(self) -> str:
        return f"EventHandle({self.id!r})"

    def info(self) -> EventDetail:
        """The event, and what it has started so far."""
        return self._client.event(self.id)

    def replay(self) -> int:
        """Delivers the event to the jobs that subscribe now and have not received it.

        Returns how many have received it by this replay so far. Workers deliver it to the others, if there are more.
        """
        return self._client.replay_event(self.id)
