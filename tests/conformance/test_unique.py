"""Unique keys: at most one execution of a job per key within a scope, and the conflict actions."""

from __future__ import annotations

from typing import Any, cast

import pytest

from rota.domain.errors import KeyConflict, NotUnique, QueueFull
from rota.domain.job import Queue
from rota.domain.outcome import Snoozed
from rota.domain.status import Reason, Status
from rota.domain.unique import OnConflict, Unique
from rota.ops import define, enqueue, job_pauses, submission, upkeep
from rota.store.hints import CancelAsked, Due
from rota.store.port import Tx
from tests.support.world import APP, FAILED, NAMESPACE, THREE_TRIES, RecordingBus, World

SECOND = 1_000_000


def unique(**values: Any) -> dict[str, Any]:
    return {"unique": Unique(key="k", **values)}


def run(world: World, id: str) -> None:
    """Starts and ends the execution."""
    (attempt,) = [attempt for attempt in world.claim(world.join()) if attempt.id == id]
    world.finish(attempt)


def test_a_second_call_within_the_scope_returns_the_first_execution(world: World) -> None:
    first = world.accept(**unique())
    second = world.accept(**unique())
    assert (second.id, second.created) == (first.id, False)
    assert world.executions() == [first.id]


def test_the_arguments_are_the_key_if_none_is_given(world: World) -> None:
    one = world.enqueue("send", {"to": "a"}, unique=Unique())
    other = world.enqueue("send", {"to": "b"}, unique=Unique())
    assert one != other
    assert world.enqueue("send", {"to": "a"}, unique=Unique()) == one


def test_queued_ends_when_the_execution_starts(world: World) -> None:
    first = world.enqueue(**unique(scope="queued"))
    assert world.enqueue(**unique(scope="queued")) == first
    world.claim(world.join())
    assert world.enqueue(**unique(scope="queued")) != first


def test_active_ends_when_the_execution_ends(world: World) -> None:
    first = world.enqueue(**unique(scope="active"))
    (attempt,) = world.claim(world.join())
    assert world.enqueue(**unique(scope="active")) == first
    world.finish(attempt)
    assert world.enqueue(**unique(scope="active")) != first


@pytest.mark.parametrize("scope", ["queued", "active"])
def test_an_execution_that_is_to_be_retried_still_holds_its_key(world: World, scope: str) -> None:
    first = world.enqueue(**unique(scope=scope))
    (attempt,) = world.claim(world.join())
    world.finish(attempt, FAILED, THREE_TRIES)
    assert world.status(first) is Status.RETRYING
    assert world.enqueue(**unique(scope=scope)) == first


def test_a_delayed_execution_holds_its_key(world: World) -> None:
    first = world.enqueue(delay_s=3600, **unique(scope="queued"))
    assert world.enqueue(**unique(scope="queued")) == first


def test_a_window_is_counted_from_the_enqueue(world: World) -> None:
    first = world.enqueue(**unique(scope="10s"))
    run(world, first)
    world.clock.advance(9.9)
    assert world.enqueue(**unique(scope="10s")) == first
    world.clock.advance(0.1)
    second = world.enqueue(**unique(scope="10s"))
    assert second != first
    world.clock.advance(9)
    assert world.enqueue(**unique(scope="10s")) == second


def test_forever_never_ends(world: World) -> None:
    first = world.enqueue(**unique(scope="forever"))
    run(world, first)
    world.clock.advance(10 * 365 * 86_400)
    assert world.enqueue(**unique(scope="forever")) == first


def test_a_cancelled_execution_frees_its_key(world: World) -> None:
    first = world.enqueue(**unique())
    world.cancel(first)
    assert world.enqueue(**unique()) != first


def test_reject_names_the_holder_and_accepts_nothing(world: World) -> None:
    first = world.enqueue(**unique())
    with pytest.raises(NotUnique, match=first) as refusal:
        world.enqueue(**unique(on_conflict="reject"))
    assert refusal.value.holder == first
    assert world.executions() == [first]


def test_replace_ends_a_waiting_holder_as_replaced(world: World) -> None:
    first = world.enqueue(**unique())
    second = world.accept(**unique(on_conflict="replace"))
    assert second.created
    row = world.execution(first)
    assert (row.status, row.reason) == (Status.CANCELLED, Reason.REPLACED)
    assert world.status(second.id) is Status.QUEUED
    assert world.enqueue(**unique()) == second.id


