"""Unique keys: at most one execution of a job per key within a scope, and what happens to the newcomer."""

from __future__ import annotations

from typing import Any

import pytest

from rota.domain.errors import NotUnique
from rota.domain.outcome import Snoozed
from rota.domain.status import Reason, Status
from rota.domain.unique import Unique
from rota.ops import enqueue
from rota.store.hints import CancelAsked, Due
from tests.support.world import FAILED, THREE_TRIES, RecordingBus, World

SECOND = 1_000_000


def unique(**values: Any) -> dict[str, Any]:
    return {"unique": Unique(key="k", **values)}


def run(world: World, id: str) -> None:
    """Starts and ends the execution."""
    (attempt,) = [attempt for attempt in world.claim(world.join()) if attempt.id == id]
    world.finish(attempt)


def test_while_the_first_is_within_scope_the_second_is_given_the_first(world: World) -> None:
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


def test_debounce_pushes_the_start_of_a_scheduled_holder_back(world: World, bus: RecordingBus) -> None:
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


def test_debounce_takes_a_queued_holder_out_of_the_line(world: World) -> None:
    first = world.enqueue(**unique(on_conflict="debounce"))
    assert world.enqueue(delay_s=10, **unique(on_conflict="debounce")) == first
    assert world.status(first) is Status.SCHEDULED
    assert world.claim(world.join()) == []


def test_debounce_of_a_running_holder_lets_the_newcomer_run_too(world: World) -> None:
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


def test_a_replay_of_a_dead_letter_is_not_kept_out_by_the_key_of_the_dead(world: World) -> None:
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
    assert world.enqueue("send", key="request-3", **unique()) != first


def test_debounce_never_brings_a_start_forward(world: World) -> None:
    quiet = Unique(key="basket", scope="queued", on_conflict="debounce")
    first = world.enqueue(delay_s=60.0, unique=quiet)
    due_at = world.execution(first).due_at
    assert world.enqueue(delay_s=5.0, unique=quiet) == first
    assert world.execution(first).due_at == due_at
