"""A bad network on purpose: a proxy between clients and a PostgreSQL server that loses commits, stalls and breaks.

What is switched on stays on, for connections that exist and for new ones, until `heal()`. Modes can be combined.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeVar

from tests.support import daemons
from tests.support.daemons import LOCALHOST
from tests.support.pgwire import Answers, Message, Requests
from tests.support.postgres import USER

T = TypeVar("T")
When = Literal["before", "after"]
Way = Literal["to_server", "to_client"]


@dataclass
class Counts:
    """What the proxy has done so far."""

    connections: int = 0
    commits: int = 0
    """Commits that the server has answered, whether or not the client heard of it."""
    dropped_before: int = 0
    dropped_after: int = 0
    cut: int = 0
    """Connections ended by `cut`, `down` and flapping."""
    outages: int = 0


@dataclass
class _Loss:
    """Which of the commits that come by are lost."""

    skip: int = 0
    count: int = 0
    probability: float = 0.0

    def strikes(self, chance: random.Random) -> bool:
        if self.skip:
            self.skip -= 1
            return False
        if self.count:
            self.count -= 1
            return True
        return self.probability > 0 and chance.random() < self.probability


@dataclass(eq=False)
class _Link:
    """One connection of a client, and ours to the server on its behalf."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter

    def cut(self) -> None:
        self.client.transport.abort()
        self.server.transport.abort()


@dataclass
class _Weather:
    """The modes that are on."""

    losses: dict[When, _Loss] = field(default_factory=lambda: {"before": _Loss(), "after": _Loss()})
    open: dict[Way, asyncio.Event] = field(default_factory=lambda: {"to_server": _opened(), "to_client": _opened()})
    byte_s: float = 0.0


