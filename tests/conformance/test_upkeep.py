"""Chores that any node may do at any time: promote, expire, rescue."""

from __future__ import annotations

import pytest

from rota.domain.errors import UnknownExecution
from rota.domain.job import Queue
from rota.domain.rank import Policy
from rota.domain.status import Reason, Status
from rota.ops import control, fleet, upkeep
from rota.ops.upkeep import Chores
from rota.store.hints import Ended, Ready
from tests.support.world import FAILED, LEASE_S, NAMESPACE, THREE_TRIES, RecordingBus, World

SECOND = 1_000_000


def look(world: World) -> Chores:
    return world.store.read(upkeep.look, LEASE_S)


def rescue(world: World) -> int:
    return world.store.transact(upkeep.rescue, LEASE_S).executions


def expire(world: World) -> int:
    return world.store.transact(upkeep.expire)


def run_now(world: World, id: str) -> Status:
    return world.store.transact(control.run_now, NAMESPACE, id, "test")


def test_upkeep_reports_that_no_chore_is_due(world: World) -> None:
    world.enqueue()
    assert look(world) == Chores(world.clock.now(), None, None, dead_workers=False)


def test_a_due_execution_is_promoted_and_never_early(world: World, bus: RecordingBus) -> None:
    id = world.enqueue(delay_s=10)
    assert look(world).next_due_at == world.clock.now() + 10 * SECOND
    world.clock.advance(9.999999)
    assert world.promote() == 0
    assert world.status(id) is Status.SCHEDULED
    world.clock.advance(0.000001)
    bus.hints.clear()
    assert world.promote() == 1
    assert world.status(id) is Status.QUEUED
    assert [type(hint) for hint in bus.hints] == [Ready]
    assert world.promote() == 0
    assert look(world).next_due_at is None


@pytest.mark.parametrize("is_retrying", [False, True])
def test_an_execution_may_be_started_before_its_time(world: World, bus: RecordingBus, is_retrying: bool) -> None:
    if is_retrying:
        worker, attempt = world.start()
        world.finish(attempt, FAILED, THREE_TRIES)
        id = attempt.id
    else:
        worker, id = world.join(), world.enqueue(delay_s=3600)
    bus.hints.clear()
    first = world.enqueue()
    assert run_now(world, id) is Status.QUEUED
    assert world.execution(id).run_at == world.clock.now()
    assert [type(hint) for hint in bus.hints] == [Ready, Ready]
    assert run_now(world, id) is Status.QUEUED
    world.clock.advance(1)
    assert {one.id: one.attempts for one in world.claim(worker)} == {first: 0, id: int(is_retrying)}
    assert run_now(world, id) is Status.RUNNING
    assert world.promote() == 0


def test_what_has_ended_does_not_start_again_now(world: World) -> None:
    (failed,) = world.fail()
    assert run_now(world, failed) is Status.FAILED
    with pytest.raises(UnknownExecution):
        run_now(world, world.ids.new())
    with pytest.raises(UnknownExecution):
        world.store.transact(control.run_now, "tenant", world.enqueue(delay_s=10), "test")


def test_an_execution_that_is_promoted_late_is_ranked_by_its_due_time(world: World) -> None:
    second = world.enqueue(delay_s=20)
    first = world.enqueue(delay_s=10)
    world.clock.advance(15)
    between = world.enqueue()
    world.clock.advance(15)
    world.promote()
    assert [attempt.id for attempt in world.claim(world.join())] == [first, between, second]


def test_promotion_follows_the_policy_of_the_queue(world: World) -> None:
    world.register(queues=[Queue(name="line", policy=Policy.FIFO)])
    low = world.enqueue(queue="line", delay_s=1, priority=-10)
    high = world.enqueue(queue="line", delay_s=2, priority=10)
    world.clock.advance(3)
    world.promote()
    assert [attempt.id for attempt in world.claim(world.join())] == [low, high]


def test_many_due_executions_are_promoted_in_batches(world: World) -> None:
    world.enqueue_many(upkeep.MOST + 10, delay_s=1)
    world.clock.advance(1)
    assert world.promote() == upkeep.MOST
    assert world.promote() == 10
    assert world.promote() == 0


def test_a_promoted_retry_keeps_its_fence_and_attempts(world: World) -> None:
    _, attempt = world.start()
    world.finish(attempt, FAILED, THREE_TRIES)
    world.clock.advance(10)
    world.promote()
    (again,) = world.claim(world.join())
    assert (again.attempts, again.fence, again.first_start_at) == (1, 2, attempt.first_start_at)


