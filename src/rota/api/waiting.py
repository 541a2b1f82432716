"""Requests that wait for the end of an execution (`?wait=10s`).

All waits of a server share one listener for hints and one look at the database per second: a hint hastens the answer,
the look finds the ends whose hint was lost. Without waits nothing is read.

To wait in a handler, begin before the state is read, so that no end is missed in between:

    with call.services.part(Waits).on(call.namespace, id, call.check_token) as wait:
        shown = await call.read(view, call.namespace, id)
        if shown.status not in TERMINAL and await wait.ended(wait_s(query.wait)):
            shown = await call.read(view, call.namespace, id)

`check_token` ends the wait with a status of 401 when the caller's token is revoked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager

from rota.api.problem import bad_parameter
from rota.api.services import Services
from rota.domain import duration
from rota.domain.errors import DefinitionError, RotaError
from rota.store import enqueue_reader
from rota.store.hints import Ended, EndWanted, Listener

LONGEST_S = 60.0
LOOK_S = 1.0
ANNOUNCE_S = 20.0
"""How often the ids are announced again: other processes remember for 30 s which ends to send."""
MOST_IN_LOOK = 5_000
Check = Callable[[], Awaitable[None]]
"""Raises a problem if the caller may no longer wait. Called once a second."""
log = logging.getLogger("rota.api")


def wait_s(text: str | None) -> float | None:
    """The parameter `wait` in seconds; None if it is not given."""
    if text is None:
        return None
    try:
        plain = text.replace(".", "", 1).isdecimal() and text.isascii()
        found = duration.seconds(float(text) if plain else text, "wait")
    except DefinitionError:
        found = -1.0
    if not 0 <= found <= LONGEST_S:
        words = f"wait is a duration of at most {LONGEST_S:g}s, such as 10s, not {text[:64]!r}"
        raise bad_parameter("wait", words)
    return found


class Wait:
    """One request that waits for one execution."""

    def __init__(self, services: Services, id: str, check: Check | None) -> None:
        self._services, self.id, self._check = services, id, check
        self._done = asyncio.get_running_loop().create_future()

    async def ended(self, seconds: float | None) -> bool:
        """Waits so long at most. True if the execution has ended, or the server is stopping: look at its state."""
        left_s = seconds or 0.0
        while left_s > 0 and not self._done.done() and not self._services.is_draining:
            await asyncio.wait([self._done], timeout=min(left_s, LOOK_S))
            left_s -= LOOK_S
            if self._check is not None:
                await self._check()
        return self._done.done()

    def end(self) -> None:
        if not self._done.done():
            self._done.set_result(None)


class Waits:
    """All waits of a server."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._waits: dict[str, tuple[str, set[Wait]]] = {}
        """By the id of the execution: its namespace, and the requests that wait."""
        self._listener: Listener | None = None
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._new: list[str] = []

    @property
    def count(self) -> int:
        """How many executions are waited for."""
        return len(self._waits)

    @contextmanager
    def on(self, namespace: str, id: str, check: Check | None = None) -> Iterator[Wait]:
        """Begins to watch an execution, which need not exist yet."""
        wait = Wait(self._services, id, check)
        self._waits.setdefault(id, (namespace, set()))[1].add(wait)
        self._start()
        self._announce(id)
        try:
            yield wait
        finally:
            left = self._waits[id][1]
            left.discard(wait)
            if not left:
                del self._waits[id]

    def close(self) -> None:
        if self._loop is None:
            return
        if self._task is not None and not self._loop.is_closed():
            self._task.cancel()
        self._silence()

    def _start(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self._task is None or self._task.done():
            self._task = self._loop.create_task(self._watch())
        if self._listener is None:
            try:
                self._listener = self._services.store.bus.listen(Ended)
            except (RotaError, OSError) as error:  # The look finds the ends all the same, a little later.
                log.warning("waits get no hints: %s", error)
            else:
                self._loop.add_reader(self._listener.fileno(), self._hear)

    def _silence(self) -> None:
        if self._listener is not None and self._loop is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None

    def _announce(self, id: str) -> None:
        """Asks other processes for a hint when this execution ends. The requests of a millisecond share one message."""
        self._new.append(id)
        if len(self._new) == 1:
            asyncio.get_running_loop().call_later(0.001, self._announce_new)

    def _announce_new(self) -> None:
        ids, self._new = self._new, []
        self._services.store.bus.send([EndWanted(tuple(ids))])

    def _hear(self) -> None:
        if self._listener is not None:
            for hint in self._listener.take():
                if isinstance(hint, Ended):
                    self._end(hint.ids)

    def _end(self, ids: Iterable[str]) -> None:
        for id in ids:
            for wait in self._waits[id][1] if id in self._waits else ():
                wait.end()

    async def _watch(self) -> None:
        """Looks once a second, as long as a request waits."""
        announced_at = self._services.clock.monotonic()
        while self._waits:
            await asyncio.sleep(LOOK_S)
            if self._services.is_draining:
                self._end(list(self._waits))
                continue
            waited = [(namespace, id) for id, (namespace, _) in self._waits.items()]
            try:
                for start in range(0, len(waited), MOST_IN_LOOK):
                    part = waited[start : start + MOST_IN_LOOK]
                    self._end(await self._services.read(enqueue_reader.ended, part))
            except RotaError as error:
                log.info("a look for waits failed: %s", error)
            now = self._services.clock.monotonic()
            if self._waits and now - announced_at >= ANNOUNCE_S:
                announced_at = now
                self._services.store.bus.send([EndWanted(tuple(self._waits))])
        self._silence()
