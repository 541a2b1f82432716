"""Jobs that are paused, by an operator or by themselves."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rota.domain.errors import UnknownJob
from rota.domain.job import Definition, Queue
from rota.domain.outcome import Succeeded
from rota.domain.rank import Policy
from rota.domain.status import Status
from rota.ops import finish, job_definitions, job_pauses
from rota.ops.finish import Finished
from rota.store import definition_reader
from tests.support.world import APP, FAILED, NAMESPACE, NO_RETRY, THREE_TRIES, World

PAUSING = replace(NO_RETRY, pauses=True)


def pause(world: World, job: str = "send", note: str = "") -> bool:
    return world.store.transact(job_pauses.pause, NAMESPACE, APP, job, "ann", note)


def resume(world: World, job: str = "send") -> bool:
    return world.store.transact(job_pauses.resume, NAMESPACE, APP, job, "ann")


def claimed(world: World, worker: int, slots: int = 100) -> list[str]:
    world.clock.advance(2 * job_pauses.KNOWN_S)  # A worker may learn of a pause a moment late.
    return [one.id for one in world.claim(worker, slots)]


def paused(world: World, job: str = "send") -> tuple[str | None, str | None] | None:
    (row,) = [row for row in world.store.read(definition_reader.all_jobs, NAMESPACE) if row.name == job]
    return None if row.paused_at is None else (row.paused_by, row.paused_note)


def test_a_paused_job_is_not_claimed_and_others_are(world: World) -> None:
    worker = world.join(lease_s=3600)
    mine, others = [world.enqueue() for _ in range(3)], [world.enqueue("receive") for _ in range(3)]
    assert pause(world, note="mail is down")
    assert not pause(world)
    assert paused(world) == ("ann", "mail is down")
    assert claimed(world, worker) == others
    assert {world.status(id) for id in mine} == {Status.WAITING}
    later = world.enqueue()
    assert claimed(world, worker) == []
    assert world.status(later) is Status.WAITING
    assert world.why(later) == "job shop.send is paused by ann (mail is down): `rota jobs resume send`"
    assert resume(world)
    assert not resume(world)
    assert claimed(world, worker) == [*mine, later]


@pytest.mark.parametrize("policy", list(Policy))
def test_a_waiting_execution_is_released_with_its_old_rank(world: World, policy: Policy) -> None:
    world.register(queues=[Queue(name="default", policy=policy)])
    worker = world.join(lease_s=3600)
    low, high = world.enqueue(priority=-10), world.enqueue(priority=10)
    pause(world)
    assert claimed(world, worker) == []
    newer = world.enqueue("receive")
    resume(world)
    expected = [low, high, newer] if policy is Policy.FIFO else [high, newer, low]
    assert claimed(world, worker) == expected


def test_moving_an_execution_to_waiting_counts_no_start(world: World) -> None:
    worker = world.join(lease_s=3600)
    x = world.enqueue()
    pause(world)
    claimed(world, worker)
    row = world.execution(x)
    assert (row.fence, row.attempts, row.crashes) == (0, 0, 0)
    assert world.attempts(x) == []
    resume(world)
    world.clock.advance(2 * job_pauses.KNOWN_S)
    (attempt,) = world.claim(worker)
    assert attempt.fence == 1


def test_a_running_execution_of_a_paused_job_finishes_and_its_retry_waits(world: World) -> None:
    worker, attempt = world.start()
    pause(world)
    world.finish(attempt, FAILED, THREE_TRIES)
    world.clock.advance(11)
    world.promote()
    worker = world.join(lease_s=3600)
    assert claimed(world, worker) == []
    row = world.execution(attempt.id)
    assert (row.status, row.attempts, row.fence) == (Status.WAITING, 1, 1)
    resume(world)
    assert claimed(world, worker) == [attempt.id]


def test_a_waiting_execution_can_be_cancelled(world: World) -> None:
    worker = world.join(lease_s=3600)
    x = world.enqueue()
    pause(world)
    claimed(world, worker)
    assert world.cancel(x) is Status.CANCELLED
    resume(world)
    assert claimed(world, worker) == []


def test_deleting_a_paused_job_releases_its_executions(world: World) -> None:
    job = world.define("gone")
    worker = world.join(lease_s=3600)
    waiting = world.enqueue("gone")
    pause(world, "gone")
    assert claimed(world, worker) == []
    assert world.status(waiting) is Status.WAITING
    untouched = world.enqueue("gone")
    world.store.transact(job_definitions.delete, NAMESPACE, job, "ann")
    world.define("gone")
    assert claimed(world, worker) == [waiting, untouched]


def test_many_executions_of_a_paused_job_do_not_block_other_jobs(world: World) -> None:
    worker = world.join(lease_s=3600)
    world.enqueue_many(500)
    other = world.enqueue("receive")
    pause(world)
    world.clock.advance(2 * job_pauses.KNOWN_S)
    taken = [one.id for _ in range(10) for one in world.claim(worker, 100)]
    assert taken == [other]


def test_an_unknown_job_cannot_be_paused(world: World) -> None:
    with pytest.raises(UnknownJob):
        pause(world, "nothing")
    with pytest.raises(UnknownJob):
        resume(world, "nothing")


def fail(world: World, job: str = "frail") -> None:
    world.enqueue(job)
    worker = world.join()
    world.finish(world.claim(worker)[0], FAILED, PAUSING)


def succeed(world: World, job: str = "frail") -> None:
    world.enqueue(job)
    worker = world.join()
    world.finish(world.claim(worker)[0], Succeeded("1"), PAUSING)


def test_a_job_pauses_itself_after_failures_in_a_row(world: World) -> None:
    world.register(Definition(name="frail", pause_after=3))
    fail(world)
    fail(world)
    succeed(world)
    fail(world)
    fail(world)
    assert paused(world, "frail") is None
    fail(world)
    assert paused(world, "frail") == ("rota", "3 executions in a row have failed")
    resume(world, "frail")
    fail(world)
    fail(world)
    assert paused(world, "frail") is None, "failures before the resume do not count"
    fail(world)
    assert paused(world, "frail") is not None


def test_waiting_executions_do_not_hide_failures_in_a_row(world: World) -> None:
    world.register(Definition(name="frail", pause_after=3))
    for _ in range(200):
        world.enqueue("frail")
    worker = world.join(lease_s=3600)
    for claim in world.claim(worker, 3):
        assert paused(world, "frail") is None
        world.finish(claim, FAILED, PAUSING)
    assert paused(world, "frail") is not None
    assert world.claim(worker, 10) == [], "the process that paused it knows at once"


@pytest.mark.parametrize(
    ("ends", "is_paused"), [("fffs", True), ("sfff", True), ("ffsff", False), ("fsf" * 20, False), ("", False)]
)
def test_failures_that_end_together_are_counted_in_their_order(world: World, ends: str, is_paused: bool) -> None:
    world.register(Definition(name="frail", pause_after=3, retry=PAUSING.retry.describe()))
    for _ in ends:
        world.enqueue("frail")
    worker = world.join(lease_s=3600)
    claims = world.claim(worker, 100)
    outcomes = [Succeeded("1") if end == "s" else FAILED for end in ends]
    reports = [
        Finished(claim.id, claim.fence, outcome, pauses=True) for claim, outcome in zip(claims, outcomes, strict=True)
    ]
    assert world.store.transact(finish.finish, reports) == []
    assert (paused(world, "frail") is not None) is is_paused


def test_resuming_a_job_does_not_release_executions_of_another_namespace(world: World) -> None:
    other = "other"
    world.register("send", namespace=other)
    worker = world.join(lease_s=3600)
    id = world.enqueue()
    pause(world)
    world.store.transact(job_pauses.pause, other, APP, "send", "ann")
    assert claimed(world, worker) == []
    assert world.store.transact(job_pauses.resume, other, APP, "send", "ann")
    assert world.status(id) is Status.WAITING


def test_a_worker_that_has_not_heard_of_a_resume_moves_nothing_to_waiting(world: World) -> None:
    """The worker knows of the pause, and does not know yet that it is over."""
    worker = world.join(lease_s=3600)
    before = world.enqueue()
    pause(world)
    assert claimed(world, worker) == []
    resume(world)
    after = world.enqueue()
    assert [claim.id for claim in world.claim(worker, 10)] == [before, after]


def test_retries_are_not_failures_in_a_row(world: World) -> None:
    world.register(Definition(name="frail", pause_after=2))
    world.enqueue("frail")
    for _ in range(2):
        worker = world.join()
        world.finish(world.claim(worker)[0], FAILED, THREE_TRIES)
        world.clock.advance(11)
        world.promote()
    assert paused(world, "frail") is None


def test_a_forged_success_does_not_hide_failures_in_a_row(world: World) -> None:
    """A process can claim that a transaction of its job has ended an execution which another worker has not begun."""
    world.register(Definition(name="send", pause_after=2))
    worker, forger = world.join(lease_s=3600), world.join(lease_s=3600, name="forger")
    victim = world.enqueue("receive")
    for _ in range(2):
        world.enqueue()
        (attempt,) = world.claim(worker, jobs=["send"])
        forged = Finished(victim, 1, FAILED, written="", pauses=True)
        assert world.store.transact(finish.finish, [forged], forger) == [victim]
        assert world.store.transact(finish.finish, [replace(forged, id=attempt.id)], forger) == [attempt.id]
        world.finish(attempt, FAILED, PAUSING)
        again = Finished(attempt.id, attempt.fence, FAILED, written="", pauses=True)
        assert world.store.transact(finish.finish, [again], forger) == [attempt.id]
    assert paused(world) is not None


def test_other_jobs_are_not_paused(world: World) -> None:
    world.register(Definition(name="frail", pause_after=1))
    fail(world, "receive")
    assert paused(world, "receive") is None
    fail(world)
    assert paused(world, "frail") == ("rota", "1 execution has failed")
