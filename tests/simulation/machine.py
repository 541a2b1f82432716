"""A machine: a supervisor and its children, as `rota worker` runs them, without real processes.

The supervisor's part is written anew here, because the real one is about processes and signals; what it does with the
store (join, beat, declare dead, farewell, upkeep) is the same code in the same order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from rota.clock import Clock
from rota.domain.errors import LeaseLost, StoreError
from rota.domain.status import Reason
from rota.engine.heart import Heart, farewell
from rota.engine.node import Node, Place
from rota.engine.upkeep import Upkeep
from rota.ops import fleet
from rota.store.hints import CancelAsked, Due, Hint, Ready
from tests.simulation.bodies import Bodies, Outside
from tests.simulation.bridge import Network, SimBridge
from tests.simulation.bus import SimBus
from tests.simulation.history import Heard, Incarnation
from tests.simulation.loop import Process, VirtualLoop

NAMESPACE, APP = "default", "sim"
IN_ORDER = ("drained", "recycled")


@dataclass(slots=True)
class Plan:
    """How a machine works."""

    name: str
    queues: list[str] | None
    concurrency: int
    lease_s: float
    poll_s: float
    grace_s: float
    stop_grace_s: float
    missing: set[str]
    """Jobs that this machine's code does not have yet."""

    def newcomer(self, name: str) -> fleet.Newcomer:
        return fleet.Newcomer(
            namespace=NAMESPACE,
            app=APP,
            name=name,
            host=self.name,
            pid=1,
            version="sim",
            queues=self.queues,
            concurrency=self.concurrency,
        )

    def place(self, worker: int) -> Place:
        return Place(
            worker=worker,
            namespace=NAMESPACE,
            app=APP,
            queues=self.queues,
            concurrency=self.concurrency,
            lease_s=self.lease_s,
            poll_s=self.poll_s,
            grace_s=self.grace_s,
            stop_grace_s=self.stop_grace_s,
        )


class Surroundings(Protocol):
    """What a machine needs of the world."""

    loop: VirtualLoop
    bus: SimBus
    outside: Outside
    incarnations: list[Incarnation]
    heard: list[Heard]
    errors: list[str]

    def bridge(self, caller: str, network: Network) -> SimBridge: ...


class Machine:
    """Can be booted, drained, killed and stopped, again and again."""

    def __init__(self, world: Surroundings, plan: Plan, clock: Clock, entropy: Random) -> None:
        self.world = world
        self.plan = plan
        self.clock = clock
        self.entropy = entropy
        self.network = Network(world.loop)
        self._supervisor: Supervisor | None = None
        self._lives = 0
        self._is_retired = False

    @property
    def is_up(self) -> bool:
        return self._supervisor is not None and self._supervisor.process.died_at is None

    @property
    def running(self) -> int:
        """How many bodies its children are in the middle of."""
        workers = self._supervisor.children if self._supervisor is not None else {}
        return sum(body.ended_at is None and body.worker in workers for body in self.world.outside.bodies)

    def boot(self) -> None:
        if not self.is_up and not self._is_retired:
            self._lives += 1
            process = Process(self.world.loop, f"{self.plan.name}.{self._lives}")
            self._supervisor = Supervisor(self, process)
            process.spawn(self._supervisor.run(), "supervisor")

    def kill(self) -> None:
        """Every process at once, as when the power goes."""
        for process in [*self.children(), *self.supervisors()]:
            process.kill()

    def drain(self) -> Callable[[], None]:
        """SIGTERM to the supervisor; the answer is a second one to the same supervisor, which hastens it."""
        supervisor = self._supervisor
        if supervisor is None:
            return lambda: None
        supervisor.process.call(0, supervisor.stop)
        return lambda: supervisor.process.call(0, supervisor.stop)

    def retire(self) -> None:
        """Drains, never to come back."""
        self._is_retired = True
        self.drain()

    def supervisors(self) -> list[Process]:
        return [self._supervisor.process] if self._supervisor is not None and self.is_up else []

    def children(self) -> list[Process]:
        return [child.process for child in self._supervisor.children.values()] if self._supervisor is not None else []


