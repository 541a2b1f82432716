"""Live changes for the open streams of a server.

One task looks at the database once a second for all streams together, and not at all while there are none. It compares
what it finds with what it found before, and adds events to a ring, from which every stream takes those that it wants. A
stream that reconnects names the last event that it has seen, and gets the rest of the ring; if the ring does not reach
back that far, it is sent `reset`, and fetches what it shows anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from rota.api.outcome_rates import OutcomeRates
from rota.api.problem import Problem
from rota.api.services import Services
from rota.domain.errors import RotaError
from rota.domain.instant import rfc3339
from rota.domain.status import Status
from rota.store import feed_reader
from rota.store.feed_reader import Change, Look, Watched
from rota.views.progress import percent_of

EVERY_S = 1.0
KEPT_S = 60.0
MOST_KEPT = 10_000
MOST_STREAMS = 1000
MOST_OF_TOKEN = 20
MOST_BUFFERED = 1024 * 1024
log = logging.getLogger("rota.api")


class Event(msgspec.Struct, frozen=True):
    """`topic` is pulse, changes, or what is watched: `executions:ID`, `runs:ID`."""

    number: int
    at: float
    namespace: str
    topic: str
    name: str
    data: bytes


class OpenStream:
    """One open stream: the events that wait to be sent to it."""

    def __init__(self, namespace: str, topics: frozenset[str], owner: str) -> None:
        self.namespace, self.topics, self.owner = namespace, topics, owner
        self.reset: str | None = None
        self._waiting: deque[Event] = deque()
        self._size = 0
        self._is_filled = asyncio.Event()

    def offer(self, event: Event) -> None:
        if event.namespace != self.namespace or event.topic not in self.topics:
            return
        if self._size + len(event.data) > MOST_BUFFERED:
            self._waiting.clear()
            self._size, self.reset = 0, "slow"
        self._waiting.append(event)
        self._size += len(event.data)
        self._is_filled.set()

    async def take(self, within_s: float) -> list[Event]:
        """The events that wait; none after this time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._is_filled.wait()
        self._is_filled.clear()
        found = list(self._waiting)
        self._waiting.clear()
        self._size = 0
        return found