def test_an_execution_that_did_not_start_in_time_is_skipped(world: World, bus: RecordingBus) -> None:
    queued = world.enqueue(start_within_s=5)
    scheduled = world.enqueue(delay_s=60, start_by=world.clock.now() + 30 * SECOND)
    assert look(world).next_deadline == world.clock.now() + 5 * SECOND
    world.clock.advance(5)
    bus.hints.clear()
    assert expire(world) == 1
    assert bus.hints == [Ended((queued,))]
    row = world.execution(queued)
    assert (row.status, row.reason, row.fence) == (Status.SKIPPED, Reason.START_DEADLINE, 1)
    world.clock.advance(25)
    assert expire(world) == 1
    assert world.status(scheduled) is Status.SKIPPED
    assert look(world).next_deadline is None
    assert world.dead() == []


def test_an_execution_that_started_in_time_is_not_skipped(world: World) -> None:
    id = world.enqueue(start_within_s=5)
    worker = world.join(lease_s=60)
    (attempt,) = world.claim(worker)
    world.clock.advance(6)
    assert expire(world) == 1
    assert world.status(id) is Status.RUNNING
    world.finish(attempt, FAILED, THREE_TRIES)
    assert expire(world) == 0
    assert world.status(id) is Status.RETRYING


def test_a_retry_after_a_start_in_time_is_not_skipped(world: World) -> None:
    _, attempt = world.start(start_within_s=5)
    world.finish(attempt, FAILED, THREE_TRIES)
    world.clock.advance(6)
    assert expire(world) == 1
    assert world.status(attempt.id) is Status.RETRYING


def test_an_execution_that_ended_before_its_deadline_is_not_skipped(world: World) -> None:
    _, attempt = world.start(start_within_s=5)
    world.finish(attempt)
    cancelled = world.enqueue(start_within_s=5)
    world.cancel(cancelled)
    world.clock.advance(10)
    assert expire(world) == 2
    assert (world.status(attempt.id), world.status(cancelled)) == (Status.SUCCESS, Status.CANCELLED)


def test_many_late_executions_are_skipped_in_batches(world: World) -> None:
    world.enqueue_many(upkeep.MOST + 10, start_within_s=1)
    world.clock.advance(2)
    assert expire(world) == upkeep.MOST
    assert expire(world) == 10
    assert world.executions(status=Status.QUEUED) == []


def test_executions_of_a_worker_with_an_expired_lease_are_rescued(world: World) -> None:
    worker, attempt = world.start()
    world.clock.advance(LEASE_S - 0.001)
    assert not look(world).dead_workers
    assert rescue(world) == 0
    world.clock.advance(0.001)
    assert look(world).dead_workers
    assert rescue(world) == 1
    (kept,) = world.attempts(attempt.id)
    assert (kept.status, kept.reason) == ("lost", Reason.CRASHED)
    assert "sent no heartbeat" in (kept.error or "")
    assert world.finish(attempt) == [attempt.id]
    assert world.store.transact(fleet.beat, [worker], LEASE_S) == {}


def test_a_lease_that_expires_after_the_check_is_not_rescued_by_it(world: World) -> None:
    """The rescue may have waited for the write lock, and heartbeats with it."""
    world.start()
    world.clock.advance(0.75 * LEASE_S)
    looked_at = look(world).now
    world.clock.advance(0.5 * LEASE_S)
    assert world.store.transact(upkeep.rescue, LEASE_S, looked_at).executions == 0
    assert world.store.transact(upkeep.rescue, LEASE_S, look(world).now).executions == 1


def test_a_worker_with_heartbeats_is_not_rescued(world: World) -> None:
    worker, attempt = world.start()
    for _ in range(10):
        world.clock.advance(LEASE_S / 2)
        world.store.transact(fleet.beat, [worker], LEASE_S)
        assert rescue(world) == 0
    assert world.status(attempt.id) is Status.RUNNING


def test_many_dead_workers_are_rescued_in_batches(world: World) -> None:
    for _ in range(upkeep.MOST_WORKERS + 5):
        world.enqueue()
        world.claim(world.join(), 1)
    world.clock.advance(LEASE_S)
    assert rescue(world) == upkeep.MOST_WORKERS
    assert rescue(world) == 5
    assert not look(world).dead_workers


def test_a_heartbeat_from_the_future_does_not_keep_a_dead_worker_alive(world: World) -> None:
    _, attempt = world.start()
    world.clock.advance(-3600)
    assert look(world).dead_workers
    assert rescue(world) == 1
    assert world.status(attempt.id) is Status.QUEUED


def test_chores_done_twice_change_nothing_more(world: World) -> None:
    _, attempt = world.start()
    world.enqueue(delay_s=1)
    world.clock.advance(LEASE_S)
    assert [world.promote(), rescue(world)] == [1, 1]
    before = world.execution(attempt.id)
    assert [world.promote(), rescue(world), expire(world)] == [0, 0, 0]
    assert world.execution(attempt.id) == before
