"""Ending attempts: where each outcome sends the execution, and what is kept of every attempt."""

from __future__ import annotations

import msgspec
import pytest

from rota.domain.claim import Claim
from rota.domain.lifecycle import CRASH_CAP, Rules
from rota.domain.outcome import Cancelled, Failed, GivenBack, Lost, Outcome, Snoozed, Succeeded, TimedOut
from rota.domain.retry import Exponential, Fixed
from rota.domain.status import Reason, Status
from rota.ops import finish
from rota.store.hints import Due, Ended, Ready
from tests.support.world import ERROR, FAILED, NO_RETRY, THREE_TRIES, RecordingBus, World

SECOND = 1_000_000


def again(world: World) -> Claim:
    """Waits until the execution is due, and starts it."""
    world.clock.advance(3600)
    world.promote()
    (attempt,) = world.claim(world.join())
    return attempt


def test_a_success_keeps_its_result(world: World) -> None:
    _, attempt = world.start()
    world.clock.advance(2)
    assert world.finish(attempt, Succeeded('{"a":[1,null,"ä"]}')) == []
    ending = world.ending(attempt.id)
    assert ending is not None
    assert (ending.status, ending.reason, ending.result, ending.error) == (
        Status.SUCCESS,
        Reason.COMPLETED,
        '{"a":[1,null,"ä"]}',
        None,
    )
    row = world.execution(attempt.id)
    assert (row.status, row.attempts, row.fence, row.worker) == (Status.SUCCESS, 1, 1, "w")
    assert (row.started_at, row.finished_at) == (attempt.started_at, world.clock.now())


@pytest.mark.parametrize("result", ["null", "1", '"1"', "true", "[]", '""', '"null"', "1.0", "12345678901234567890123"])
def test_results_are_read_back_unchanged(world: World, result: str) -> None:
    _, attempt = world.start()
    world.finish(attempt, Succeeded(result))
    ending = world.ending(attempt.id)
    assert ending is not None
    assert ending.result == result


def test_a_failure_with_attempts_left_is_scheduled_for_a_retry(world: World) -> None:
    _, attempt = world.start()
    world.finish(attempt, FAILED, THREE_TRIES)
    row = world.execution(attempt.id)
    assert (row.status, row.attempts, row.due_at) == (Status.RETRYING, 1, world.clock.now() + 10 * SECOND)
    assert world.ending(attempt.id) is None
    assert world.promote() == 0
    assert again(world).attempts == 1


def test_the_last_failure_ends_the_execution_as_a_dead_letter(world: World) -> None:
    _, attempt = world.start()
    for _ in range(2):
        world.finish(attempt, FAILED, THREE_TRIES)
        attempt = again(world)
    world.finish(attempt, FAILED, THREE_TRIES)
    row = world.execution(attempt.id)
    assert (row.status, row.reason, row.attempts, row.fence) == (Status.FAILED, Reason.RETRIES_EXHAUSTED, 3, 3)
    assert [dead.id for dead in world.dead()] == [attempt.id]


def test_every_attempt_is_kept_with_its_error_worker_and_times(world: World) -> None:
    _, attempt = world.start()
    world.clock.advance(1)
    world.finish(attempt, FAILED, THREE_TRIES)
    second = again(world)
    world.clock.advance(2)
    world.finish(second)
    one, two = world.attempts(attempt.id)
    assert (one.fence, one.final, one.status, one.reason, one.attempts) == (1, 0, "failed", Reason.ERROR, 1)
    assert (two.fence, two.final, two.status, two.reason, two.attempts) == (2, 1, "success", Reason.COMPLETED, 2)
    assert (one.worker, two.worker) == ("w", "w")
    assert (one.started_at, one.finished_at) == (attempt.started_at, attempt.started_at + SECOND)
    assert (two.started_at, two.finished_at) == (second.started_at, second.started_at + 2 * SECOND)
    assert one.error is not None
    assert msgspec.json.decode(one.error) == {"type": "ValueError", "message": "boom", "traceback": "Traceback …"}
    assert (two.error, two.result) == (None, "1")


