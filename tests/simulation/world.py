"""One run: a fleet, its clients, a database and the weather, made from a seed."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from unittest import mock

from rota.domain.headcount import Headcount
from rota.domain.job import Definition, Queue
from rota.domain.rank import Policy
from rota.engine.dispatcher import LONGEST_SWEEP_S
from rota.engine.worker_settings import WorkerSettings
from rota.ids import IdSource
from rota.ops import blockers, define
from rota.ops.events import subscriptions
from tests.simulation import flows, requests
from tests.simulation.bodies import FIRST, RULES, Outside
from tests.simulation.bus import SimBus
from tests.simulation.calls import Network, SimCalls
from tests.simulation.chaos import Chaos
from tests.simulation.child import APP, NAMESPACE
from tests.simulation.clients import Client, Memory
from tests.simulation.clocks import MachineClock, StoreClock
from tests.simulation.faults import Fault, Script, Weather
from tests.simulation.history import Heard, History, Incarnation, Trouble
from tests.simulation.loop import Stuck, VirtualLoop
from tests.simulation.machine import Machine, Setup
from tests.simulation.operator import Operator
from tests.simulation.postgres import PostgresSimStore
from tests.simulation.store import SimStore, SqliteSimStore
from tests.simulation.witness import TABLES

DATABASES: dict[str, Callable[[StoreClock], SimStore]] = {"sqlite": SqliteSimStore, "postgres": PostgresSimStore}
BATCH = 2
"""Executions that one batch releases from a blocker, so that a resume takes several."""
LIVE = ("scheduled", "waiting", "ready", "running", "event_open")


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a run is."""

    machines: int = 3
    clients: int = 3
    wishes: int = 16
    chaos_s: float = 20.0
    settle_s: float = LONGEST_SWEEP_S + 2
    calm_wishes: int = 6
    calm_s: float = 8.0
    limit_s: float = 500.0
    """Everything must have ended this long after the faults were healed."""
    events: tuple[Fault, ...] = ()
    """If given, no other events happen to machines, networks and clocks."""


