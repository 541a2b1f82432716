"""Versions of an app's code, and workers of several of them on one database, without processes."""

from __future__ import annotations

import msgspec

from rota.domain.deploy import GRACE_LEASES
from rota.domain.job import Definition, Queue
from rota.domain.schedule import Spec
from rota.domain.trigger import Every
from rota.ops import deploy, fleet
from rota.store import deploys, reader, schedule_reader
from rota.store.port import Tx, View
from tests.support.newcomers import newcomer
from tests.support.world import APP, LEASE_S, NAMESPACE, World

GRACE_S = GRACE_LEASES * LEASE_S
SECOND = 1_000_000


class Code(msgspec.Struct, frozen=True):
    """A version of the app's code: schedules by name with their period, the timeout of the job, the queue's depth."""

    schedules: dict[str, int]
    timeout_s: float = 60.0
    max_depth: int = 100

    @property
    def declarations(self) -> tuple[list[Definition], list[Queue], dict[str, Spec]]:
        return (
            [Definition(name="tidy", timeout_s=self.timeout_s)],
            [Queue(name="mail", max_depth=self.max_depth)],
            {name: Spec(job="tidy", trigger=Every(every * SECOND)) for name, every in self.schedules.items()},
        )


OLD = Code({"clean": 60})
NEW = Code({"clean": 30, "backup": 3600}, timeout_s=5.0, max_depth=7)
NEWER = Code({"report": 600}, timeout_s=1.0, max_depth=1)


def join(tx: Tx, number: int) -> int:
    """A worker of that deploy."""
    joining = newcomer(APP, namespace=NAMESPACE, deploy=number)
    return fleet.join(tx, joining, LEASE_S)


class Site(msgspec.Struct):
    """Workers of several deploys on one database."""

    world: World

    def declare(self, code: Code, *, takes_precedence: bool = False) -> int:
        store, declarations = self.world.store, code.declarations
        return store.transact(deploy.declare, NAMESPACE, APP, *declarations, takes_precedence=takes_precedence)

    def register(self, code: Code) -> None:
        """As a process does that enqueues."""
        definitions, queues, _ = code.declarations
        self.world.register(*definitions, queues=queues)

    def join(self, number: int) -> int:
        return self.world.store.transact(join, number)

    def start(self, code: Code) -> int:
        """A worker as it starts: it declares what its code has, and joins."""
        self.register(code)
        return self.join(self.declare(code))

    def leave(self, *workers: int) -> None:
        for worker in workers:
            self.world.store.transact(fleet.leave, worker)

    def kill(self, worker: int) -> None:
        self.world.store.transact(fleet.declare_dead, worker, "killed")

    def upkeep(self) -> None:
        """What every supervisor does from time to time."""
        found = self.world.store.read(deploy.look, NAMESPACE, APP, LEASE_S)
        if found.due != found.applied:
            self.world.store.transact(deploy.settle, NAMESPACE, APP, LEASE_S)

    def pass_s(self, seconds: float) -> None:
        self.world.clock.advance(seconds)
        self.upkeep()

    def use(self, number: int) -> bool:
        return self.world.store.transact(deploy.use, NAMESPACE, APP, number, LEASE_S, "ann")

    def in_force(self) -> Code:
        """The code that the database follows, put together from everything that a deploy decides."""
        return self.world.store.read(_in_force)

    def row(self, number: int) -> deploys.DeployRow:
        return next(row for row in self.world.store.read(deploys.all_deploys, NAMESPACE) if row.number == number)


def _in_force(view: View) -> Code:
    rows = schedule_reader.schedules(view, NAMESPACE, APP)
    triggers = {row.name: row.spec.trigger for row in rows if row.origin == "code"}
    definition = reader.definition(view, NAMESPACE, APP, "tidy")
    queue = next(row for row in reader.queues(view, NAMESPACE) if row.name == "mail")
    assert definition is not None
    assert queue.max_depth is not None
    timeout_s = msgspec.json.decode(definition, type=Definition).timeout_s
    assert timeout_s is not None
    periods = {name: every.period // SECOND for name, every in triggers.items() if isinstance(every, Every)}
    return Code(periods, timeout_s, queue.max_depth)