def test_replace_asks_a_running_holder_to_stop(world: World, bus: RecordingBus) -> None:
    first = world.enqueue(**unique())
    worker = world.join()
    (attempt,) = world.claim(worker)
    bus.hints.clear()
    second = world.enqueue(**unique(on_conflict="replace"))
    assert second != first
    assert CancelAsked(worker) in bus.hints
    world.finish(attempt, FAILED, THREE_TRIES)
    row = world.execution(first)
    assert (row.status, row.reason) == (Status.CANCELLED, Reason.REPLACED)


def test_a_running_holder_that_finishes_first_is_a_success_although_it_was_replaced(world: World) -> None:
    first = world.enqueue(**unique())
    (attempt,) = world.claim(world.join())
    world.enqueue(**unique(on_conflict="replace"))
    world.finish(attempt)
    assert world.status(first) is Status.SUCCESS


def test_debounce_postpones_a_scheduled_holder(world: World, bus: RecordingBus) -> None:
    first = world.enqueue(delay_s=10, **unique(on_conflict="debounce"))
    world.clock.advance(6)
    bus.hints.clear()
    assert world.enqueue(delay_s=10, **unique(on_conflict="debounce")) == first
    assert world.execution(first).due_at == world.clock.now() + 10 * SECOND
    assert bus.hints == [Due(world.clock.now() + 10 * SECOND)]
    world.clock.advance(5)
    assert world.promote() == 0
    world.clock.advance(5)
    assert world.promote() == 1


def test_debounce_postpones_a_queued_holder(world: World) -> None:
    first = world.enqueue(**unique(on_conflict="debounce"))
    assert world.enqueue(delay_s=10, **unique(on_conflict="debounce")) == first
    assert world.status(first) is Status.SCHEDULED
    assert world.claim(world.join()) == []


def test_debounce_of_a_running_holder_creates_another_execution(world: World) -> None:
    first = world.enqueue(**unique(on_conflict="debounce"))
    world.claim(world.join())
    second = world.accept(**unique(on_conflict="debounce"))
    assert second.created
    assert second.id != first


def test_a_snoozed_holder_can_be_debounced(world: World) -> None:
    first = world.enqueue(**unique(on_conflict="debounce"))
    (attempt,) = world.claim(world.join())
    world.finish(attempt, Snoozed(5))
    assert world.enqueue(delay_s=60, **unique(on_conflict="debounce")) == first
    assert world.execution(first).due_at == world.clock.now() + 60 * SECOND


def test_of_many_callers_with_one_unique_key_exactly_one_creates_the_execution(world: World) -> None:
    header = world.header("send", **unique())
    futures = [world.store.submit(enqueue.enqueue, header, [world.item()]) for _ in range(50)]
    accepted = [future.result(30)[0] for future in futures]
    assert sum(one.created for one in accepted) == 1
    assert len({one.id for one in accepted}) == 1


def test_within_one_bulk_enqueue_equal_keys_are_one_execution(world: World) -> None:
    items = [world.item({"n": number % 3}) for number in range(9)]
    accepted = world.store.transact(enqueue.enqueue, world.header("send", unique=Unique()), items)
    assert [one.created for one in accepted] == [True] * 3 + [False] * 6
    assert len(world.executions()) == 3


def many(world: World, numbers: range | list[int], **values: Any) -> list[submission.Accepted]:
    items = [world.item({"n": number}) for number in numbers]
    options = {name: values.pop(name) for name in ("delay_s", "queue", "start_within_s") if name in values}
    return world.store.transact(enqueue.enqueue, world.header("send", unique=Unique(**values), **options), items)


def test_a_bulk_enqueue_returns_the_holders_and_creates_the_rest(world: World) -> None:
    first = many(world, range(5))
    second = many(world, range(3, 8))
    assert [one.created for one in second] == [False, False, True, True, True]
    assert [one.id for one in second[:2]] == [one.id for one in first[3:]]
    assert len(world.executions()) == 8


