"""`rota worker`: a process that runs no user code, keeps the leases of its children alive, and replaces them.

    supervisor                                  child (one per slot)
      spawn ───────────────────────────────────▶ imports the app
      ◀─────────────────────────── hello(app) ──
      join the fleet: a worker row with a lease
      ── place(worker, …) ─────────────────────▶ claims, runs, reports
      beats for all children in one statement
      sees a child's end at once, and gives back what it held

A child that ends in any way but in order is declared dead in the store at once, without waiting for its lease. If the
supervisor cannot prove that a lease still holds, it kills the child before anybody else may take its work.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Sequence

import msgspec

from rota.clock import Clock
from rota.domain.errors import StoreError
from rota.engine import tether
from rota.engine.bridge import StoreBridge
from rota.engine.child import Hello
from rota.engine.heart import Heart, farewell
from rota.engine.loop import FIRST_BACKOFF_S, LONGEST_BACKOFF_S, Wake
from rota.engine.node import Place
from rota.engine.upkeep import Upkeep
from rota.ops import fleet
from rota.store.hints import Due
from rota.store.port import Store

log = logging.getLogger("rota.engine")

QUICK_DEATH_S = 5.0
LONGEST_PAUSE_S = 10.0
LAST_WORD_S = 10.0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to run: the children's command line, how many of them, and how they work."""

    command: Sequence[str]
    processes: int
    namespace: str
    queues: Sequence[str] | None
    concurrency: int
    lease_s: float
    poll_s: float
    grace_s: float
    version: str


class Unusable(Exception):
    """The app could not be loaded; the text says why."""


