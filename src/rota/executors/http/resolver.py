"""DNS look-ups in threads of their own, so that a name server that does not answer delays only the jobs that need it.

`getaddrinfo` cannot be cancelled and has no deadline: a look-up that hangs keeps its thread until the C library gives
up, which takes 5 to 30 seconds. The pool of the event loop has a handful of threads, and all jobs share it. Here

- each name has one look-up at a time, which all callers of that name wait for, each until its own deadline;
- at most `MOST_LOOKUPS` run at once. Above that a further name is refused at once, to be tried again later, unless it
  was found in the last ten minutes (`KEPT_S`): then its last addresses are used, after the same checks as new ones.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import Future

from rota.clock import Clock, SystemClock

MOST_LOOKUPS = 64
KEPT_S = 600.0
MOST_KEPT = 1000


class Unresolved(Exception):
    """A name that has no addresses, or was not looked up."""


class Resolver:
    """The look-ups of one process."""

    def __init__(self, most: int = MOST_LOOKUPS, clock: Clock | None = None) -> None:
        self._most = most
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._running: dict[str, Future[list[str]]] = {}
        self._known: dict[str, tuple[float, list[str]]] = {}
        """When a name was found last, and its addresses; the oldest first."""

    async def look_up(self, name: str) -> list[str]:
        """The addresses of a name, each once; raises Unresolved."""
        found = self._begun(name.lower())
        try:
            return found if isinstance(found, list) else await asyncio.wrap_future(found)
        except (socket.gaierror, UnicodeError) as error:
            why = error.strerror if isinstance(error, socket.gaierror) else "it is not a valid host name"
            raise Unresolved(f"the name {name} could not be looked up: {why}") from None

    def _begun(self, name: str) -> Future[list[str]] | list[str]:
        """The look-up of this name, or its last addresses if there is no room for a look-up."""
        with self._lock:
            if name in self._running:
                return self._running[name]
            if len(self._running) >= self._most:
                return self._last_known(name)
            future: Future[list[str]] = Future()
            future.set_running_or_notify_cancel()  # A caller that gives up must not cancel it for the others.
            try:
                threading.Thread(target=self._run, args=(name, future), name="rota-lookup", daemon=True).start()
            except RuntimeError as error:
                raise Unresolved(f"the name {name} was not looked up: {error}") from None
            self._running[name] = future
            return future

    def _last_known(self, name: str) -> list[str]:
        at, addresses = self._known.get(name, (0.0, []))
        if not addresses or self._clock.monotonic() - at > KEPT_S:
            raise Unresolved(
                f"the name {name} was not looked up: {self._most} other names wait for name servers that do not answer"
            )
        return addresses

    def _run(self, name: str, future: Future[list[str]]) -> None:
        try:
            found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
            addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
        except BaseException as error:
            self._end(name)
            future.set_exception(error)
        else:
            self._end(name, addresses)
            future.set_result(addresses)

    def _end(self, name: str, addresses: list[str] | None = None) -> None:
        with self._lock:
            self._running.pop(name, None)
            self._known.pop(name, None)
            if addresses:
                self._known[name] = self._clock.monotonic(), addresses
            while len(self._known) > MOST_KEPT:
                del self._known[next(iter(self._known))]
