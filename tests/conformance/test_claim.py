"""Claiming: which workers may, which execution comes first, and that no execution is claimed twice."""

from __future__ import annotations

import pytest

from rota.domain.errors import LeaseLost
from rota.domain.job import Queue
from rota.domain.outcome import GivenBack, Snoozed
from rota.domain.rank import HEAD_START, Policy
from rota.domain.status import Reason, Status
from rota.ops import claim, fleet
from rota.store import reader
from tests.support.world import FAILED, THREE_TRIES, World

SECOND = 1_000_000


def claimed(world: World, slots: int = 100, queues: list[str] | None = None) -> list[str]:
    return [attempt.id for attempt in world.claim(world.join(), slots, queues)]


def test_a_claim_has_everything_that_the_worker_needs(world: World) -> None:
    id = world.enqueue("send", {"to": "a"}, start_within_s=60)
    world.clock.advance(2)
    (attempt,) = world.claim(world.join())
    assert (attempt.id, attempt.job, attempt.arguments) == (id, "send", '{"to":"a"}')
    assert (attempt.fence, attempt.attempts, attempt.crashes) == (1, 0, 0)
    assert attempt.started_at == attempt.first_start_at == world.clock.now()
    assert attempt.run_at == attempt.created_at == world.clock.now() - 2 * SECOND
    assert attempt.deadline == attempt.run_at + 60 * SECOND


def test_a_claimed_execution_is_running_and_belongs_to_its_worker(world: World) -> None:
    world.enqueue()
    (attempt,) = world.claim(world.join(name="ann"))
    row = world.execution(attempt.id)
    assert (row.status, row.fence, row.worker, row.started_at) == (Status.RUNNING, 1, "ann", world.clock.now())


def test_a_claimed_execution_is_not_claimed_again(world: World) -> None:
    ids = world.enqueue_many(10)
    one, other = claimed(world, 6), claimed(world, 6)
    assert one + other == ids


def test_a_worker_gets_no_more_than_it_has_slots_for(world: World) -> None:
    world.enqueue_many(10)
    assert len(claimed(world, 3)) == 3
    assert len(claimed(world, 100)) == 7
    assert claimed(world, 100) == []


def test_the_oldest_execution_is_claimed_first(world: World) -> None:
    ids = []
    for _ in range(5):
        ids.append(world.enqueue())
        world.clock.advance(0.001)
    assert claimed(world) == ids


def test_a_higher_priority_is_claimed_first(world: World) -> None:
    low, normal, high = (world.enqueue(priority=priority) for priority in (-10, 0, 10))
    assert claimed(world) == [high, normal, low]


def test_an_old_low_priority_is_claimed_before_a_new_high_priority(world: World) -> None:
    low = world.enqueue(priority=-10)
    world.clock.advance(20 * HEAD_START / SECOND + 1)
    high = world.enqueue(priority=10)
    assert claimed(world) == [low, high]


def test_a_stream_of_high_priority_executions_does_not_starve_a_low_one(world: World) -> None:
    worker, low = world.join(), world.enqueue(priority=-10)
    for _ in range(200):
        world.store.transact(fleet.beat, [worker], 60)
        world.enqueue_many(2, priority=10)
        world.clock.advance(30)
        world.store.transact(fleet.beat, [worker], 60)
        if low in [attempt.id for attempt in world.claim(worker, 2)]:
            return
    pytest.fail("the low priority was never claimed")


def test_a_fifo_queue_ignores_priorities(world: World) -> None:
    world.register(queues=[Queue(name="line", policy=Policy.FIFO)])
    ids = []
    for priority in (-10, 0, 10):
        ids.append(world.enqueue(queue="line", priority=priority))
        world.clock.advance(0.001)
    assert claimed(world) == ids


def test_a_delayed_execution_does_not_overtake_those_that_waited(world: World) -> None:
    delayed = world.enqueue(delay_s=10)
    world.clock.advance(5)
    waiting = world.enqueue()
    world.clock.advance(10)
    world.promote()
    assert claimed(world) == [waiting, delayed]


def test_one_claim_takes_from_all_queues_in_the_order_of_their_ranks(world: World) -> None:
    ids = []
    for number in range(12):
        ids.append(world.enqueue(queue=f"q{number % 3}"))
        world.clock.advance(1)
    assert claimed(world) == ids


def test_a_backlog_in_one_queue_does_not_starve_another(world: World) -> None:
    world.enqueue_many(500, queue="bulk")
    world.clock.advance(1)
    urgent = world.enqueue(queue="urgent", priority=10)
    assert claimed(world, 10)[0] == urgent


def test_a_worker_may_restrict_itself_to_some_queues(world: World) -> None:
    mail, other = world.enqueue(queue="mail"), world.enqueue(queue="other")
    assert claimed(world, queues=["mail", "unknown"]) == [mail]
    assert claimed(world, queues=[]) == []
    assert claimed(world, queues=None) == [other]


