"""A child of a simulated machine: the real loops, at the end of the real wire, without a process.

Whatever travels between a child and its supervisor takes a moment, arrives in order, and waits while the receiver is
stopped. The tether and the dead man's switch have no place here: they are about real processes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Protocol, cast

import msgspec

from rota.clock import Clock
from rota.domain.errors import LeaseLost, StoreError
from rota.domain.outcome import Succeeded
from rota.engine import tether
from rota.engine.host import Ending, Hello
from rota.engine.port import WorkerPort, WorkerStore
from rota.engine.tether import DRAIN, FINISH
from rota.engine.wire import Saw, WireClient, WireServer
from rota.engine.worker_loops import Assignment, WorkerLoops
from rota.ops.finish import Finished
from rota.store.hints import Hint, Ready
from tests.simulation.bodies import Bodies, Outside
from tests.simulation.history import Heard, Incarnation, Row
from tests.simulation.loop import Process, VirtualLoop

NAMESPACE, APP = "default", "sim"
TRAVEL_S = 0.0005
IMPORT_S = 0.05
"""How long a child takes from its start to its hello."""
KILLED = -9
_assignment = msgspec.json.Decoder(Assignment).decode


class Surroundings(Protocol):
    """What a child needs of the world."""

    loop: VirtualLoop
    outside: Outside
    incarnations: list[Incarnation]
    heard: list[Heard]
    errors: list[str]


class Pipe:
    """One direction of a connection; has what the wire uses of `asyncio.Transport`."""

    def __init__(self, receiver: Process) -> None:
        self._receiver = receiver
        self._end: asyncio.Protocol | None = None
        self._early: list[bytes] = []
        """Data that arrived before the receiver was connected. An empty entry means that the sender has hung up."""

    def connect(self, end: asyncio.Protocol) -> None:
        self._end = end
        for data in self._early:
            self._arrive(data)

    def write(self, data: bytes) -> None:
        self._receiver.call(TRAVEL_S, self._arrive, data)

    def close(self) -> None:
        self._receiver.call(TRAVEL_S, self._arrive, b"")

    def _arrive(self, data: bytes) -> None:
        if self._end is None:
            self._early.append(data)
        elif data:
            self._end.data_received(data)
        else:
            self._end.connection_lost(None)


class SimChild:
    """Implements `rota.engine.host.Child`."""

    def __init__(
        self,
        world: Surroundings,
        clock: Clock,
        supervisor: Process,
        pid: int,
        missing: frozenset[str],
        stop_grace_s: float,
    ) -> None:
        self.pid = pid
        self.blocked: Finished | None = None
        self.process = Process(world.loop, f"{supervisor.name} child {pid}")
        self.life: Incarnation | None = None
        self._world = world
        self._clock = clock
        self._supervisor = supervisor
        self._missing = missing
        self._stop_grace_s = stop_grace_s
        self._up, self._down = Pipe(supervisor), Pipe(self.process)
        self._server: WireServer | None = None
        self._store: WireClient | None = None
        self._loops: WorkerLoops | None = None
        self._announced: int | None = None
        self._greeted, self._leaving, self._ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.process.mourn(self._mourn)
        self.process.call(IMPORT_S, self._greeted.set)

    async def hello(self) -> Hello | None:
        await self._greeted.wait()
        jobs = sorted(Bodies(self._world.outside, self.process, 0).targets().keys() - self._missing)
        return None if self._ended.is_set() else Hello(APP, NAMESPACE, url="sim", jobs=jobs)

    def send(self, line: bytes) -> None:
        self.process.call(TRAVEL_S, self._obey, line)

    def hold_until(self, until: float) -> None:
        """The real child ends itself then, so that a supervisor that stands still does no harm."""

    async def serve_store(self, store: WorkerPort, saw: Saw) -> None:
        self._server = WireServer(store, saw)
        self._server.connection_made(cast("asyncio.Transport", self._down))
        self._up.connect(self._server)
        await self._server.serve()

    def tell(self, hints: Sequence[Hint]) -> None:
        if self._server is not None:
            self._server.tell(hints)

    @property
    def is_busy(self) -> bool:
        return self._server is not None and self._server.is_busy

    async def leaving(self) -> None:
        await self._leaving.wait()

    async def wait(self) -> int:
        await self._ended.wait()
        return KILLED if self._announced is None else self._announced

    async def ended(self, code: int) -> Ending:
        return Ending(code, self._announced is not None)

    def kill(self) -> None:
        self.process.kill()

    def close(self) -> None:
        """There are no descriptors."""

    def forge(self, row: Row) -> None:
        """A job writes to the socket of its process: the execution of another worker has succeeded, it says."""
        if self._store is not None and self.process.died_at is None:
            self.process.spawn(self._forge(self._store, row), "forger")

    async def _forge(self, store: WireClient, row: Row) -> None:
        with contextlib.suppress(StoreError, LeaseLost):
            await store.finish([Finished(row["id"], row["fence"], Succeeded('{"fence": 0}'))])

    def _obey(self, line: bytes) -> None:
        if self._world.outside.is_over:
            return  # It was killed before it could read this; now the world only unwinds.
        if self._loops is None:
            self._begin(_assignment(line))
        elif line in (DRAIN, FINISH):
            self._claims_no_more()
            (self._loops.drain if line == DRAIN else self._loops.finish)()

    def _begin(self, assignment: Assignment) -> None:
        world, worker = self._world, assignment.worker
        self.life = Incarnation(
            worker,
            self._supervisor.name,
            world.loop.time(),
            concurrency=assignment.concurrency,
            queues=None if assignment.queues is None else list(assignment.queues),
            missing=self._missing,
        )
        world.incarnations.append(self.life)
        targets = Bodies(world.outside, self.process, worker).targets()
        targets = {name: target for name, target in targets.items() if name not in self._missing}
        self._store = WireClient(self.process.kill)
        self._store.connection_made(cast("asyncio.Transport", self._up))
        self._down.connect(self._store)
        assignment = msgspec.structs.replace(assignment, stop_grace_s=self._stop_grace_s)
        self._loops = WorkerLoops(
            cast("WorkerStore", self._store), self._clock, assignment, targets, leaving=self._leave
        )
        self._store.hear = self._hear
        self.process.spawn(self._work(self._loops, self.life), "loops")

    async def _work(self, loops: WorkerLoops, life: Incarnation) -> None:
        try:
            await loops.run()
        except LeaseLost:
            life.ending, self._announced = "lost its lease", tether.LEASE_LOST
        except Exception as error:
            life.ending = "died of an error"
            self._world.errors.append(f"worker {life.worker} died of {error!r}")
        else:
            life.ending = "recycled" if loops.worker.is_tainted else "drained"
            self._announced = tether.RECYCLE if loops.worker.is_tainted else tether.DRAINED
        self.process.kill()

    def _claims_no_more(self) -> None:
        assert self.life is not None, "a child that has no assignment claims nothing"
        self.life.draining_at = min(self.life.draining_at, self._world.loop.time())

    def _leave(self) -> None:
        self._claims_no_more()
        self._leaving.set()

    def _hear(self, hints: list[Hint]) -> None:
        assert self._loops is not None, "hints come after the assignment"
        assert self.life is not None
        now = self._world.loop.time()
        for hint in hints:
            if isinstance(hint, Ready):
                self._world.heard += [Heard(self.life.worker, lane, rank, now) for lane, rank in hint.lanes.items()]
        self._loops.hear(hints)

    def _mourn(self) -> None:
        """Outside of any process: what the kernel and the simulation know of the dead."""
        if self.life is not None:
            self.life.ending = self.life.ending or "killed"
            self.life.ended_at = self.process.died_at
            self.life.stops = self.process.stops() + self._supervisor.stops()
        self._ended.set()
        self._greeted.set()
        self._up.close()
