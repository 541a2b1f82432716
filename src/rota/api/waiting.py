"""Requests that wait for the end of an execution (`?wait=10s`).

All waits of a server share one listener for hints and one look at the database per second: a hint hastens the answer,
the look finds the ends whose hint was lost. The first looks of requests that come at the same time are one statement,
too, and the tokens are checked once a second, each of them once. Without waits nothing is read.

To wait in a handler, begin before the state is read, so that no end is missed in between:

    with call.services.part(Waits).on(call.namespace, id, call) as wait:
        await wait.look()
        await wait.ended(wait_s(query.wait))
    shown = await call.read(view, call.namespace, id)

A caller whose token is revoked meanwhile gets the problem with a status of 401.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rota.api.call import Call
from rota.api.problem import Problem, bad_parameter
from rota.api.services import Services
from rota.domain import duration
from rota.domain.errors import DefinitionError, RotaError
from rota.store import reader
from rota.store.hints import Ended, EndWanted, Listener

LONGEST_S = 60.0
LOOK_S = 1.0
ANNOUNCE_S = 20.0
"""How often the ids are announced again: other processes remember for 30 s which ends to send."""
MOST_IN_LOOK = 5_000
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

    def __init__(self, waits: Waits, namespace: str, id: str, call: Call | None) -> None:
        self._waits, self.namespace, self.id, self.call = waits, namespace, id, call
        self._done = asyncio.get_running_loop().create_future()
        self.has_begun = False
        """Whether the execution exists: a new one may not be committed yet, which is no end."""

    async def look(self) -> None:
        """Looks at the state of an execution that is not new. One that does not exist counts as ended."""
        await self._waits.first_look(self)

    async def ended(self, seconds: float | None) -> bool:
        """Waits so long at most. True if the execution has ended, or the server is stopping: look at its state."""
        self.has_begun = True
        if seconds and not self._done.done() and not self._waits.is_draining:
            await asyncio.wait([self._done], timeout=seconds)
        return self._done.done() and self._done.result()

    def end(self) -> None:
        if not self._done.done():
            self._done.set_result(True)

    def refuse(self, problem: Problem) -> None:
        if not self._done.done():
            self._done.set_exception(problem)
            self._done.exception()  # Marks it as seen: the request may have ended by itself.


class Waits:
    """All waits of a server."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._waits: dict[str, set[Wait]] = {}
        """By the id of the execution."""
        self._listener: Listener | None = None
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._new: list[str] = []
        self._unseen: list[tuple[Wait, asyncio.Future[None]]] = []
        """Waits whose first look has not begun."""
        self._first_looks: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """How many executions are waited for."""
        return len(self._waits)

    @property
    def is_draining(self) -> bool:
        return self._services.is_draining

    @contextmanager
    def on(self, namespace: str, id: str, call: Call | None = None) -> Iterator[Wait]:
        """Begins to watch an execution, which need not exist yet."""
        wait = Wait(self, namespace, id, call)
        self._waits.setdefault(id, set()).add(wait)
        self._start()
        self._announce(id)
        try:
            yield wait
        finally:
            left = self._waits[id]
            left.discard(wait)
            if not left:
                del self._waits[id]

    async def first_look(self, wait: Wait) -> None:
        """The requests that come while a look is under way share the next one."""
        loop = asyncio.get_running_loop()
        seen: asyncio.Future[None] = loop.create_future()
        self._unseen.append((wait, seen))
        if self._first_looks is None or self._first_looks.done():
            self._first_looks = loop.create_task(self._look_at_new())
        await seen

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
            for wait in self._waits.get(id, ()):
                wait.end()

    async def _look_at_new(self) -> None:
        while self._unseen:
            part, self._unseen = self._unseen[:MOST_IN_LOOK], self._unseen[MOST_IN_LOOK:]
            try:
                await self._look([wait for wait, _ in part])
            except Exception as error:
                for _, seen in part:
                    if not seen.done():  # The request may have been given up.
                        seen.set_exception(error)
            else:
                for _, seen in part:
                    if not seen.done():
                        seen.set_result(None)

    async def _look(self, waits: list[Wait]) -> None:
        """Ends those of the waits whose execution has ended or is not there."""
        for start in range(0, len(waits), MOST_IN_LOOK):
            part = waits[start : start + MOST_IN_LOOK]
            pairs = {(wait.namespace, wait.id) for wait in part}
            ended = await self._services.read(reader.ended, sorted(pairs))
            for wait in part:
                if (wait.namespace, wait.id) in ended:
                    wait.end()

    async def _check_tokens(self, waits: list[Wait]) -> None:
        """Refuses the waits of callers whose token was revoked or has expired."""
        of_caller: dict[tuple[str | None, ...], list[Wait]] = {}
        for wait in waits:
            if wait.call is not None:
                of_caller.setdefault(wait.call.credentials, []).append(wait)
        for same in of_caller.values():
            call = same[0].call
            assert call is not None
            try:
                await call.check_token()
            except Problem as problem:
                for wait in same:
                    wait.refuse(problem)

    async def _watch(self) -> None:
        """Looks once a second, as long as a request waits."""
        announced_at = self._services.clock.monotonic()
        while self._waits:
            await asyncio.sleep(LOOK_S)
            if self._services.is_draining:
                self._end(list(self._waits))
                continue
            waits = [wait for same in self._waits.values() for wait in same if wait.has_begun]
            try:
                await self._check_tokens(waits)
                await self._look(waits)
            except RotaError as error:
                log.info("a look for waits failed: %s", error)
            now = self._services.clock.monotonic()
            if self._waits and now - announced_at >= ANNOUNCE_S:
                announced_at = now
                self._services.store.bus.send([EndWanted(tuple(self._waits))])
        self._silence()
