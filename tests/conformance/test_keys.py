"""Idempotency keys: one request is one execution, as long as its history is kept."""

from __future__ import annotations

import pytest

from rota.domain.errors import KeyConflict
from rota.domain.job import Queue
from rota.domain.status import Status
from rota.ops import enqueue
from tests.support.world import World


def test_the_same_key_returns_the_same_execution(world: World) -> None:
    first = world.accept("send", {"to": "a"}, key="order-42")
    second = world.accept("send", {"to": "a"}, key="order-42")
    assert first.created
    assert not second.created
    assert second.id == first.id
    assert world.executions() == [first.id]


def test_the_same_key_with_other_arguments_is_an_error_that_names_both(world: World) -> None:
    first = world.enqueue("send", {"to": "ann"}, key="order-42")
    with pytest.raises(KeyConflict, match=f"'order-42' belongs to execution {first}.*ann.*bob"):
        world.enqueue("send", {"to": "bob"}, key="order-42")
    assert world.executions() == [first]


def test_long_arguments_are_named_in_short(world: World) -> None:
    world.enqueue("send", {"to": "a" * 100_000}, key="k")
    with pytest.raises(KeyConflict) as refusal:
        world.enqueue("send", {"to": "b" * 100_000}, key="k")
    assert len(str(refusal.value)) < 1000


def test_a_key_outlives_its_execution(world: World) -> None:
    world.enqueue("send", key="k")
    (attempt,) = world.claim(world.join())
    world.finish(attempt)
    again = world.accept("send", key="k")
    assert (again.id, again.created) == (attempt.id, False)
    assert world.status(attempt.id) is Status.SUCCESS


def test_a_key_belongs_to_one_job_of_one_app_of_one_namespace(world: World) -> None:
    world.register("send", app="other")
    world.register("send", namespace="tenant")
    ids = {
        world.enqueue("send", key="k"),
        world.enqueue("receive", key="k"),
        world.enqueue("send", key="k", app="other"),
        world.enqueue("send", key="k", namespace="tenant"),
    }
    assert len(ids) == 4


def test_the_options_of_the_first_call_with_a_key_are_kept(world: World) -> None:
    first = world.enqueue("send", key="k", delay_s=60)
    world.enqueue("send", key="k", priority=5)
    row = world.execution(first)
    assert (row.status, row.priority) == (Status.SCHEDULED, 0)


def test_of_many_callers_with_one_key_exactly_one_creates_the_execution(world: World) -> None:
    header = world.header("send", key="k")
    futures = [world.store.submit(enqueue.enqueue, header, [world.item()]) for _ in range(50)]
    accepted = [future.result(30)[0] for future in futures]
    assert sum(one.created for one in accepted) == 1
    assert len({one.id for one in accepted}) == 1


def test_a_key_that_is_known_is_answered_even_when_the_queue_is_full(world: World) -> None:
    world.register(queues=[Queue(name="small", max_depth=1)])
    first = world.accept("send", key="k", queue="small")
    world.clock.advance(1)
    again = world.accept("send", key="k", queue="small")
    assert (again.id, again.created) == (first.id, False)
