"""Cancel: at once if the execution is not running, by its worker if it is, and no attempt starts after it."""

from __future__ import annotations

import pytest

from rota.domain.errors import UnknownExecution
from rota.domain.outcome import Cancelled, GivenBack, Lost, Outcome, Snoozed
from rota.domain.status import Reason, Status
from rota.ops import control, fleet
from rota.store import reader
from rota.store.hints import CancelAsked, Ended
from tests.support.world import ERROR, FAILED, NAMESPACE, THREE_TRIES, RecordingBus, World


def test_a_queued_execution_is_cancelled_at_once(world: World, bus: RecordingBus) -> None:
    id = world.enqueue()
    bus.hints.clear()
    assert world.cancel(id) is Status.CANCELLED
    row = world.execution(id)
    assert (row.status, row.reason, row.attempts, row.started_at) == (Status.CANCELLED, Reason.CANCELLED, 0, None)
    assert row.finished_at == world.clock.now()
    assert bus.hints == [Ended((id,))]
    assert world.claim(world.join()) == []


def test_a_scheduled_execution_is_cancelled_at_once(world: World) -> None:
    id = world.enqueue(delay_s=60)
    assert world.cancel(id) is Status.CANCELLED
    world.clock.advance(61)
    assert world.promote() == 0
    assert world.status(id) is Status.CANCELLED


def test_a_retrying_execution_is_cancelled_at_once(world: World) -> None:
    _, attempt = world.start()
    world.finish(attempt, FAILED, THREE_TRIES)
    assert world.cancel(attempt.id) is Status.CANCELLED
    row = world.execution(attempt.id)
    assert (row.status, row.attempts, row.fence) == (Status.CANCELLED, 1, 2)
    assert world.dead() == []
    assert [attempt.status for attempt in world.attempts(attempt.id)] == ["failed", "cancelled"]


def test_a_running_execution_is_asked_to_stop_by_a_hint_to_its_worker(world: World, bus: RecordingBus) -> None:
    worker, attempt = world.start()
    bus.hints.clear()
    assert world.cancel(attempt.id) is Status.RUNNING
    assert bus.hints == [CancelAsked(worker)]
    assert world.store.read(reader.cancels, worker) == [attempt.id]
    assert world.execution(attempt.id).cancel_at == world.clock.now()
    world.finish(attempt, Cancelled())
    assert world.execution(attempt.id).reason == Reason.CANCELLED
    assert world.store.read(reader.cancels, worker) == []


@pytest.mark.parametrize(
    "outcome",
    [Cancelled(), FAILED, Snoozed(1), GivenBack(Reason.DRAINED), Lost(ERROR)],
    ids=lambda outcome: type(outcome).__name__,
)
def test_no_attempt_starts_after_a_cancel_was_accepted(world: World, outcome: Outcome) -> None:
    _, attempt = world.start()
    world.cancel(attempt.id)
    assert world.finish(attempt, outcome, THREE_TRIES) == []
    assert world.status(attempt.id) is Status.CANCELLED
    world.clock.advance(3600)
    assert world.promote() == 0
    assert world.claim(world.join()) == []
    assert world.dead() == []


def test_a_job_that_finishes_first_is_a_success(world: World) -> None:
    _, attempt = world.start()
    world.cancel(attempt.id)
    assert world.finish(attempt) == []
    assert world.status(attempt.id) is Status.SUCCESS


def test_a_cancelled_execution_of_a_dead_worker_ends_as_cancelled(world: World) -> None:
    worker, attempt = world.start()
    world.cancel(attempt.id)
    world.store.transact(fleet.declare_dead, worker, "gone")
    assert world.status(attempt.id) is Status.CANCELLED


def test_cancelling_twice_asks_once(world: World, bus: RecordingBus) -> None:
    _, attempt = world.start()
    world.cancel(attempt.id)
    asked_at = world.execution(attempt.id).cancel_at
    world.clock.advance(1)
    bus.hints.clear()
    assert world.cancel(attempt.id) is Status.RUNNING
    assert world.execution(attempt.id).cancel_at == asked_at
    assert bus.hints == []


def test_cancelling_an_ended_execution_changes_nothing(world: World) -> None:
    _, attempt = world.start()
    world.finish(attempt)
    assert world.cancel(attempt.id) is Status.SUCCESS
    assert world.status(attempt.id) is Status.SUCCESS
    cancelled = world.enqueue()
    world.cancel(cancelled)
    assert world.cancel(cancelled) is Status.CANCELLED
    assert len(world.attempts(cancelled)) == 1


def test_a_failed_execution_that_is_cancelled_stays_a_dead_letter(world: World) -> None:
    (id,) = world.fail()
    assert world.cancel(id) is Status.FAILED
    assert [row.id for row in world.dead()] == [id]


def test_an_unknown_or_foreign_execution_cannot_be_cancelled(world: World) -> None:
    world.register("send", namespace="tenant")
    foreign = world.enqueue(namespace="tenant")
    for id in (world.ids.new(), foreign, "", "x' OR 1=1"):
        with pytest.raises(UnknownExecution):
            world.cancel(id)
    assert world.store.read(reader.status, "tenant", foreign) is Status.QUEUED


def test_a_cancelled_execution_can_be_run_again_as_a_new_one(world: World) -> None:
    id = world.enqueue("send", {"to": "a"}, priority=3)
    world.cancel(id)
    new = world.store.transact(control.repeat, NAMESPACE, id, world.ids.new(), "test")
    row = world.execution(new)
    assert (row.status, row.replay_of, row.arguments, row.priority) == (Status.QUEUED, id, '{"to":"a"}', 3)
    assert world.status(id) is Status.CANCELLED
