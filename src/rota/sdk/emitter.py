"""Emitting events: `app.emit`, and `app.within(connection).emit` in the caller's own transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from rota.domain import event, payload, unique
from rota.domain.errors import ArgumentsError, DefinitionError
from rota.ops import submission
from rota.ops.events import emit as events
from rota.ops.events.emit import Emission, EmitHeader
from rota.ops.submission import Accepted
from rota.sdk.client import Client
from rota.sdk.event_handle import EventHandle
from rota.sdk.transaction import Caller, atransact, transact

ACTOR = "sdk"
_FIELDS = ("name", "payload", "subject", "key")


class Emitter:
    """Emits the events of an app. Without a `caller`, each call is a transaction of its own."""

    def __init__(self, client: Client, caller: Caller | None = None) -> None:
        self._client = client
        self._caller = caller

    def emit(
        self, name: str, payload: Any = None, *, subject: str | None = None, key: str | None = None
    ) -> EventHandle:
        """Emits one event. Without a transaction of the caller, it is committed when this returns."""
        (made,) = self._accept([self._emission(name, payload, subject, key)])
        return self._handle(made)

    async def aemit(
        self, name: str, payload: Any = None, *, subject: str | None = None, key: str | None = None
    ) -> EventHandle:
        """`emit`, without blocking the event loop; within a transaction for async connections."""
        emissions = [self._emission(name, payload, subject, key)]
        if self._caller is None:
            (made,) = await self._client.aemit(emissions)
        else:
            header = self._header
            (made,) = await atransact(
                self._client.database(), self._caller, lambda tx: events.emit(tx, header, emissions)
            )
        return self._handle(made)

    def emit_many(self, calls: Iterable[str | Mapping[str, Any]]) -> list[EventHandle]:
        """Emits all events or none, in one transaction, at most 50,000.

        Each call is a name, or a dict with the arguments of `emit`: `name`, and optionally `payload`, `subject`, `key`.
        """
        if isinstance(calls, str | Mapping):
            raise ArgumentsError(f"emit_many takes a list of events, not {calls!r:.64}: for one event use emit")
        emissions = [self._emission(**_arguments(call)) for call in islice(calls, submission.MOST_ITEMS + 1)]
        submission.check_count(len(emissions))
        submission.check_bytes(sum(len(one.payload) for one in emissions))
        return [self._handle(made) for made in self._accept(emissions)] if emissions else []

    @property
    def _header(self) -> EmitHeader:
        return EmitHeader(self._client.settings.namespace, ACTOR, delivers_later=True)

    def _accept(self, emissions: list[Emission]) -> list[Accepted]:
        if self._caller is None:
            return self._client.emit(emissions)
        header = self._header
        return transact(self._client.database(), self._caller, lambda tx: events.emit(tx, header, emissions))

    def _emission(self, name: str, payload: Any = None, subject: str | None = None, key: str | None = None) -> Emission:
        return emission(
            self._client.ids.new(), name, payload, subject, key, most_bytes=self._client.settings.max_payload_bytes
        )

    def _handle(self, made: Accepted) -> EventHandle:
        return EventHandle(self._client, made.id, created=made.created)


def within(client: Client, connection: Any, notify: bool) -> Emitter:
    # With a savepoint: an emit that is refused, such as for its key, must leave the caller's transaction as it was.
    return Emitter(client, Caller(connection, notify, guard=True))


def emission(id: str, name: str, value: Any, subject: str | None, key: str | None, *, most_bytes: int) -> Emission:
    """An event to emit. Refuses names, subjects, keys and payloads that cannot be stored."""
    text = payload.encode(value, "the payload of the event", most_bytes)
    if key is not None:
        unique.check_key(key, "key")
    digest = "" if key is None else payload.digest(text)
    return Emission(id, event.check_name(name), text, event.check_subject(subject), key, digest)


def _arguments(call: Any) -> dict[str, Any]:
    if isinstance(call, str):
        return {"name": call}
    if not isinstance(call, Mapping) or "name" not in call:
        raise ArgumentsError(f"emit_many takes names and dicts such as {{'name': 'order.paid'}}, not {call!r:.64}")
    if unknown := sorted(call.keys() - set(_FIELDS)):
        raise DefinitionError(f"emit_many: an event has {', '.join(_FIELDS)}, not {unknown[0]!r}")
    return dict(call)