@pytest.mark.parametrize(
    ("outcome", "kind", "status", "attempts"),
    [
        (FAILED, "failed", Status.RETRYING, 1),
        (TimedOut(ERROR), "failed", Status.RETRYING, 1),
        (Snoozed(5), "snoozed", Status.SCHEDULED, 0),
        (GivenBack(Reason.DRAINED), "given_back", Status.QUEUED, 0),
        (GivenBack(Reason.NOT_BEGUN, 5), "given_back", Status.SCHEDULED, 0),
        (Lost(ERROR), "lost", Status.QUEUED, 0),
    ],
)
def test_outcomes_that_do_not_end_an_execution(
    world: World, outcome: Outcome, kind: str, status: Status, attempts: int
) -> None:
    _, attempt = world.start()
    world.finish(attempt, outcome, THREE_TRIES)
    row = world.execution(attempt.id)
    assert (row.status, row.attempts, row.fence) == (status, attempts, 1)
    (kept,) = world.attempts(attempt.id)
    assert (kept.status, kept.final) == (kind, 0)
    assert again(world).fence == 2


@pytest.mark.parametrize(
    ("outcome", "status", "reason", "attempts"),
    [
        (Succeeded("1"), Status.SUCCESS, Reason.COMPLETED, 1),
        (FAILED, Status.FAILED, Reason.ERROR, 1),
        (Failed(ERROR, permanent=True), Status.FAILED, Reason.PERMANENT_ERROR, 1),
        (Failed(ERROR, Reason.BAD_RESULT, permanent=True), Status.FAILED, Reason.BAD_RESULT, 1),
        (TimedOut(ERROR), Status.FAILED, Reason.TIMEOUT, 1),
        (TimedOut(ERROR, total=True), Status.FAILED, Reason.TOTAL_TIMEOUT, 1),
        (Cancelled(), Status.CANCELLED, Reason.CANCELLED, 0),
    ],
)
def test_outcomes_that_end_an_execution(
    world: World, outcome: Outcome, status: Status, reason: Reason, attempts: int
) -> None:
    _, attempt = world.start()
    world.finish(attempt, outcome)
    row = world.execution(attempt.id)
    assert (row.status, row.reason, row.attempts) == (status, reason, attempts)
    (kept,) = world.attempts(attempt.id)
    assert (kept.status, kept.final) == (status, 1)
    assert len(world.dead()) == (status is Status.FAILED)
    assert world.claim(world.join()) == []


def test_the_reason_of_an_attempt_that_was_given_back_is_kept(world: World) -> None:
    _, attempt = world.start()
    world.finish(attempt, GivenBack(Reason.NOT_BEGUN, 5, ERROR))
    row, (kept,) = world.execution(attempt.id), world.attempts(attempt.id)
    assert (row.status, row.attempts, row.due_at) == (Status.SCHEDULED, 0, world.clock.now() + 5 * SECOND)
    assert (kept.status, kept.reason) == ("given_back", "not_begun")
    assert kept.error is not None
    assert ERROR.message in str(kept.error)


def test_an_execution_that_is_given_back_keeps_its_rank(world: World) -> None:
    first = world.enqueue()
    worker = world.join()
    (attempt,) = world.claim(worker, 1)
    world.clock.advance(5)
    second = world.enqueue()
    world.finish(attempt, GivenBack(Reason.DRAINED))
    assert [attempt.id for attempt in world.claim(world.join())] == [first, second]


def test_a_retry_gets_a_new_rank(world: World) -> None:
    _, attempt = world.start()
    world.finish(attempt, FAILED, THREE_TRIES)
    world.clock.advance(5)
    other = world.enqueue()
    world.clock.advance(10)
    world.promote()
    assert [attempt.id for attempt in world.claim(world.join())] == [other, attempt.id]


def test_a_retry_keeps_the_priority(world: World) -> None:
    _, attempt = world.start(priority=10)
    world.finish(attempt, FAILED, THREE_TRIES)
    world.clock.advance(10)
    world.promote()
    normal = world.enqueue()
    assert [attempt.id for attempt in world.claim(world.join())] == [attempt.id, normal]


def test_a_third_crash_is_a_crash_loop(world: World) -> None:
    _, attempt = world.start()
    for crashes in range(1, CRASH_CAP):
        world.finish(attempt, Lost(ERROR))
        assert world.execution(attempt.id).crashes == crashes
        attempt = again(world)
    world.finish(attempt, Lost(ERROR))
    row = world.execution(attempt.id)
    assert (row.status, row.reason, row.crashes, row.attempts) == (
        Status.FAILED,
        Reason.CRASH_LOOP,
        CRASH_CAP,
        0,
    )
    assert [attempt.crashes for attempt in world.attempts(attempt.id)] == [1, 2, 3]


