"""An execution prefers the worker that last ran one with the same value of an argument, for a bounded time."""

from __future__ import annotations

from rota.domain.job import Definition
from rota.domain.requirement import Needs
from rota.domain.retention import Retention
from rota.ops import claim, fleet, retention
from rota.ops.gates import claim_affinity
from tests.support.world import NAMESPACE, World

WAIT_S = 5.0


def declare(world: World) -> tuple[int, int]:
    """The job, and two workers."""
    world.register(Definition(name="sync", needs=Needs(affinity="customer", affinity_wait_s=WAIT_S)))
    return world.join(lease_s=600), world.join(lease_s=600)


def sync(world: World, customer: object) -> str:
    return world.enqueue(job="sync", arguments={"customer": customer})


def takes(world: World, worker: int) -> list[str]:
    """The executions that the worker claims; they end at once."""
    claims = world.claim(worker, 10)
    for one in claims:
        world.finish(one)
    return [one.id for one in claims]


def test_an_execution_prefers_the_worker_that_last_ran_its_value(world: World) -> None:
    one, other = declare(world)
    first = sync(world, "a")
    assert takes(world, one) == [first], "no worker had it before, so any worker takes it"
    second, third = sync(world, "a"), sync(world, "b")
    assert takes(world, other) == [third]
    assert takes(world, one) == [second]


def test_an_execution_waits_for_its_preferred_worker_only_for_affinity_wait(world: World) -> None:
    one, other = declare(world)
    sync(world, 7)
    takes(world, one)
    waits = sync(world, 7)
    world.clock.advance(WAIT_S - 0.1)
    assert takes(world, other) == []
    world.clock.advance(0.1)
    assert takes(world, other) == [waits]
    again = sync(world, 7)
    assert takes(world, one) == [], "the other one had it last"
    assert takes(world, other) == [again]


def test_an_execution_does_not_wait_for_a_stopped_or_draining_worker(world: World) -> None:
    _, other = declare(world)
    for leave in (fleet.leave, fleet.drain):
        gone = world.join(lease_s=600)
        customer = leave.__name__
        sync(world, customer)
        assert len(takes(world, gone)) == 1
        world.store.transact(leave, gone)
        waits = sync(world, customer)
        assert takes(world, other) == [waits]


def test_an_execution_that_waits_for_a_worker_does_not_block_later_ones(world: World) -> None:
    one, other = declare(world)
    sync(world, "a")
    takes(world, one)
    mine = [sync(world, "a") for _ in range(3)]
    theirs, plain = [sync(world, name) for name in ("b", "c")], world.enqueue()
    assert sorted(takes(world, other)) == sorted([*theirs, plain])
    claimed = world.store.transact(claim.claim, other, world.served(), 10)
    assert claimed.has_no_room, "the worker claims again when they have waited long enough"
    assert takes(world, one) == mine


def test_without_a_value_there_is_no_preference(world: World) -> None:
    for arguments in ({"customer": None}, {}):
        for worker in declare(world):
            x = world.enqueue(job="sync", arguments=arguments)
            assert takes(world, worker) == [x]


def test_different_values_of_any_type_are_distinguished(world: World) -> None:
    declare(world)
    values = [1, "1", 'it\'s "b"', "é☃", {"id": [1, 2]}, "x" * 5000, "y" * 5000, True]
    workers = [world.join(lease_s=600) for _ in values]
    for value, worker in zip(values, workers, strict=True):
        sync(world, value)
        assert len(takes(world, worker)) == 1
    ids = {sync(world, value): worker for value, worker in zip(values, workers, strict=True)}
    assert {id: worker for worker in workers for id in takes(world, worker)} == ids


def test_a_claim_checks_a_limited_number_of_executions_that_wait_for_a_worker(world: World) -> None:
    one, other = declare(world)
    sync(world, "a")
    takes(world, one)
    for _ in range(claim_affinity.WINDOW):
        sync(world, "a")
    behind = sync(world, "b")
    assert takes(world, other) == []
    world.clock.advance(WAIT_S)
    while behind not in (found := takes(world, other)):
        assert found


def test_affinity_values_that_have_not_occurred_for_long_are_deleted(world: World) -> None:
    one, _ = declare(world)
    for customer in ("a", "b"):
        sync(world, customer)
    takes(world, one)
    world.clock.advance(86400)
    begun = world.store.transact(retention.begin)
    assert begun is not None
    which = (begun.begun_at, Retention(0, {NAMESPACE: None}), "drop_affinity")
    assert world.store.transact(retention.prune_others, *which) == 0
    world.clock.advance(retention.AFFINITY_S)
    assert world.store.transact(retention.prune_others, *which) == 2
