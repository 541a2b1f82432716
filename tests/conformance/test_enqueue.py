"""Accepting work: what is stored, where it goes, and when it may run."""

from __future__ import annotations

import pytest

from rota.domain.errors import StoreError
from rota.domain.status import Status
from rota.ids import FIRST_ID
from rota.ops import enqueue
from rota.store.hints import Due, Ready
from tests.support.world import NAMESPACE, RecordingBus, World

SECOND = 1_000_000


def test_an_execution_keeps_what_it_was_enqueued_with(world: World) -> None:
    id = world.enqueue("send", {"to": "a@b.c"}, priority=7, tags='["x"]', parent=FIRST_ID, queue="mail", key="k")
    row = world.execution(id)
    assert (row.id, row.namespace, row.app, row.job, row.queue) == (id, NAMESPACE, "shop", "send", "mail")
    assert (row.arguments, row.priority, row.tags, row.parent, row.key) == ('{"to":"a@b.c"}', 7, '["x"]', FIRST_ID, "k")
    assert (row.actor, row.created_at, row.run_at) == ("test", world.clock.now(), world.clock.now())
    assert (row.status, row.fence, row.attempts, row.crashes) == (Status.QUEUED, 0, 0, 0)
    assert (row.started_at, row.finished_at, row.worker) == (None, None, None)


def test_an_execution_that_is_due_now_is_queued(world: World) -> None:
    assert world.status(world.enqueue()) is Status.QUEUED


def test_a_delayed_execution_is_scheduled_for_its_time(world: World) -> None:
    row = world.execution(world.enqueue(delay_s=60))
    assert row.status is Status.SCHEDULED
    assert row.run_at == row.due_at == world.clock.now() + 60 * SECOND


def test_an_instant_in_the_future_is_kept_and_one_in_the_past_is_now(world: World) -> None:
    later = world.execution(world.enqueue(at=world.clock.now() + 5 * SECOND))
    earlier = world.execution(world.enqueue(at=world.clock.now() - 5 * SECOND))
    assert (later.status, later.run_at) == (Status.SCHEDULED, world.clock.now() + 5 * SECOND)
    assert (earlier.status, earlier.run_at) == (Status.QUEUED, world.clock.now())


def test_many_are_accepted_in_the_order_in_which_they_came(world: World) -> None:
    ids = world.enqueue_many(1000)
    claimed = world.claim(world.join(), 1000)
    assert [attempt.id for attempt in claimed] == ids
    assert claimed[999].arguments == '{"n":999}'


def test_a_bulk_enqueue_accepts_all_or_none(world: World) -> None:
    items = [world.item() for _ in range(10)]
    with pytest.raises(StoreError):
        world.store.transact(enqueue.enqueue, world.header(), [*items, items[0]])
    assert world.executions() == []


def test_an_id_that_was_used_before_is_refused(world: World) -> None:
    item = world.item()
    world.store.transact(enqueue.enqueue, world.header(), [item])
    with pytest.raises(StoreError):
        world.store.transact(enqueue.enqueue, world.header(), [item])
    assert world.executions() == [item.id]


def test_text_is_read_back_unchanged(world: World) -> None:
    arguments = {"a": "ä€𝄞 '\"\\ -- ; DROP", "b": "\\u0041\n\t\u2028", "c": [1, 2.5, None, True, 2**63, -1]}
    id = world.enqueue("send", arguments)
    (attempt,) = world.claim(world.join())
    assert attempt.id == id
    assert attempt.arguments == world.item(arguments).arguments


def test_a_large_payload_is_read_back_unchanged(world: World) -> None:
    text = "x" * 1_000_000
    world.enqueue("send", {"text": text})
    (attempt,) = world.claim(world.join())
    assert attempt.arguments == world.item({"text": text}).arguments


def test_a_start_deadline_is_counted_from_the_time_at_which_it_is_due(world: World) -> None:
    within = world.execution(world.enqueue(delay_s=10, start_within_s=5))
    by = world.execution(world.enqueue(start_by=world.clock.now() + 3 * SECOND))
    assert within.deadline == world.clock.now() + 15 * SECOND
    assert by.deadline == world.clock.now() + 3 * SECOND


def test_an_enqueue_sends_hints_for_ready_lanes_and_for_the_time_of_delayed_executions(
    world: World, bus: RecordingBus
) -> None:
    world.enqueue()
    assert [type(hint) for hint in bus.hints] == [Ready]
    bus.hints.clear()
    world.enqueue(delay_s=5)
    assert bus.hints == [Due(world.clock.now() + 5 * SECOND)]
    bus.hints.clear()
    world.enqueue(start_within_s=3)
    assert Due(world.clock.now() + 3 * SECOND) in bus.hints


def test_a_refused_enqueue_sends_no_hint(world: World, bus: RecordingBus) -> None:
    item = world.item()
    with pytest.raises(StoreError):
        world.store.transact(enqueue.enqueue, world.header(), [item, item])
    assert bus.hints == []
