"""Back-pressure: a full queue refuses calls and says when to retry; accepted executions are not affected.

The depth may be up to a fifth of a second old when it is checked, so the tests let that time pass where it matters.
"""

from __future__ import annotations

import pytest

from rota.domain.backpressure import LONGEST_S, SHORTEST_S
from rota.domain.errors import QueueFull
from rota.domain.job import Queue
from rota.domain.outcome import GivenBack
from rota.domain.status import Reason, Status
from rota.ops import enqueue
from rota.store.postgres.inbox import MOST_GROUPS
from rota.store.postgres.store import PostgresStore
from tests.support.world import World


@pytest.fixture
def full(world: World) -> World:
    """A queue named small with room for three, and three in it."""
    world.register(queues=[Queue(name="small", max_depth=3)])
    world.enqueue_many(3, queue="small")
    world.clock.advance(1)
    return world


def test_a_full_queue_refuses_an_enqueue_and_says_when_to_retry(full: World) -> None:
    with pytest.raises(QueueFull, match=r"queue 'small' is full \(3 of 3 queued\): nothing was accepted") as refusal:
        full.enqueue(queue="small")
    assert SHORTEST_S <= refusal.value.retry_after.total_seconds() <= LONGEST_S
    assert len(full.executions(queue="small")) == 3


def test_the_suggested_wait_grows_with_the_age_of_the_queue(full: World) -> None:
    waits = []
    for _ in range(2):
        with pytest.raises(QueueFull) as refusal:
            full.enqueue(queue="small")
        waits.append(refusal.value.retry_after)
        full.clock.advance(600)
    assert waits[0] < waits[1]


def test_a_full_queue_does_not_stop_another(full: World) -> None:
    assert full.status(full.enqueue(queue="large")) is Status.QUEUED


def test_a_queue_accepts_again_when_it_is_no_longer_full(full: World) -> None:
    full.claim(full.join(), 1)
    full.clock.advance(1)
    assert full.enqueue(queue="small")
    full.clock.advance(1)
    with pytest.raises(QueueFull):
        full.enqueue(queue="small")


def test_a_bulk_that_does_not_fit_is_refused_whole(world: World) -> None:
    world.register(queues=[Queue(name="small", max_depth=3)])
    with pytest.raises(QueueFull):
        world.enqueue_many(4, queue="small")
    assert world.executions(queue="small") == []
    assert len(world.enqueue_many(3, queue="small")) == 3


def test_the_limit_holds_within_the_age_of_the_count(world: World) -> None:
    world.register(queues=[Queue(name="small", max_depth=3)])
    for _ in range(3):
        world.enqueue(queue="small")
    with pytest.raises(QueueFull):
        world.enqueue(queue="small")


def test_of_many_callers_at_once_only_as_many_as_fit_are_accepted(world: World) -> None:
    world.register(queues=[Queue(name="small", max_depth=3)])
    header = world.header(queue="small")
    futures = [world.store.submit(enqueue.enqueue, header, [world.item()]) for _ in range(20)]
    errors = [future.exception(30) for future in futures]
    accepted = sum(error is None for error in errors)
    # Each connection counts for itself, and may not have heard yet of what the other has accepted.
    assert 3 <= accepted <= 3 * (MOST_GROUPS if isinstance(world.store, PostgresStore) else 1)
    assert all(isinstance(error, QueueFull) for error in errors if error is not None)
    assert len(world.executions(queue="small")) == accepted


def test_accepted_executions_can_return_to_a_full_queue(full: World) -> None:
    (attempt,) = full.claim(full.join(), 1)
    full.clock.advance(1)
    full.enqueue(queue="small")
    assert full.finish(attempt, GivenBack(Reason.DRAINED)) == []
    assert full.status(attempt.id) is Status.QUEUED


def test_a_depth_limit_holds_for_all_apps_together(full: World) -> None:
    full.register("send", app="other")
    with pytest.raises(QueueFull):
        full.enqueue(queue="small", app="other")
