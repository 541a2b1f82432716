"""Executions that wait behind blockers, and how they are released."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rota.domain.blocker import Kind
from rota.domain.status import Status
from rota.ops import blockers, job_pauses, upkeep
from rota.store.hints import Ready
from tests.support.world import APP, FAILED, LEASE_S, NAMESPACE, THREE_TRIES, RecordingBus, World

LIMIT = (Kind.LIMIT, "mail")
RATE = (Kind.RATE, "mails")


def block(world: World, ids: Sequence[str], *wanted: tuple[Kind, str]) -> None:
    """Pauses the job for a moment, because only claims put executions behind blockers today."""
    world.store.transact(job_pauses.pause, NAMESPACE, APP, "send", "ann")
    world.clock.advance(2 * job_pauses.KNOWN_S)
    assert world.claim(world.join(), len(ids), jobs=["send"]) == []
    world.store.transact(blockers.block, [(id, *one) for id in ids for one in wanted])
    world.store.transact(job_pauses.resume, NAMESPACE, APP, "send", "ann")


def release(world: World, wanted: tuple[Kind, str], most: int = 100) -> int:
    return world.store.transact(blockers.release, *wanted, most)


def has_lifted(world: World) -> bool:
    return world.store.read(upkeep.look, LEASE_S).has_lifted


def claimed(world: World, worker: int, slots: int = 100) -> list[str]:
    world.clock.advance(2 * job_pauses.KNOWN_S)
    return [one.id for one in world.claim(worker, slots)]


def test_executions_are_released_lowest_rank_first(world: World, bus: RecordingBus) -> None:
    low, high, middle = (world.enqueue(priority=priority) for priority in (-10, 10, 0))
    block(world, [low, high, middle], LIMIT)
    worker = world.join(lease_s=3600)
    bus.hints.clear()
    assert release(world, LIMIT, 1) == 1
    assert [type(hint) for hint in bus.hints] == [Ready]
    assert [world.status(id) for id in (low, high, middle)] == [Status.WAITING, Status.QUEUED, Status.WAITING]
    assert release(world, LIMIT, 5) == 2
    assert release(world, LIMIT, 5) == 0
    assert claimed(world, worker) == [high, middle, low]


def test_an_execution_waits_for_its_last_blocker(world: World) -> None:
    (id,) = [world.enqueue()]
    block(world, [id], LIMIT, RATE)
    assert release(world, (Kind.LIMIT, "other")) == 0
    assert release(world, LIMIT) == 1
    assert world.status(id) is Status.WAITING
    assert world.execution(id).reason == "rate"
    assert world.why(id) == "waits for rate limit mails"
    assert release(world, RATE) == 1
    assert world.status(id) is Status.QUEUED


def test_an_execution_that_was_cancelled_has_no_blockers(world: World) -> None:
    (id,) = [world.enqueue()]
    block(world, [id], LIMIT, RATE)
    assert world.cancel(id) is Status.CANCELLED
    assert release(world, LIMIT) == release(world, RATE) == 0


def test_a_released_retry_does_not_overtake_older_executions(world: World) -> None:
    """Its place is by the time of the retry, not by the time at which it was enqueued first."""
    _, attempt = world.start()
    world.finish(attempt, FAILED, THREE_TRIES)
    older = world.enqueue("receive")
    world.clock.advance(11)
    world.promote()
    block(world, [attempt.id])
    assert claimed(world, world.join(lease_s=3600)) == [older, attempt.id]


@pytest.fixture
def paused(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Executions of a paused job that wait, and batches of two."""
    monkeypatch.setattr(blockers, "MOST", 2)
    ids = [world.enqueue() for _ in range(5)]
    world.store.transact(job_pauses.pause, NAMESPACE, APP, "send", "ann")
    assert claimed(world, world.join(lease_s=3600)) == []
    return ids


def resume(world: World) -> bool:
    return world.store.transact(job_pauses.resume, NAMESPACE, APP, "send", "ann")


def test_a_resume_releases_one_batch_and_upkeep_the_others(world: World, paused: list[str]) -> None:
    assert not has_lifted(world)
    assert resume(world)
    assert claimed(world, world.join(lease_s=3600)) == paused[:2]
    assert has_lifted(world)
    assert world.why(paused[2]) == "waits for older executions of job shop.send, which was resumed"
    while has_lifted(world):
        assert world.store.transact(blockers.release_lifted)
    assert not world.store.transact(blockers.release_lifted)
    assert claimed(world, world.join(lease_s=3600)) == paused[2:]


def test_newer_executions_do_not_overtake_those_that_still_wait(world: World, paused: list[str]) -> None:
    worker = world.join(lease_s=3600)
    resume(world)
    newer = world.enqueue()
    assert claimed(world, worker) == paused[:2]
    assert world.status(newer) is Status.WAITING
    other = world.enqueue("receive")
    assert claimed(world, worker) == [other]
    while has_lifted(world):
        world.store.transact(blockers.release_lifted)
    assert claimed(world, worker) == [*paused[2:], newer]
    last = world.enqueue()
    assert claimed(world, worker) == [last]


def test_a_job_that_is_paused_again_during_the_release_keeps_the_rest_waiting(world: World, paused: list[str]) -> None:
    worker = world.join(lease_s=3600)
    resume(world)
    world.store.transact(job_pauses.pause, NAMESPACE, APP, "send", "ann")
    assert not has_lifted(world)
    assert claimed(world, worker) == []
    assert {world.status(id) for id in paused} == {Status.WAITING}
    resume(world)
    while has_lifted(world):
        world.store.transact(blockers.release_lifted)
    assert claimed(world, worker) == paused


def test_a_blocker_with_many_executions_does_not_delay_another(world: World, paused: list[str]) -> None:
    world.register("receive")
    (other,) = world.enqueue_many(1, "receive")
    world.store.transact(job_pauses.pause, NAMESPACE, APP, "receive", "ann")
    assert claimed(world, world.join(lease_s=3600)) == []
    resume(world)
    world.clock.advance(1)
    world.store.transact(blockers.release_lifted)
    world.store.transact(job_pauses.resume, NAMESPACE, APP, "receive", "ann")
    assert world.status(other) is Status.QUEUED
    assert world.status(paused[4]) is Status.WAITING