@pytest.mark.parametrize("scope", ["queued", "active", "forever", "10s"])
def test_each_holder_of_a_bulk_is_judged_by_its_own_state(world: World, scope: str) -> None:
    ended, running, waiting = many(world, range(3), scope=scope)
    worker = world.join()
    done, _ = world.claim(worker, 2)
    world.finish(done)
    assert [world.status(one.id) for one in (ended, running, waiting)] == ["success", "running", "queued"]
    keeps = {"queued": [False, False, True], "active": [False, True, True]}.get(scope, [True] * 3)
    assert [not one.created for one in many(world, range(3), scope=scope)] == keeps


def test_a_bulk_that_rejects_names_the_holder_and_accepts_nothing(world: World) -> None:
    (holder,) = many(world, [7])
    with pytest.raises(NotUnique, match=holder.id) as refusal:
        many(world, range(10), on_conflict="reject")
    assert refusal.value.holder == holder.id
    assert world.executions() == [holder.id]
    with pytest.raises(NotUnique):
        many(world, [1, 2, 1], on_conflict="reject")
    assert world.executions() == [holder.id]


def test_a_bulk_that_replaces_ends_every_holder(world: World, bus: RecordingBus) -> None:
    world.enqueue("send", {"n": 0}, delay_s=60, unique=Unique())
    old = [one.id for one in many(world, range(4))]
    worker = world.join()
    (attempt,) = world.claim(worker, 1)
    bus.hints.clear()
    new = many(world, range(6), on_conflict="replace")
    assert all(one.created for one in new)
    assert len({one.id for one in new} | set(old)) == 10
    cancelled = [id for id in old if world.status(id) is Status.CANCELLED]
    assert cancelled == [id for id in old if id != attempt.id]
    assert {world.execution(id).reason for id in cancelled} == {Reason.REPLACED}
    assert bus.hints.count(CancelAsked(worker)) == 1
    world.finish(attempt, FAILED, THREE_TRIES)
    assert world.execution(attempt.id).reason == Reason.REPLACED
    assert [one.id for one in many(world, range(6))] == [one.id for one in new]


def test_equal_keys_of_a_bulk_replace_each_other_and_the_last_one_runs(world: World) -> None:
    first, second, third = many(world, [1, 1, 1], on_conflict="replace")
    assert (first.created, second.created, third.created) == (True, True, True)
    statuses = [world.status(one.id) for one in (first, second, third)]
    assert statuses == [Status.CANCELLED, Status.CANCELLED, Status.QUEUED]
    assert [one.id for one in many(world, [1])] == [third.id]


def test_a_bulk_debounce_postpones_pending_holders_and_creates_beside_running_ones(world: World) -> None:
    (delayed,) = many(world, [0], on_conflict="debounce", delay_s=5)
    later, first, second = many(world, [1, 2, 3], on_conflict="debounce")
    (attempt,) = world.claim(world.join(), 1)
    assert attempt.id == later.id
    accepted = many(world, [0, 1, 2, 3, 3, 4], on_conflict="debounce", delay_s=10)
    assert [one.created for one in accepted] == [False, True, False, False, False, True]
    assert [accepted[place].id for place in (0, 2, 3, 4)] == [delayed.id, first.id, second.id, second.id]
    due = {world.execution(one.id).due_at for one in accepted}
    assert due == {world.clock.now() + 10 * SECOND}


def test_the_depth_limit_counts_what_a_bulk_creates(world: World) -> None:
    world.register(queues=[Queue(name="small", max_depth=4)])
    many(world, range(3), queue="small")
    world.clock.advance(1)
    with pytest.raises(QueueFull):
        many(world, range(5), queue="small")
    assert len(world.executions(queue="small")) == 3
    assert [one.created for one in many(world, range(4), queue="small")] == [False, False, False, True]


def test_items_of_a_repeated_bulk_are_answered_as_created(world: World) -> None:
    header = world.header("send", unique=Unique(on_conflict="reject"))
    items = [world.item({"n": number}) for number in range(3)]
    first = world.store.transact(enqueue.enqueue, header, items)
    assert world.store.transact(enqueue.enqueue, header, items) == first
    assert [one.created for one in first] == [True] * 3


class Counting:
    """A transaction that counts its statements."""

    def __init__(self, tx: Any) -> None:
        self._tx = tx
        self.statements = 0

    def __getattr__(self, name: str) -> Any:
        self.statements += name in ("run", "rows", "one", "records")
        return getattr(self._tx, name)


