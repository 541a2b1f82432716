"""A stale write changes nothing and is reported as stale: at most one attempt can commit its outcome."""

from __future__ import annotations

import msgspec
import pytest

from rota.domain.claim import Claim
from rota.domain.outcome import Cancelled, GivenBack, Lost, Outcome, Snoozed, Succeeded
from rota.domain.status import Reason, Status
from rota.ops import finish, fleet
from rota.ops.finish import Finished
from tests.support.world import ERROR, FAILED, NO_RETRY, THREE_TRIES, RecordingBus, World

OUTCOMES: list[Outcome] = [Succeeded("2"), FAILED, Snoozed(1), GivenBack(Reason.DRAINED), Cancelled(), Lost(ERROR)]


def taken_over(world: World) -> tuple[Claim, Claim]:
    """An attempt whose worker was declared dead, and the attempt that followed it."""
    worker, old = world.start()
    world.store.transact(fleet.declare_dead, worker, "gone")
    (new,) = world.claim(world.join())
    assert new.id == old.id
    return old, new


def picture(world: World, id: str) -> tuple[object, ...]:
    return world.execution(id), world.attempts(id), world.dead()


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
def test_a_report_with_a_stale_fence_changes_nothing_and_is_returned_as_stale(
    world: World, bus: RecordingBus, outcome: Outcome
) -> None:
    old, new = taken_over(world)
    before = picture(world, new.id)
    bus.hints.clear()
    assert world.finish(old, outcome, THREE_TRIES) == [old.id]
    assert picture(world, new.id) == before
    assert bus.hints == []
    assert world.finish(new) == []


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
def test_a_finished_execution_cannot_be_finished_again(world: World, outcome: Outcome) -> None:
    _, attempt = world.start()
    world.finish(attempt, Succeeded("1"))
    before = picture(world, attempt.id)
    assert world.finish(attempt, outcome, NO_RETRY) == [attempt.id]
    assert picture(world, attempt.id) == before


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
def test_a_fence_from_the_future_is_stale_too(world: World, outcome: Outcome) -> None:
    _, attempt = world.start()
    forged = msgspec.structs.replace(attempt, fence=attempt.fence + 1)
    assert world.finish(forged, outcome, NO_RETRY) == [attempt.id]
    assert world.status(attempt.id) is Status.RUNNING


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
def test_an_execution_that_is_not_running_cannot_be_finished(world: World, outcome: Outcome) -> None:
    _, attempt = world.start()
    world.finish(attempt, GivenBack(Reason.DRAINED))
    assert world.finish(attempt, outcome, NO_RETRY) == [attempt.id]
    assert world.status(attempt.id) is Status.QUEUED
    unknown = msgspec.structs.replace(attempt, id=world.ids.new())
    assert world.finish(unknown, outcome, NO_RETRY) == [unknown.id]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
def test_only_the_stale_reports_of_a_batch_are_refused(world: World, outcome: Outcome) -> None:
    old, new = taken_over(world)
    world.enqueue_many(3)
    others = world.claim(world.join())
    reports = [Finished(attempt.id, attempt.fence, outcome) for attempt in (others[0], old, *others[1:])]
    assert world.store.transact(finish.finish, reports) == [old.id]
    assert world.status(new.id) is Status.RUNNING
    assert all(world.status(attempt.id) is not Status.RUNNING for attempt in others)


@pytest.mark.parametrize("first", [Succeeded("1"), FAILED], ids=lambda outcome: type(outcome).__name__)
@pytest.mark.parametrize("second", [Succeeded("2"), FAILED], ids=lambda outcome: type(outcome).__name__)
def test_of_two_reports_of_one_attempt_in_a_batch_one_counts(world: World, first: Outcome, second: Outcome) -> None:
    world.enqueue_many(2)
    attempt, other = world.claim(world.join())
    reports = [
        Finished(attempt.id, attempt.fence, first),
        Finished(other.id, other.fence, Succeeded("1")),
        Finished(attempt.id, attempt.fence, second),
    ]
    assert world.store.transact(finish.finish, reports) == [attempt.id]
    assert len(world.attempts(attempt.id)) == 1
    assert world.status(attempt.id) in (Status.SUCCESS, Status.FAILED)
    assert world.status(other.id) is Status.SUCCESS


def test_of_many_reports_of_one_attempt_at_once_exactly_one_counts(world: World) -> None:
    _, attempt = world.start()
    futures = [
        world.store.submit(finish.finish, [Finished(attempt.id, attempt.fence, Succeeded(str(number)))])
        for number in range(20)
    ]
    stale = [future.result(30) for future in futures]
    assert stale.count([]) == 1
    assert len(world.attempts(attempt.id)) == 1


def test_the_fence_of_the_end_is_the_highest(world: World) -> None:
    old, new = taken_over(world)
    world.finish(new)
    fences = [(attempt.fence, attempt.final) for attempt in world.attempts(old.id)]
    assert fences == [(1, 0), (2, 1)]


def test_an_end_without_an_attempt_has_a_fence_above_every_start(world: World) -> None:
    _, attempt = world.start()
    world.finish(attempt, Snoozed(60))
    world.cancel(attempt.id)
    fences = [(attempt.fence, attempt.final) for attempt in world.attempts(attempt.id)]
    assert fences == [(1, 0), (2, 1)]
    assert world.finish(attempt) == [attempt.id]