class _Child:
    """A process and its pipes."""

    def __init__(self, process: asyncio.subprocess.Process, hello: asyncio.StreamReader) -> None:
        self.process = process
        self._hello = hello

    async def hello(self) -> Hello | None:
        data = await self._hello.read()
        return msgspec.json.decode(data, type=Hello) if data else None

    def send(self, line: bytes) -> None:
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.write(line + b"\n")

    def kill(self) -> None:
        """The child and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


class Supervisor:
    """Keeps `plan.processes` children at work until told to stop."""

    def __init__(self, plan: Plan, clock: Clock, open_store: Callable[[str], Store]) -> None:
        self._plan = plan
        self._clock = clock
        self._open_store = open_store
        self._children: dict[int, _Child] = {}
        self._stopping = Wake()
        self._is_stopping = False
        self._store: Store | None = None
        self._ready = asyncio.Event()
        self._usable = asyncio.Event()

    def stop(self) -> None:
        """First call: drain. Second: do not wait for what runs."""
        if self._is_stopping:
            log.warning("stopping now: what still runs goes back to the queue")
        else:
            log.warning("stopping: waiting up to %g s for what runs", self._plan.grace_s)
        self._is_stopping = True
        self._stopping.wake()
        for child in self._children.values():
            child.send(b"drain")

    async def run(self) -> None:
        """Returns after an orderly stop; raises Unusable if the app cannot be loaded."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        tasks = [asyncio.create_task(self._keep(slot), name=f"slot {slot}") for slot in range(self._plan.processes)]
        chores = asyncio.create_task(self._chores(), name="chores")
        try:
            await asyncio.gather(*tasks)
        finally:
            for child in self._children.values():
                child.kill()
            for task in (chores, *tasks):
                task.cancel()
            await asyncio.gather(chores, *tasks, return_exceptions=True)
            if self._store is not None:
                self._store.close()

    async def _chores(self) -> None:
        """Heartbeats and upkeep, once the first child has said which database to use."""
        await self._ready.wait()
        assert self._store is not None
        loop = asyncio.get_running_loop()
        bridge = StoreBridge(self._store)
        upkeep = Upkeep(bridge, self._clock, self._plan.lease_s, self._plan.poll_s)
        listener = self._store.bus.listen(Due)

        def hear() -> None:
            for hint in listener.take():
                if isinstance(hint, Due):
                    upkeep.hear(hint)

        loop.add_reader(listener.fileno(), hear)
        self._bridge = bridge
        self._heart = Heart(bridge, self._clock, self._plan.lease_s, self._lost)
        self._usable.set()
        try:
            await asyncio.gather(self._heart.loop.run(), self._heart.watch.run(), upkeep.loop.run())
        finally:
            loop.remove_reader(listener.fileno())
            listener.close()
            bridge.close()

    async def _keep(self, slot: int) -> None:
        """One slot: a child, and after it the next."""
        pause_s = FIRST_BACKOFF_S
        while not self._is_stopping:
            started_at = self._clock.monotonic()
            code = await self._one_life(slot)
            lived_s = self._clock.monotonic() - started_at
            if code in (tether.DRAINED, tether.RECYCLE) or lived_s > QUICK_DEATH_S:
                pause_s = FIRST_BACKOFF_S
            else:
                await self._stopping.sleep(pause_s)
                pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)

    async def _one_life(self, slot: int) -> int:
        child = await self._spawn()
        try:
            hello = await child.hello()
            if hello is None:
                return await child.process.wait()
            if hello.error:
                raise Unusable(hello.error)
            worker = await self._join(slot, child, hello)
            self._children[worker] = child
            child.send(msgspec.json.encode(self._place(worker, hello)))
            if self._is_stopping:
                child.send(b"drain")
            code = await self._wait(child)
            del self._children[worker]
            await self._bury(worker, code)
            return code
        finally:
            child.kill()

    async def _spawn(self) -> _Child:
        read, write = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *self._plan.command,
                "--hello-fd",
                str(write),
                stdin=asyncio.subprocess.PIPE,
                pass_fds=(write,),
                process_group=0,
            )
        finally:
            os.close(write)
        loop = asyncio.get_running_loop()
        stream = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(read, "rb"))
        return _Child(process, stream)

    async def _join(self, slot: int, child: _Child, hello: Hello) -> int:
        if self._store is None:
            self._store = self._open_store(hello.url)
            self._ready.set()
        await self._usable.wait()
        host = socket.gethostname()
        newcomer = fleet.Newcomer(
            namespace=self._plan.namespace,
            app=hello.app,
            name=f"{host}:{child.process.pid}",
            host=host,
            pid=child.process.pid,
            version=self._plan.version,
            queues=None if self._plan.queues is None else list(self._plan.queues),
            concurrency=self._plan.concurrency,
        )
        backoff_s = FIRST_BACKOFF_S
        while True:
            joined_at = self._clock.monotonic()
            try:
                worker = await self._bridge.transact(fleet.join, newcomer, self._plan.lease_s)
            except StoreError as error:
                log.warning("cannot join yet: %s", error)
                await self._stopping.sleep(backoff_s)
                backoff_s = min(LONGEST_BACKOFF_S, 2 * backoff_s)
            else:
                self._heart.add(worker, joined_at)
                return worker

    def _place(self, worker: int, hello: Hello) -> Place:
        plan = self._plan
        return Place(
            worker=worker,
            namespace=plan.namespace,
            app=hello.app,
            queues=plan.queues,
            concurrency=plan.concurrency,
            lease_s=plan.lease_s,
            poll_s=plan.poll_s,
            grace_s=plan.grace_s,
        )

    async def _wait(self, child: _Child) -> int:
        """The child's exit code; a child that outstays its grace is killed."""
        end = asyncio.create_task(child.process.wait())
        while not end.done():
            if self._is_stopping:
                done, _ = await asyncio.wait([end], timeout=self._plan.grace_s + LAST_WORD_S)
                if not done:
                    child.kill()
            else:
                stop = asyncio.create_task(self._stopping.sleep(None))
                await asyncio.wait([end, stop], return_when=asyncio.FIRST_COMPLETED)
                stop.cancel()
        return end.result()

    async def _bury(self, worker: int, code: int) -> None:
        """Tells the store at once; if it cannot be reached, the lease tells it later."""
        self._heart.remove(worker)
        if code in (tether.DRAINED, tether.RECYCLE):
            await farewell(self._bridge, worker)
            return
        cause = f"the worker process {_ending(code)}"
        log.error("%s; what it held goes to others", cause)
        with contextlib.suppress(StoreError):
            await self._bridge.transact(fleet.declare_dead, worker, cause)

    def _lost(self, worker: int) -> None:
        log.error("worker %d may no longer hold its lease; killing it", worker)
        if worker in self._children:
            self._children[worker].kill()


def _ending(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    if code == tether.LEASE_LOST:
        return "lost its lease"
    return f"ended with exit code {code}"