class Supervisor:
    """One life of a machine."""

    def __init__(self, machine: Machine, process: Process) -> None:
        self.process = process
        self.children: dict[int, Child] = {}
        self._machine = machine
        self._world = machine.world
        self._plan = machine.plan
        self._bridge = self._world.bridge(process.name, machine.network)
        self._heart = Heart(self._bridge, machine.clock, self._plan.lease_s, self._lost)
        self._stopping = asyncio.Event()
        self._let_go: set[int] = set()

    def stop(self) -> None:
        self._stopping.set()
        for child in self.children.values():
            child.process.call(0.001, child.drain)

    async def run(self) -> None:
        upkeep = Upkeep(self._bridge, self._machine.clock, self._plan.lease_s, self._plan.poll_s)

        def hear(hints: list[Hint]) -> None:
            for hint in hints:
                if isinstance(hint, Due):
                    upkeep.hear(hint)

        self._world.bus.attach(self.process, hear, Due)
        loops = (self._heart.loop, self._heart.watch, upkeep.loop)
        chores = [self.process.spawn(loop.run(), loop.name) for loop in loops]
        slot = self.process.spawn(self._keep_slot(), "slot")
        done, _ = await asyncio.wait([slot, *chores], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if not task.cancelled() and (error := task.exception()) is not None:
                self._world.errors.append(f"{task.get_name()} died of {error!r}")
        self._machine.kill()

    async def _keep_slot(self) -> None:
        lives: list[asyncio.Task[None]] = []
        while not self._stopping.is_set():
            joined_at = self._machine.clock.monotonic()
            try:
                worker = await self._bridge.transact(
                    fleet.join, self._plan.newcomer(self.process.name), self._plan.lease_s
                )
            except StoreError:
                await self._pause()
                continue
            self._heart.add(worker, joined_at)
            lives.append(await self._one_life(worker))
        await asyncio.gather(*lives)

    async def _one_life(self, worker: int) -> asyncio.Task[None]:
        """Returns when the slot needs a new child: this one has ended, or is on its way out."""
        child = self.children[worker] = Child(self._machine, self.process, worker)
        child.process.spawn(child.run(), "node")
        if self._stopping.is_set():
            child.process.call(0.01, child.drain)
        life = self.process.spawn(self._live_out(worker, child), "life")
        await child.leaving.wait()
        if life.done() and child.life.ending not in IN_ORDER:
            await self._pause()
        return life

    async def _live_out(self, worker: int, child: Child) -> None:
        await child.ended.wait()
        del self.children[worker]
        self._heart.remove(worker)
        if child.life.ending in IN_ORDER:
            await farewell(self._bridge, worker)
            return
        await self._report_death(worker, child.life.ending)

    async def _report_death(self, worker: int, ending: str) -> None:
        is_ours = worker in self._let_go
        while True:
            try:
                if is_ours:
                    await self._bridge.transact(fleet.leave, worker, Reason.LEASE_LOST)
                else:
                    await self._bridge.transact(fleet.declare_dead, worker, f"the worker process {ending}")
            except StoreError:
                if self._stopping.is_set():
                    return
                await self._pause()
            else:
                return

    def _lost(self, worker: int) -> None:
        if worker in self.children:
            self._let_go.add(worker)
            self.children[worker].process.kill()

    async def _pause(self) -> None:
        await asyncio.sleep(self._machine.entropy.uniform(0.1, 0.5))


class Child:
    """The process that runs user code."""

    def __init__(self, machine: Machine, supervisor: Process, worker: int) -> None:
        world = machine.world
        self.process = Process(world.loop, f"worker {worker}")
        self.life = Incarnation(
            worker,
            supervisor.name,
            world.loop.time(),
            concurrency=machine.plan.concurrency,
            queues=machine.plan.queues,
        )
        self.leaving = asyncio.Event()
        self.ended = asyncio.Event()
        self._machine = machine
        self._supervisor = supervisor
        self._worker = worker
        self._node: Node | None = None
        world.incarnations.append(self.life)
        self.process.mourn(self._mourn)

    def drain(self) -> None:
        self.life.draining_at = min(self.life.draining_at, self._machine.world.loop.time())
        if self._node is not None:
            self._node.drain()

    async def run(self) -> None:
        world, plan = self._machine.world, self._machine.plan
        targets = Bodies(world.outside, self.process, self._worker).targets()
        targets = {name: target for name, target in targets.items() if name not in plan.missing}
        bridge = world.bridge(f"worker {self._worker}", self._machine.network)
        place = plan.place(self._worker)
        self._node = node = Node(bridge, self._machine.clock, place, targets, leaving=self._leave)
        world.bus.attach(self.process, self._hear, Ready, CancelAsked)
        try:
            await node.run()
        except LeaseLost:
            self.life.ending = "lost its lease"
        except Exception as error:
            self.life.ending = "died of an error"
            world.errors.append(f"worker {self._worker} died of {error!r}")
        else:
            self.life.ending = "recycled" if node.worker.is_tainted else "drained"
        self.process.kill()

    def _leave(self) -> None:
        self.life.draining_at = min(self.life.draining_at, self._machine.world.loop.time())
        self.leaving.set()

    def _hear(self, hints: list[Hint]) -> None:
        assert self._node is not None, "nobody listens before there is a node"
        world = self._machine.world
        for hint in hints:
            if isinstance(hint, Ready):
                world.heard += [Heard(self._worker, lane, rank, world.loop.time()) for lane, rank in hint.lanes.items()]
        self._node.hear(hints)

    def _mourn(self) -> None:
        """Outside of any process: what the kernel and the simulation know of the dead."""
        self.life.ending = self.life.ending or "killed"
        self.life.ended_at = self.process.died_at
        self.life.stops = self.process.stops() + self._supervisor.stops()
        self.leaving.set()
        self.ended.set()
