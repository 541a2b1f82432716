"""What all requests of one server share: the store, threads for reading, the clock, ids, and cached rights."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import msgspec

from rota.api.body import Gone
from rota.api.problem import Problem
from rota.api.room import Room
from rota.api.route import Route
from rota.clock import Clock
from rota.config import Settings
from rota.domain.access import Grant
from rota.domain.errors import CommitUnknown, RequestInProgress
from rota.ids import IdSource
from rota.store.port import Store, Submitted, Tx, View
from rota.store.watch import Watch

if TYPE_CHECKING:
    from rota.api.feed import Feed

P = ParamSpec("P")
T = TypeVar("T")
KEY_PATIENCE_S = 5.0
"""How long a request waits for an earlier one with the same Idempotency-Key."""
LAST_S = 1.0
"""How long beyond `busy_s` to wait for an operation that has begun, whose outcome would be unknown otherwise."""
READERS = 8
"""How many small reads one server makes at once; further ones wait."""
HEAVY_READERS = 8
"""The same for lists and counts, which have threads of their own: a token is looked up while eight lists are read."""
TURN_S = 2.0
"""How long a heavy read waits for its turn."""
HEAVY_S = 5.0
"""After this time a heavy read is stopped. A list ends its page long before."""
STOP_EVERY_S = 0.1
Leaving = Callable[[], Awaitable[None]]
"""Returns when the client has closed the connection."""


class Exposure(msgspec.Struct, frozen=True, kw_only=True):
    """How clients reach the server, and whom it believes."""

    is_local: bool = True
    """It listens on loopback or on a Unix socket only."""
    is_auth_off: bool = False
    """`--no-auth`: every caller may do everything, even if tokens were made."""
    allowed_hosts: tuple[str, ...] = ()
    public_url: str | None = None
    cors_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()


class Services:
    def __init__(self, store: Store, clock: Clock, settings: Settings, exposure: Exposure) -> None:
        self.store, self.clock, self.settings, self.exposure = store, clock, settings, exposure
        self.ids = IdSource(clock)
        self._requests, self._node = count(1), self.ids.new()[-12:]
        self.routes: Sequence[Route] = ()
        """The whole table, for the OpenAPI document."""
        self.grant_of: Callable[[Mapping[str, str], str], Awaitable[Grant]]
        """The rights of a caller with these headers, at this address."""
        self.feed: Feed
        """What open streams show."""
        self.forget_grants: Callable[[], None] = lambda: None
        """Empties the cache of rights, which are kept for a few seconds. Call it after a change of tokens."""
        self.is_draining = False
        self.is_replaced = False
        """Whether another process answers on the same socket already, so that only this process stops."""
        self.answered_at = -math.inf
        """When the database last answered, on the monotonic clock."""
        self.room = Room()
        self._parts: dict[Any, Any] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(max_workers=READERS, thread_name_prefix="rota-api-read")
        self._heavy_threads = ThreadPoolExecutor(max_workers=HEAVY_READERS, thread_name_prefix="rota-api-list")
        self._turns = asyncio.Semaphore(HEAVY_READERS)

    def request_id(self) -> str:
        """An id for a request that brings none: unlike other ids it is no key of a table, and is counted."""
        return f"{self._node}-{next(self._requests):06d}"

    async def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs a query over one consistent state, in a thread for reads."""
        call = partial(self.store.read, query, *args, **kwargs)
        found = await asyncio.get_running_loop().run_in_executor(self._threads, call)
        self.answered_at = self.clock.monotonic()
        return found

    async def read_heavy(
        self, leaving: Leaving, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """`read` for lists and counts: few at once, stopped after `HEAVY_S` and as soon as the client has left."""
        try:
            async with asyncio.timeout(TURN_S):
                await self._turns.acquire()
        except TimeoutError:
            words = f"{HEAVY_READERS} lists and counts are being read already: try again in a moment"
            raise Problem("read_budget", words) from None
        watch = Watch(HEAVY_S)
        call = partial(self.store.read_watched, watch, query, *args, **kwargs)
        reading = asyncio.get_running_loop().run_in_executor(self._heavy_threads, call)
        reading.add_done_callback(lambda _: self._turns.release())
        left = asyncio.ensure_future(leaving())
        try:
            both: set[asyncio.Future[Any]] = {reading, left}
            await asyncio.wait(both, timeout=HEAVY_S, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                found = reading.result()
                self.answered_at = self.clock.monotonic()
                return found
            await _stop(reading, watch)
            if left.done():
                raise Gone
            raise Problem("read_budget", "the read took too long: narrow it with filters")
        finally:
            watch.stop()
            left.cancel()

    async def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs an operation in a transaction; gives up after `busy_s`."""
        with self.room.request():
            return await self.answer_of(self.store.submit(op, *args, **kwargs))

    async def answer_of(self, future: Submitted[T], *, has_key: bool = False) -> T:
        """The answer to a submitted operation.

        One with the key of a request fails after `KEY_PATIENCE_S` if another transaction has the key. It may still run
        after that: then the next request with the key gets its answer.
        """
        waiting = asyncio.wrap_future(future)
        busy_s, first_s = self.settings.busy_s, KEY_PATIENCE_S if has_key else math.inf
        done, _ = await asyncio.wait([waiting], timeout=min(first_s, busy_s))
        if not done and first_s < busy_s:
            if future.is_postponed:
                future.cancel()
                waiting.add_done_callback(look_at)
                raise RequestInProgress(
                    "an earlier request with the same Idempotency-Key is still in progress: retry later"
                )
            done, _ = await asyncio.wait([waiting], timeout=busy_s - first_s)
        if not done and future.cancel():
            raise self.store.too_busy()
        if not done:
            done, _ = await asyncio.wait([waiting], timeout=LAST_S)
        if not done:
            waiting.add_done_callback(look_at)
            raise CommitUnknown(f"an operation has not ended within {busy_s:g} s, and may still be committed")
        found = await waiting
        self.answered_at = self.clock.monotonic()
        return found

    def part(self, kind: Callable[[Services], T]) -> T:
        """The one object of this kind that all requests share, such as a cache; made when it is first needed."""
        if kind not in self._parts:
            self._parts[kind] = kind(self)
        found: T = self._parts[kind]
        return found

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs something after the answer. If the server stops before its end, another process must continue it."""
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def close(self) -> None:
        for part in self._parts.values():
            if hasattr(part, "close"):
                part.close()
        for threads in (self._threads, self._heavy_threads):
            threads.shutdown(wait=False, cancel_futures=True)
        self.store.close()


async def _stop(reading: asyncio.Future[T], watch: Watch) -> None:
    """Interrupts the statement that runs, and the next one if the first had just ended, until the thread is free."""
    while not reading.done():
        await asyncio.to_thread(watch.stop)
        await asyncio.wait({reading}, timeout=STOP_EVERY_S)
    reading.exception()  # Marks it as seen.


def look_at(future: asyncio.Future[Any]) -> None:
    """Takes note of an error that no caller waits for any more."""
    if not future.cancelled():
        future.exception()