class Proxy:
    """Listens on a port of its own, and passes everything on unless a mode is on.

    Its methods may be called from any thread, and have taken effect when they return.
    """

    def __init__(self, server_port: int, seed: int = 0) -> None:
        self.port = daemons.free_port()
        self.counts = Counts()
        self._server_port = server_port
        self._chance = random.Random(seed)
        self._links: set[_Link] = set()
        self._flapping: asyncio.Task[None] | None = None
        self._listener: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._weather = self._do(_Weather)
        self._await(self._listen())

    # --- Where it is ---

    def url(self, database: str, user: str = USER) -> str:
        return f"postgresql://{user}@{LOCALHOST}:{self.port}/{database}"

    def through(self, url: str) -> str:
        """The URL of a database of the server, by way of this proxy."""
        return self.url(url.rpartition("/")[2])

    @property
    def connections(self) -> int:
        """How many are open now."""
        return self._do(lambda: len(self._links))

    # --- Modes ---

    def drop_commits(self, when: When, *, count: int = 0, probability: float = 0.0, skip: int = 0) -> None:
        """Cuts the connections of commits: the next `count` after `skip` others, then each with a `probability`.

        `before`: the server never sees the COMMIT, and rolls back. `after`: the server has committed and said so, but
        the client does not hear it. The client cannot tell which.
        """
        self._do(lambda: self._weather.losses.update({when: _Loss(skip, count, probability)}))

    def black_hole(self, *ways: Way) -> None:
        """Takes everything and passes on nothing, both ways or one way; nor that a side has hung up.

        As in a real network nothing is lost for good: when it heals, what was held back arrives late. To lose it, `cut`
        before.
        """
        self._do(lambda: self._hold(ways or ("to_server", "to_client")))

    def slow(self, ms_per_byte: float) -> None:
        """Passes everything on byte by byte."""
        self._do(lambda: setattr(self._weather, "byte_s", ms_per_byte / 1000))

    def refuse(self) -> None:
        """Refuses new connections; the ones that exist go on."""
        self._await(self._stop_listening())

    def cut(self) -> None:
        """Cuts the connections that exist; new ones are welcome."""
        self._do(self._cut)

    def down(self) -> None:
        """Refuses new connections and cuts the others, as a server does that is not there."""
        self._await(self._go_down())

    def flap(self, up_s: float, down_s: float) -> None:
        """Goes up and down again and again, for about so long; how long exactly follows from the seed."""
        self._await(self._stop_flapping())
        self._do(lambda: setattr(self, "_flapping", self._loop.create_task(self._flap(up_s, down_s))))

    def heal(self) -> None:
        """Ends all modes: everything is passed on again."""
        self._await(self._heal())

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._await(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- From the threads of tests to the loop ---

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)

    def _do(self, work: Callable[[], T]) -> T:
        async def call() -> T:
            return work()

        return self._await(call())

    # --- Up and down ---

    async def _listen(self) -> None:
        if self._listener is None:
            self._listener = await asyncio.start_server(self._accept, LOCALHOST, self.port)

    async def _stop_listening(self) -> None:
        if self._listener is not None:
            listener, self._listener = self._listener, None
            # asyncio drops a connection unclosed if its listener closes between the accept and the first call.
            for listening in listener.sockets:
                self._loop.remove_reader(listening)
            for _ in range(3):
                await asyncio.sleep(0)
            listener.close()

    def _hold(self, ways: Iterable[Way]) -> None:
        for way in ways:
            self._weather.open[way].clear()

    def _cut(self) -> None:
        self.counts.cut += len(self._links)
        for link in self._links:
            link.cut()
        self._links.clear()

    async def _go_down(self) -> None:
        self.counts.outages += 1
        await self._stop_listening()
        self._cut()

    async def _flap(self, up_s: float, down_s: float) -> None:
        while True:
            await asyncio.sleep(up_s * self._chance.uniform(0.5, 1.5))
            await self._go_down()
            await asyncio.sleep(down_s * self._chance.uniform(0.5, 1.5))
            await self._listen()

    async def _stop_flapping(self) -> None:
        if self._flapping is not None:
            self._flapping.cancel()
            await asyncio.wait([self._flapping])
            self._flapping = None

    async def _heal(self) -> None:
        await self._stop_flapping()
        self._clear_up()
        await self._listen()

    def _clear_up(self) -> None:
        before, self._weather = self._weather, _Weather()
        for held in before.open.values():
            held.set()

    async def _close(self) -> None:
        await self._stop_flapping()
        await self._stop_listening()
        self._cut()
        self._clear_up()
        # What serves a connection ends by itself now; it is only given the time.
        if tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(tasks, timeout=10)

    # --- One connection ---

    async def _accept(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        self.counts.connections += 1
        try:
            from_server, to_server = await asyncio.open_connection(LOCALHOST, self._server_port)
        except OSError:
            to_client.transport.abort()
            return
        link = _Link(to_client, to_server)
        self._links.add(link)
        try:
            await asyncio.gather(
                self._carry("to_server", link, from_client, to_server),
                self._carry("to_client", link, from_server, to_client),
            )
        finally:
            link.cut()
            self._links.discard(link)

    async def _carry(self, way: Way, link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = Requests() if way == "to_server" else Answers()
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                for message in stream.feed(data):
                    await self._passage(way)
                    if not await self._forward(way, link, message):
                        return
        # That a side has hung up is news as well, which the other one does not hear through a black hole.
        await self._passage(way)
        writer.close()

    async def _passage(self, way: Way) -> None:
        """Waits for the end of a black hole."""
        while not self._weather.open[way].is_set():
            await self._weather.open[way].wait()

    async def _forward(self, way: Way, link: _Link, message: Message) -> bool:
        """Passes a message on; false when that was the end of the connection."""
        if message.asks_for_encryption:
            # We could not read what is encrypted, so we say no, and the server never hears the question.
            return await self._write(link.client, b"N")
        if message.is_commit and self._loses(way):
            link.cut()
            return False
        return await self._write(link.server if way == "to_server" else link.client, message.raw)

    def _loses(self, way: Way) -> bool:
        if way == "to_server":
            lost = self._weather.losses["before"].strikes(self._chance)
            self.counts.dropped_before += lost
        else:
            self.counts.commits += 1
            lost = self._weather.losses["after"].strikes(self._chance)
            self.counts.dropped_after += lost
        return lost

    async def _write(self, writer: asyncio.StreamWriter, data: bytes) -> bool:
        while data and self._weather.byte_s:
            writer.write(data[:1])
            data = data[1:]
            await asyncio.sleep(self._weather.byte_s)
        writer.write(data)
        await writer.drain()
        return True


def _opened() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event
