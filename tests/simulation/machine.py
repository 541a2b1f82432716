"""A machine: the real supervisor and its children, as `rota worker` runs them, without real processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from rota.clock import Clock
from rota.domain.served import Served
from rota.engine.async_store import SupervisorCalls, WorkerCalls
from rota.engine.standstill import ProcessState
from rota.engine.supervisor import Supervisor
from rota.engine.worker_settings import WorkerSettings
from rota.store.hints import CancelAsked, Due, Hint, Ready
from tests.simulation import child
from tests.simulation.bus import SimBus
from tests.simulation.calls import Network, SimCalls
from tests.simulation.child import SimChild
from tests.simulation.history import Row
from tests.simulation.loop import Process


@dataclass(slots=True)
class Setup:
    """How a machine works."""

    name: str
    settings: WorkerSettings
    stop_grace_s: float
    missing: set[str]
    """Jobs that this machine's code does not have yet."""


class Surroundings(child.Surroundings, Protocol):
    """What a machine needs of the world."""

    bus: SimBus
    pids: Iterator[int]

    def calls(self, caller: str, network: Network) -> SimCalls: ...


class SimStorePort(SupervisorCalls):
    """The port of one supervisor. Implements `rota.engine.port.SupervisorStore`, with faults on the way."""

    def __init__(self, world: Surroundings, process: Process, network: Network, clock: Clock) -> None:
        super().__init__(world.calls(process.name, network), clock)
        self._world = world
        self._process = process
        self._network = network

    def for_worker(self, worker: int, served: Served) -> WorkerCalls:
        return WorkerCalls(self._world.calls(f"worker {worker}", self._network), worker, served)

    def listen(self, hear: Callable[[list[Hint]], None]) -> Callable[[], None]:
        self._world.bus.attach(self._process, hear, Due, Ready, CancelAsked)
        return lambda: self._world.bus.detach(self._process)


class SimHost:
    """Implements `rota.engine.host.Host` for one supervisor."""

    def __init__(self, machine: Machine, process: Process) -> None:
        self.name = machine.setup.name
        self.pid = next(machine.world.pids)
        self.process = process
        self.children: list[SimChild] = []
        self.stop: Callable[[], None] = lambda: None
        self._machine = machine

    async def start(self, command: Sequence[str]) -> SimChild:
        machine, setup = self._machine, self._machine.setup
        pid, missing = next(machine.world.pids), frozenset(setup.missing)
        started = SimChild(machine.world, machine.clock, self.process, pid, missing, setup.stop_grace_s)
        self.children.append(started)
        return started

    def on_signal(self, stop: Callable[[], None]) -> None:
        self.stop = stop

    def state(self, pid: int) -> ProcessState:
        return ProcessState("", 0)

    async def close(self) -> None:
        """There are no orphans."""

    def alive(self) -> list[SimChild]:
        return [one for one in self.children if one.process.died_at is None]


class Machine:
    """Can be booted, drained, killed and stopped, again and again."""

    def __init__(self, world: Surroundings, setup: Setup, clock: Clock) -> None:
        self.world = world
        self.setup = setup
        self.clock = clock
        self.network = Network(world.loop)
        self._host: SimHost | None = None
        self._lives = 0
        self._is_retired = False

    @property
    def is_up(self) -> bool:
        return self._host is not None and self._host.process.died_at is None

    @property
    def workers(self) -> set[int]:
        """Those of its living children."""
        return {one.life.worker for one in self._alive() if one.life is not None}

    @property
    def running(self) -> int:
        """How many bodies its children are in the middle of."""
        workers = self.workers
        return sum(body.ended_at is None and body.worker in workers for body in self.world.outside.bodies)

    def boot(self) -> None:
        if not self.is_up and not self._is_retired:
            self._lives += 1
            process = Process(self.world.loop, f"{self.setup.name}.{self._lives}")
            self._host = SimHost(self, process)
            process.spawn(self._supervise(self._host), "supervisor")

    def kill(self) -> None:
        """Every process at once, as when the power goes."""
        for process in [*self.children(), *self.supervisors()]:
            process.kill()

    def drain(self) -> Callable[[], None]:
        """SIGTERM to the supervisor; the answer is a second one to the same supervisor, which hastens it."""
        host = self._host
        if host is None:
            return lambda: None
        host.process.call(0, lambda: host.stop())
        return lambda: host.process.call(0, lambda: host.stop())

    def retire(self) -> None:
        """Drains, never to come back."""
        self._is_retired = True
        self.drain()

    def forge(self, running: Sequence[Row]) -> bool:
        """One of its children reports an execution that another worker runs; False if there is none."""
        for one in self._alive():
            others = [row for row in running if one.life is not None and row["worker"] != one.life.worker]
            if others:
                one.forge(others[0])
                return True
        return False

    def supervisors(self) -> list[Process]:
        return [self._host.process] if self._host is not None and self.is_up else []

    def children(self) -> list[Process]:
        return [one.process for one in self._alive()]

    def _alive(self) -> list[SimChild]:
        return [] if self._host is None else self._host.alive()

    async def _supervise(self, host: SimHost) -> None:
        async def connect(url: str) -> SimStorePort:
            return SimStorePort(self.world, host.process, self.network, self.clock)

        try:
            await Supervisor(self.setup.settings, self.clock, host, connect).run()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self.world.errors.append(f"{host.process.name} died of {error!r}")
        self.kill()