class Feed:
    """The events of one server."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.epoch = f"{services.clock.random_bits(40):010x}"
        self._number = 0
        self._ring: deque[Event] = deque(maxlen=MOST_KEPT)
        self._streams: set[OpenStream] = set()
        self._others: list[tuple[str, str]] = []
        """The namespaces and owners of other streams."""
        self._task: asyncio.Task[None] | None = None
        self._after: int | None = None
        self._pulses: dict[str, bytes] = {}
        self._watched: dict[str, Watched] = {}
        self._rates = OutcomeRates(services.clock)

    def open(self, stream: OpenStream, last_event_id: str | None, most: int | None = None) -> None:
        """Adds a stream, and offers it what it has missed."""
        self.check_room(stream.namespace, stream.owner, most)
        if last_event_id is not None:
            self._resume(stream, last_event_id)
        self._streams.add(stream)
        # A new stream gets the state of what it watches, even if nothing changes.
        self._pulses.pop(stream.namespace, None)
        for topic in stream.topics:
            self._watched.pop(topic.partition(":")[2], None)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    def check_room(self, namespace: str, owner: str, most: int | None) -> None:
        """Refuses a stream if this server, its owner or its namespace has too many. `most` is the namespace's quota."""
        opened = [*((stream.namespace, stream.owner) for stream in self._streams), *self._others]
        if len(opened) >= MOST_STREAMS:
            raise Problem("too_many_streams", f"this server has {MOST_STREAMS:,} open streams already")
        if sum(one[1] == owner for one in opened) >= MOST_OF_TOKEN:
            raise Problem("too_many_streams", f"this caller has {MOST_OF_TOKEN} open streams already")
        use = sum(one[0] == namespace for one in opened)
        if most is not None and use >= most:
            words = f"the namespace {namespace} may have {most:,} streams (maxStreams) on each server and has {use:,}"
            raise Problem("too_many_streams", words, existing={"quota": "maxStreams", "limit": most, "use": use})

    @contextlib.contextmanager
    def counted(self, namespace: str, owner: str) -> Iterator[None]:
        """For a stream that does not show this feed, such as a log: it counts as one."""
        self._others.append((namespace, owner))
        try:
            yield
        finally:
            self._others.remove((namespace, owner))

    def close(self, stream: OpenStream) -> None:
        self._streams.discard(stream)

    def _resume(self, stream: OpenStream, last_event_id: str) -> None:
        epoch, _, number = last_event_id.partition("-")
        oldest = self._ring[0].number if self._ring else self._number + 1
        is_ours = epoch == self.epoch and number.isdigit() and len(number) < 18
        if not is_ours or not oldest - 1 <= int(number) <= self._number:
            stream.reset = "gap" if is_ours else "restart"
            return
        for event in self._ring:
            if event.number > int(number):
                stream.offer(event)

    async def _run(self) -> None:
        """Until the last stream is closed."""
        while self._streams:
            try:
                await self._look()
            except RotaError as error:
                log.warning("streams: %s", error)
            await asyncio.sleep(EVERY_S)
        self._after = None
        self._pulses.clear()
        self._rates = OutcomeRates(self._services.clock)
        self._watched.clear()

    async def _look(self) -> None:
        if self._after is None:
            self._after = await self._services.read(feed_reader.newest_change)
        namespaces = sorted({stream.namespace for stream in self._streams})
        ids = sorted({topic.partition(":")[2] for stream in self._streams for topic in stream.topics if ":" in topic})
        found = await self._services.read(feed_reader.look, namespaces, self._after, ids, self._rates.since())
        rates = self._rates.measure(namespaces, found.outcomes)
        for change in found.changes:
            self._after = change.id
            self._add(change.namespace, "changes", "change", _change(change))
        for namespace in namespaces:
            self._add_pulse(namespace, found, rates[namespace])
        for watched in found.watched:
            self._add_watched(watched)
        self._forget_old()

    def _add_pulse(self, namespace: str, found: Look, outcomes: dict[str, float]) -> None:
        workers = next((one for one in found.workers if one.namespace == namespace), None)
        pulse = {
            "queues": [
                {"name": one.queue, "queued": one.queued, "running": one.running}
                for one in found.queues
                if one.namespace == namespace
            ],
            "workers": workers.workers if workers else 0,
            "slots": workers.slots if workers else 0,
            "outcomes": outcomes,
        }
        data = msgspec.json.encode(pulse)
        if self._pulses.get(namespace) != data:
            self._pulses[namespace] = data
            self._add(namespace, "pulse", "pulse", data)

    def _add_watched(self, now: Watched) -> None:
        before = self._watched.get(now.id)
        if before == now:
            return
        self._watched[now.id] = now
        about = {
            "executionId": now.id,
            "status": now.status,
            "reason": now.reason or None,
            "progress": percent_of(now.done, now.total, Status(now.status)),
        }
        self._add(now.namespace, f"executions:{now.id}", "execution", about)
        if now.letters:
            about = {"runId": now.id, "status": now.status, "steps": now.letters}
            self._add(now.namespace, f"runs:{now.id}", "run", about)

    def _add(self, namespace: str, topic: str, name: str, about: dict[str, Any] | bytes) -> None:
        data = about if isinstance(about, bytes) else msgspec.json.encode(about)
        self._number += 1
        event = Event(self._number, self._services.clock.monotonic(), namespace, topic, name, data)
        self._ring.append(event)
        for stream in self._streams:
            stream.offer(event)

    def _forget_old(self) -> None:
        oldest = self._services.clock.monotonic() - KEPT_S
        while self._ring and self._ring[0].at < oldest:
            self._ring.popleft()


def topics(names: Iterable[str], watch: Iterable[str]) -> frozenset[str]:
    return frozenset((*names, *watch))


def _change(change: Change) -> dict[str, Any]:
    kind, _, action = change.action.partition(".")
    return {"kind": kind, "id": change.subject, "action": action, "by": change.actor, "at": rfc3339(change.at)}