@pytest.mark.parametrize("action", list(OnConflict))
def test_a_bulk_takes_as_many_statements_as_a_small_one(world: World, action: OnConflict) -> None:
    def counted(tx: Any, header: submission.Header, items: list[submission.Item]) -> int:
        counting = Counting(tx)
        enqueue.enqueue(cast("Tx", counting), header, items)
        return counting.statements

    def statements(numbers: range) -> int:
        header = world.header("send", delay_s=5, start_within_s=5.0, unique=Unique(on_conflict=action))
        return world.store.transact(counted, header, [world.item({"n": number}) for number in numbers])

    small, large = range(2), range(1000, 1400)
    assert statements(large) == statements(small)
    if action is not OnConflict.REJECT:
        world.clock.advance(1)
        assert statements(large) == statements(small), "the keys are held now"


def test_a_unique_key_belongs_to_one_job_of_one_app_of_one_namespace(world: World) -> None:
    world.register("send", app="other")
    world.register("send", namespace="tenant")
    ids = {
        world.enqueue("send", **unique()),
        world.enqueue("receive", **unique()),
        world.enqueue("send", app="other", **unique()),
        world.enqueue("send", namespace="tenant", **unique()),
    }
    assert len(ids) == 4


def test_the_unique_key_of_a_dead_letter_does_not_block_its_replay(world: World) -> None:
    first = world.enqueue(**unique())
    (attempt,) = world.claim(world.join())
    world.finish(attempt, FAILED)
    assert world.enqueue(**unique()) != first
    assert [row.id for row in world.dead()] == [first]


def test_an_idempotency_key_and_a_unique_key_can_be_used_together(world: World) -> None:
    first = world.enqueue("send", key="request-1", **unique())
    assert world.enqueue("send", key="request-1", **unique()) == first
    assert world.enqueue("send", key="request-2", **unique()) == first
    run(world, first)
    assert world.enqueue("send", key="request-1", **unique()) == first
    assert world.enqueue("send", key="request-2", **unique()) == first
    assert world.enqueue("send", key="request-3", **unique()) != first


@pytest.mark.parametrize("action", ["return", "debounce"])
def test_an_idempotency_key_names_the_execution_that_the_unique_key_answered_with(world: World, action: str) -> None:
    first = world.enqueue("send", {"to": "a"}, **unique(on_conflict=action))
    again = world.accept("send", {"to": "b"}, key="request", **unique(on_conflict=action))
    assert (again.id, again.created) == (first, False)
    world.promote()
    run(world, first)
    repeated = world.accept("send", {"to": "b"}, key="request", **unique(on_conflict=action))
    assert (repeated.id, repeated.created) == (first, False)
    with pytest.raises(
        KeyConflict,
        match=rf"{first} .*'?\{{\"to\":\"a\"\}}, which a unique key returned to a call with other arguments; this call",
    ):
        world.enqueue("send", {"to": "a"}, key="request")
    assert world.executions() == [first]


def test_an_idempotency_key_that_a_unique_key_refused_is_free(world: World) -> None:
    first = world.enqueue(**unique())
    with pytest.raises(NotUnique):
        world.enqueue(key="request", **unique(on_conflict="reject"))
    run(world, first)
    assert world.accept(key="request", **unique(on_conflict="reject")).created


def test_debounce_never_brings_a_start_forward(world: World) -> None:
    quiet = Unique(key="basket", scope="queued", on_conflict="debounce")
    first = world.enqueue(delay_s=60.0, unique=quiet)
    due_at = world.execution(first).due_at
    assert world.enqueue(delay_s=5.0, unique=quiet) == first
    assert world.execution(first).due_at == due_at


def skipped(world: World) -> int:
    return world.store.transact(upkeep.expire)


def test_a_debounce_moves_the_start_deadline_with_the_start(world: World, bus: RecordingBus) -> None:
    quiet = Unique(key="basket", on_conflict="debounce")
    first = world.enqueue(delay_s=10, start_within_s=5.0, unique=quiet)
    world.clock.advance(8)
    bus.hints.clear()
    assert world.enqueue(delay_s=10, start_within_s=5.0, unique=quiet) == first
    deadline = world.clock.now() + 15 * SECOND
    assert world.execution(first).deadline == deadline
    assert Due(deadline) in bus.hints
    world.clock.advance(8)  # Past the deadline that it had at first.
    skipped(world)
    assert world.status(first) is Status.SCHEDULED
    world.clock.advance(2)
    world.promote()
    (attempt,) = world.claim(world.join())
    assert attempt.id == first