def test_a_worker_claims_only_from_its_own_app_and_namespace(world: World) -> None:
    world.register("send", app="other")
    world.register("send", namespace="tenant")
    mine = world.enqueue()
    theirs = world.enqueue(app="other")
    tenants = world.enqueue(namespace="tenant")
    assert claimed(world) == [mine]
    assert [a.id for a in world.claim(world.join(app="other"), app="other")] == [theirs]
    assert [a.id for a in world.claim(world.join(namespace="tenant"), namespace="tenant")] == [tenants]


def test_a_worker_without_a_lease_may_not_claim(world: World) -> None:
    world.enqueue()
    worker = world.join(lease_s=10)
    world.clock.advance(10)
    assert world.claim(worker) == []
    world.store.transact(fleet.beat, [worker], 10.0)
    assert len(world.claim(worker)) == 1


def test_a_worker_that_never_joined_may_not_claim(world: World) -> None:
    world.enqueue()
    with pytest.raises(LeaseLost):
        world.claim(999)


def test_a_worker_that_stopped_or_was_declared_dead_may_not_claim(world: World) -> None:
    world.enqueue()
    stopped, dead = world.join(), world.join()
    world.store.transact(fleet.leave, stopped)
    world.store.transact(fleet.declare_dead, dead, "gone")
    for worker in (stopped, dead):
        with pytest.raises(LeaseLost):
            world.claim(worker)


def test_a_draining_worker_claims_nothing(world: World) -> None:
    _, attempt = world.start()
    worker = world.join()
    world.enqueue()
    world.store.transact(fleet.drain, worker)
    assert world.claim(worker) == []
    assert world.status(attempt.id) is Status.RUNNING


def test_every_start_has_a_higher_fence(world: World) -> None:
    world.enqueue()
    fences = []
    for outcome in (GivenBack(Reason.DRAINED), Snoozed(1), FAILED):
        (attempt,) = world.claim(world.join())
        fences.append(attempt.fence)
        world.finish(attempt, outcome, THREE_TRIES)
        world.clock.advance(60)
        world.promote()
    (last,) = world.claim(world.join())
    assert [*fences, last.fence] == [1, 2, 3, 4]
    assert last.attempts == 1


def test_an_execution_that_is_not_due_cannot_be_claimed(world: World) -> None:
    world.enqueue(delay_s=1)
    assert claimed(world) == []


def test_an_execution_claimed_after_its_start_deadline_is_skipped(world: World) -> None:
    late = world.enqueue(start_within_s=5)
    in_time = world.enqueue(start_within_s=60)
    world.clock.advance(6)
    assert claimed(world) == [in_time]
    row = world.execution(late)
    assert (row.status, row.reason, row.worker, row.started_at) == (
        Status.SKIPPED,
        Reason.START_DEADLINE,
        None,
        None,
    )
    assert [attempt.worker for attempt in world.attempts(late)] == [None]


def test_a_start_deadline_applies_only_to_the_first_start(world: World) -> None:
    id = world.enqueue(start_within_s=5)
    (attempt,) = world.claim(world.join())
    world.clock.advance(3)
    world.finish(attempt, GivenBack(Reason.DRAINED))
    world.clock.advance(10)
    assert claimed(world) == [id]


def test_a_claim_returns_the_watermarks_of_the_lanes_it_read(world: World) -> None:
    world.enqueue(queue="a")
    world.enqueue(queue="b")
    everything = world.store.transact(claim.claim, world.join(), world.served(), 0)
    some = world.store.transact(claim.claim, world.join(), world.served(["a"]), 0)
    assert everything.claims == []
    assert some.lanes is not None
    assert everything.lanes is not None
    assert len(some.lanes) == 1
    assert some.lanes < everything.lanes


def test_a_check_before_a_claim_says_whether_rows_are_ready(world: World) -> None:
    assert not world.store.read(reader.has_ready, world.served())
    world.enqueue(queue="mail", delay_s=1)
    assert not world.store.read(reader.has_ready, world.served())
    world.enqueue(queue="mail")
    assert world.store.read(reader.has_ready, world.served())
    assert world.store.read(reader.has_ready, world.served(["mail"]))
    assert not world.store.read(reader.has_ready, world.served(["other"]))
    assert not world.store.read(reader.has_ready, world.served(app="other", jobs=["send"]))
    assert not world.store.read(reader.has_ready, world.served(jobs=["receive"]))


def test_a_claim_is_limited_in_bytes_but_returns_at_least_one_execution(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim, "MOST_BYTES", 100)
    ids = [world.enqueue("send", {"to": "y" * size}) for size in (30, 30, 30, 500, 10)]
    worker = world.join()
    pieces = []
    while piece := [attempt.id for attempt in world.claim(worker)]:
        pieces.append(piece)
    assert pieces == [ids[:2], ids[2:3], ids[3:4], ids[4:]]
