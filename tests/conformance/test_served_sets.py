"""A worker that serves several namespaces and apps."""

from __future__ import annotations

import pytest

from rota.domain.breaker import Breaker
from rota.domain.job import Definition
from rota.domain.lifecycle import Rules
from rota.domain.outcome import Failed
from rota.domain.requirement import Needs
from rota.domain.retry import Fixed
from rota.domain.served import Served
from rota.ops import claim, enqueue, finish, job_pauses, upkeep
from rota.ops.finish import Finished
from rota.store import load_reader, reader
from tests.support.world import ERROR, LEASE_S, World

TENANTS = ("north", "south")
APPS = ("shop", "bank")
BOTH = Served(namespaces=list(TENANTS), apps=list(APPS), queues=None, jobs=["send", "pay", "draw"])
BREAKS = Rules(retry=Fixed(attempts=1), breakers=(Breaker("mail", 1, 60.0),))


@pytest.fixture
def worker(world: World) -> int:
    for tenant in TENANTS:
        for app in APPS:
            pay, draw = Needs(breakers=["mail"]), Needs(affinity="n", affinity_wait_s=60.0)
            definitions = Definition(name="pay", needs=pay), Definition(name="draw", needs=draw)
            world.register("send", *definitions, namespace=tenant, app=app)
    return world.join(lease_s=3600, namespace="north")


def put(world: World, tenant: str, app: str = "shop", job: str = "send") -> str:
    header = world.header(job, namespace=tenant, app=app)
    return world.store.transact(enqueue.enqueue, header, [world.item({"n": 1})])[0].id


def take(world: World, worker: int) -> list[str]:
    world.clock.advance(2 * job_pauses.KNOWN_S)
    return [one.id for one in world.store.transact(claim.claim, worker, BOTH, 10).claims]


def test_a_claim_takes_from_all_namespaces_and_apps_by_rank(world: World, worker: int) -> None:
    ids = []
    for tenant, app in (("south", "bank"), ("north", "shop"), ("south", "shop"), ("north", "bank")):
        ids.append(put(world, tenant, app))
        world.clock.advance(2)
    assert world.store.read(reader.has_ready, BOTH)
    assert len(world.store.read(upkeep.look, LEASE_S, BOTH).ready) == 4
    assert world.store.read(load_reader.needs_of_ready, BOTH) == ["", ""]
    assert take(world, worker) == ids


def test_a_pause_applies_to_one_namespace_and_app(world: World, worker: int) -> None:
    world.store.transact(job_pauses.pause, "north", "shop", "send", "ann")
    paused, others = put(world, "north"), [put(world, "south"), put(world, "north", "bank")]
    assert set(take(world, worker)) == set(others)
    world.store.transact(job_pauses.resume, "north", "shop", "send", "ann")
    assert take(world, worker) == [paused]


def test_a_breaker_applies_to_one_namespace(world: World, worker: int) -> None:
    put(world, "north", job="pay")
    (first,) = world.store.transact(claim.claim, worker, BOTH, 10).claims
    world.store.transact(finish.finish, [Finished(first.id, first.fence, Failed(ERROR), breakers=BREAKS.breakers)])
    put(world, "north", job="pay")
    south = put(world, "south", job="pay")
    assert take(world, worker) == [south]


def test_failures_in_one_report_count_for_their_own_namespaces(world: World, worker: int) -> None:
    for tenant in ("north", "south", "south"):
        put(world, tenant, job="pay")
    policy = (Breaker("mail", 2, 60.0),)
    claims = world.store.transact(claim.claim, worker, BOTH, 10).claims
    reports = [Finished(one.id, one.fence, Failed(ERROR), breakers=policy) for one in claims]
    world.store.transact(finish.finish, reports)
    assert list(world.store.read(load_reader.open_circuits, "north")) == []
    assert list(world.store.read(load_reader.open_circuits, "south")) == ["mail"]


def test_affinity_is_remembered_for_each_namespace(world: World, worker: int) -> None:
    north, other = put(world, "north", job="draw"), world.join(lease_s=3600, namespace="south")
    assert take(world, worker) == [north]
    put(world, "north", job="draw")
    south = put(world, "south", job="draw")
    assert take(world, other) == [south], "the other one is for the worker that had its value last"