def test_failures_between_crashes_do_not_reset_the_number_of_crashes(world: World) -> None:
    _, attempt = world.start()
    outcomes: list[Outcome] = [Lost(ERROR), FAILED, Snoozed(1), Lost(ERROR), Lost(ERROR)]
    for outcome in outcomes:
        world.finish(attempt, outcome, THREE_TRIES)
        if world.status(attempt.id) is not Status.FAILED:
            attempt = again(world)
    assert world.execution(attempt.id).reason == Reason.CRASH_LOOP


def test_a_total_timeout_counts_from_the_first_start(world: World) -> None:
    rules = Rules(retry=Fixed(attempts=100, delay=40), total_timeout_s=100)
    _, attempt = world.start()
    world.finish(attempt, FAILED, rules)
    world.clock.advance(41)
    world.promote()
    (attempt,) = world.claim(world.join())
    assert attempt.first_start_at < attempt.started_at
    world.finish(attempt, FAILED, rules)
    assert world.status(attempt.id) is Status.RETRYING
    world.clock.advance(41)
    world.promote()
    (attempt,) = world.claim(world.join())
    world.finish(attempt, FAILED, rules)
    assert world.execution(attempt.id).reason == Reason.TOTAL_TIMEOUT


def test_the_jitter_of_the_report_decides_the_delay(world: World) -> None:
    world.enqueue_many(2)
    one, other = world.claim(world.join())
    rules = Rules(retry=Exponential(base=100, cap=100))
    world.set_rules(one.id, rules)
    reports = [
        finish.Finished(one.id, one.fence, FAILED, 0.0),
        finish.Finished(other.id, other.fence, FAILED, 0.25),
    ]
    assert world.store.transact(finish.finish, reports) == []
    assert world.execution(one.id).due_at == world.clock.now()
    assert world.execution(other.id).due_at == world.clock.now() + 25 * SECOND


def test_a_batch_may_hold_every_kind_of_outcome(world: World) -> None:
    outcomes: list[Outcome] = [Succeeded("1"), FAILED, Snoozed(1), GivenBack(Reason.DRAINED), Cancelled(), Lost(ERROR)]
    world.enqueue_many(len(outcomes) * 20)
    attempts = world.claim(world.join(), 1000)
    reports = [
        finish.Finished(attempt.id, attempt.fence, outcomes[index % len(outcomes)])
        for index, attempt in enumerate(attempts)
    ]
    world.set_rules(attempts[0].id, THREE_TRIES)
    assert world.store.transact(finish.finish, reports) == []
    statuses = [world.status(attempt.id) for attempt in attempts]
    expected = [
        Status.SUCCESS,
        Status.RETRYING,
        Status.SCHEDULED,
        Status.QUEUED,
        Status.CANCELLED,
        Status.QUEUED,
    ]
    assert statuses == expected * 20


def test_large_and_unusual_text_is_stored(world: World) -> None:
    _, attempt = world.start()
    text = "𝄞'\"\\\n" * 50_000
    world.finish(attempt, Failed(msgspec.structs.replace(ERROR, message=text)), NO_RETRY)
    (kept,) = world.attempts(attempt.id)
    assert msgspec.json.decode(kept.error or "")["message"] == text


def test_a_finish_sends_hints_for_ended_ids_and_for_requeued_lanes_or_times(world: World, bus: RecordingBus) -> None:
    world.enqueue_many(3)
    done, back, later = world.claim(world.join())
    bus.hints.clear()
    world.finish(done)
    assert bus.hints == [Ended((done.id,))]
    bus.hints.clear()
    world.finish(back, GivenBack(Reason.DRAINED))
    assert bus.hints == [Ready({back.lane: back.rank})]
    bus.hints.clear()
    world.finish(later, Snoozed(5))
    assert bus.hints == [Due(world.clock.now() + 5 * SECOND)]


def test_an_empty_report_changes_nothing(world: World) -> None:
    assert world.store.transact(finish.finish, []) == []