def test_a_debounced_execution_is_skipped_when_its_new_deadline_has_passed(world: World) -> None:
    quiet = Unique(key="basket", on_conflict="debounce")
    first = world.enqueue(start_within_s=5.0, unique=quiet)
    assert world.enqueue(delay_s=10, start_within_s=5.0, unique=quiet) == first
    world.clock.advance(14.9)
    skipped(world)
    assert world.status(first) is Status.SCHEDULED
    world.clock.advance(0.2)
    world.promote()
    skipped(world)
    row = world.execution(first)
    assert (row.status, row.reason) == (Status.SKIPPED, Reason.START_DEADLINE)


def test_a_debounce_never_brings_a_deadline_forward(world: World) -> None:
    quiet = Unique(key="basket", on_conflict="debounce")
    first = world.enqueue(delay_s=60, start_within_s=5.0, unique=quiet)
    deadline = world.execution(first).deadline
    world.enqueue(delay_s=10, start_within_s=1.0, unique=quiet)
    assert world.execution(first).deadline == deadline
    world.enqueue(delay_s=10, start_by=world.clock.now() + SECOND, unique=quiet)
    assert world.execution(first).deadline == deadline
    world.enqueue(delay_s=10, unique=quiet)
    assert world.execution(first).deadline is None, "the last call must not be skipped"
    world.enqueue(delay_s=10, start_within_s=1.0, unique=quiet)
    assert world.execution(first).deadline is None


def put_aside(world: World, worker: int) -> None:
    world.clock.advance(2 * job_pauses.KNOWN_S)
    assert world.claim(worker) == []


@pytest.mark.parametrize("delay_s", [0.0, 5.0])
def test_debounce_while_the_job_is_paused_keeps_one_execution(world: World, delay_s: float) -> None:
    quiet = unique(on_conflict="debounce")
    worker = world.join(lease_s=3600)
    first = world.enqueue(**quiet)
    world.store.transact(job_pauses.pause, NAMESPACE, APP, "send", "ann")
    put_aside(world, worker)
    assert world.status(first) is Status.WAITING
    for _ in range(3):
        assert world.enqueue(delay_s=delay_s, **quiet) == first
        world.clock.advance(1)
        world.promote()
        put_aside(world, worker)
    world.store.transact(job_pauses.resume, NAMESPACE, APP, "send", "ann")
    world.clock.advance(delay_s)
    world.promote()
    assert [claim.id for claim in world.claim(worker)] == [first]
    assert world.executions() == [first]


def test_a_retry_that_waits_for_its_job_can_be_debounced(world: World) -> None:
    quiet = unique(on_conflict="debounce")
    first = world.enqueue(**quiet)
    (attempt,) = world.claim(world.join())
    world.store.transact(job_pauses.pause, NAMESPACE, APP, "send", "ann")
    world.finish(attempt, FAILED, THREE_TRIES)
    world.clock.advance(11)
    world.promote()
    put_aside(world, world.join(lease_s=3600))
    assert world.enqueue(delay_s=5, **quiet) == first
    assert world.status(first) is Status.RETRYING


@pytest.mark.parametrize("action", ["return", "replace", "debounce"])
@pytest.mark.parametrize("paused", ["job", "queue"])
def test_one_execution_runs_after_a_pause(world: World, action: str, paused: str) -> None:
    once = unique(on_conflict=action)
    worker = world.join(lease_s=3600)
    first = world.enqueue(**once)
    if paused == "job":
        world.store.transact(job_pauses.pause, NAMESPACE, APP, "send", "ann")
    else:
        world.store.transact(define.pause_queue, NAMESPACE, "default", "ann", "")
    put_aside(world, worker)
    last = [world.enqueue(**once) for _ in range(3)][-1]
    assert (last == first) is (action != "replace")
    world.promote()
    put_aside(world, worker)
    if paused == "job":
        world.store.transact(job_pauses.resume, NAMESPACE, APP, "send", "ann")
    else:
        world.store.transact(define.resume_queue, NAMESPACE, "default", "ann")
    assert [claim.id for claim in world.claim(worker)] == [last]