class World:
    """Everything there is in one run."""

    def __init__(
        self,
        seed: int,
        scale: Scale | None = None,
        script: Script | None = None,
        database: str = "sqlite",
        *,
        runs: bool = False,
    ) -> None:
        """With `runs` there are workflows and events, a client that starts runs, and one that answers and emits."""
        self._has_runs = runs
        self.seed = seed
        self.database = database
        self.scale = scale or Scale()
        self.loop = VirtualLoop()
        sky = self.entropy("weather")
        self.weather = Weather(sky) if script is None else Weather.scripted(sky, script)
        if self.scale.events:
            self.weather.events = dict.fromkeys(self.scale.events, 1.0)
        self.clock = StoreClock(self.loop, self.entropy("store"))
        self.store: SimStore = DATABASES[database](self.clock)
        self.bus = SimBus(self.weather, self.entropy("bus"))
        self.store.ride(self.bus)
        self.outside = Outside(self.loop, self.weather)
        self.outside.workflows = tuple(flows.GRAPHS) if runs else ()
        self.backbone = Network(self.loop)
        self.memory = Memory()
        self.pids: Iterator[int] = itertools.count(1)
        self.incarnations: list[Incarnation] = []
        self.heard: list[Heard] = []
        self.troubles: list[Trouble] = []
        self.errors: list[str] = []
        entropy = self.entropy("fleet")
        self.lease_s = entropy.choice([2.0, 3.0, 5.0])
        self.poll_s = entropy.choice([0.3, 1.0])
        self.machines = [self._machine(number, entropy) for number in range(self.scale.machines)]
        self._healed_at = 0.0
        self._ended_at: float | None = None

    def entropy(self, stream: str) -> Random:
        """Randomness of its own for every part, so that a change in one does not reshuffle the others."""
        return Random(f"{self.seed} {stream}")

    def calls(self, caller: str, network: Network) -> SimCalls:
        return SimCalls(
            caller,
            self.store,
            self.loop,
            self.weather,
            self.backbone,
            network,
            self.entropy(f"calls {caller}"),
            patience_s=1.5 * self.lease_s,
            clock=self.clock,
            troubles=self.troubles,
        )

    def run(self) -> History:
        """Lives through it and returns what the witnesses saw."""
        try:
            with mock.patch.object(blockers, "MOST", BATCH), flows.small_and_watched(self.errors):
                self.loop.run_until_complete(self._live())
        except Stuck as error:
            self.errors.append(str(error))
        history = self._history()
        self._dispose()
        return history

    async def _live(self) -> None:
        self._register()
        for machine in self.machines:
            machine.boot()
        clients = [self._client(number) for number in range(self.scale.clients)]
        if self._has_runs:
            memory = Memory()
            clients.append(self._client(len(clients), flows.Starter, memory))
            clients.append(self._client(len(clients), Operator, memory))
        chaos = Chaos(
            self.loop,
            self.machines,
            self.backbone,
            self.clock,
            self.weather,
            self.entropy("chaos"),
            self.lease_s,
            lambda: self.store.witness.table("running"),
        )
        wishes = [self.loop.create_task(client.run(self.scale.wishes, self.scale.chaos_s)) for client in clients]
        await chaos.rage(self.scale.chaos_s)
        chaos.heal()
        self._healed_at = self.loop.time()
        await asyncio.gather(*wishes)
        await clients[0].resume_all()
        await self._calm(clients)
        await self._until_all_ended()
        # Time to clear up after those that died when all was nearly over.
        await asyncio.sleep(3 * self.lease_s)
        # No other machine would rescue the executions of the last one, so it is drained without faults.
        self.weather.script = None
        await self._until_all_left()

    async def _calm(self, clients: list[Client]) -> None:
        """Nothing goes wrong any more, but hints get lost and commits are late: what is asked for is done promptly."""
        await asyncio.sleep(self.scale.settle_s)
        entropy = self.entropy("calm")
        if self.machines[1:]:
            # What it does not finish in time it gives back, to a place that the others have passed.
            machine = entropy.choice(self.machines)
            self.loop.outside(entropy.uniform(0, self.scale.calm_s), machine.drain)
            self.loop.outside(self.scale.calm_s + machine.setup.settings.grace_s + 1, machine.boot)
        await asyncio.gather(*(client.be_calm(self.scale.calm_wishes, self.scale.calm_s) for client in clients))

    async def _until_all_ended(self) -> None:
        until = self.loop.time() + self.scale.limit_s
        while self.loop.time() < until:
            if not any(self.store.witness.table(table) for table in LIVE):
                self._ended_at = self.loop.time()
                return
            await asyncio.sleep(self.poll_s)

    async def _until_all_left(self) -> None:
        for machine in self.machines:
            machine.retire()
        until = self.loop.time() + self.scale.limit_s
        while any(machine.is_up for machine in self.machines) and self.loop.time() < until:  # noqa: ASYNC110
            await asyncio.sleep(self.poll_s)  # Virtual time costs nothing, and machines send no signal.

    def _register(self) -> None:
        definitions = [
            Definition(
                name=name,
                retry=rules.retry.describe(),
                total_timeout_s=rules.total_timeout_s,
                parameters={FIRST[name]: {"first": True}} if name in FIRST else {},
                on=flows.SUBSCRIBERS.get(name) if self._has_runs else None,
            )
            for name, rules in RULES.items()
        ]
        queues = [
            Queue(
                name=name,
                policy=Policy.FIFO if name == "line" else Policy.PRIORITY,
                max_depth=requests.DEPTHS.get(name),
            )
            for name in requests.QUEUES
        ]
        definitions += flows.DEFINITIONS if self._has_runs else []
        self.store.perform(define.register, (NAMESPACE, APP, definitions, queues), {}, "deploy")
        self.store.perform(subscriptions.declare, (NAMESPACE, APP, definitions), {}, "deploy")

    def _machine(self, number: int, entropy: Random) -> Machine:
        settings = WorkerSettings(
            command=(),
            processes=entropy.choice([Headcount(1, 1), Headcount(2, 2), Headcount(1, 2)]),
            version="sim",
            quiet_s=5.0,
            queues=None if number == 0 or entropy.random() < 0.7 else list(requests.QUEUES[:2]),
            concurrency=entropy.choice([1, 3, 6]),
            lease_s=self.lease_s,
            poll_s=self.poll_s,
            grace_s=entropy.choice([0.2, 2.0, 5.0]),
        )
        missing = {"newborn"} if entropy.random() < 0.3 else set[str]()
        setup = Setup(f"machine {number}", settings, stop_grace_s=0.5, missing=missing)
        clock = MachineClock(self.loop, self.entropy(f"clock {number}"), entropy.uniform(-3, 3) * 3600)
        return Machine(self, setup, clock)

    def _client(self, number: int, kind: type[Client] = Client, memory: Memory | None = None) -> Client:
        entropy = self.entropy(f"client {number}")
        calls = self.calls(f"client {number}", Network(self.loop))
        ids = IdSource(MachineClock(self.loop, self.entropy(f"ids {number}"), entropy.uniform(-1, 1) * 3600))
        whose = memory or self.memory
        tends = not self._has_runs
        return kind(calls, self.loop, self.clock, ids, whose, self.weather, entropy, tends_the_dead=tends)

    def _history(self) -> History:
        return History(
            seed=self.seed,
            database=self.database,
            lease_s=self.lease_s,
            poll_s=self.poll_s,
            rules=dict(RULES),
            depths=dict(requests.DEPTHS),
            submissions=self.memory.submissions,
            orders=self.memory.orders,
            bodies=list(self.outside.bodies),
            effects=list(self.outside.effects),
            operations=list(self.store.witness.operations),
            incarnations=self.incarnations,
            jumps=self.clock.jumps,
            heard=self.heard,
            troubles=self.troubles,
            tables={name: self.store.witness.table(name) for name in TABLES},
            faults=self.weather.seen,
            errors=[*self.errors, *self.loop.errors],
            healed_at=self._healed_at,
            ended_at=self._ended_at,
            has_runs=self._has_runs,
        )

    def _dispose(self) -> None:
        """Unwinds the remaining tasks quietly: a task that is dropped would log a warning in the next run."""
        self.outside.is_over = True
        self.backbone.darken(1e9)
        while any(process.tasks for process in self.loop.processes):
            for process in self.loop.processes:
                process.dispose()
            self.loop.run_until_complete(asyncio.sleep(10 * self.lease_s))
        self.loop.close()
        self.store.close()
