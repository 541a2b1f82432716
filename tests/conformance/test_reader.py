"""Everything that is only read: filters, pages, status, and that tenants never see each other."""

from __future__ import annotations

import pytest

from rota.domain.errors import UnknownExecution, UsageError
from rota.domain.outcome import Snoozed
from rota.domain.status import TERMINAL, Status
from rota.ids import LAST_ID
from rota.ops import define, enqueue, fleet, submission
from rota.store import claim_reader, reader
from rota.store.port import View
from rota.store.reader import Filter, QueueRow
from rota.views import execution, lookup
from rota.views.finding import findings
from tests.support.world import APP, FAILED, NAMESPACE, NO_RETRY, THREE_TRIES, World

SECOND = 1_000_000


def one_of_each(world: World) -> dict[Status, str]:
    """An execution in every state that a store without dependencies and limits can hold."""
    found: dict[Status, str] = {}
    worker = world.join()
    for status in (Status.SUCCESS, Status.FAILED, Status.RETRYING, Status.RUNNING):
        found[status] = world.enqueue()
        (attempt,) = world.claim(worker)
        if status is Status.SUCCESS:
            world.finish(attempt)
        elif status is not Status.RUNNING:
            world.finish(attempt, FAILED, THREE_TRIES if status is Status.RETRYING else NO_RETRY)
    found[Status.CANCELLED] = world.enqueue()
    world.cancel(found[Status.CANCELLED])
    found[Status.SKIPPED] = world.enqueue(start_by=world.clock.now() - 1)
    world.claim(worker)
    found[Status.SCHEDULED] = world.enqueue(delay_s=60)
    found[Status.QUEUED] = world.enqueue()
    return found


def test_every_execution_answers_with_its_state(world: World) -> None:
    for status, id in one_of_each(world).items():
        assert world.status(id) is status
        assert world.execution(id).status is status
        ending = world.ending(id)
        assert (ending.status if ending else None) == (status if status in TERMINAL else None)


def test_executions_are_filtered_by_state(world: World) -> None:
    every = one_of_each(world)
    for status in Status:
        assert world.executions(status=status) == ([every[status]] if status in every else [])
    assert world.executions() == sorted(every.values(), reverse=True)


def test_executions_are_filtered_by_job_app_queue_and_time(world: World) -> None:
    world.register("send", app="other")
    first = world.enqueue("send", queue="mail")
    world.clock.advance(10)
    since = world.clock.now()
    second = world.enqueue("count", queue="slow")
    third = world.enqueue("send", app="other")
    assert world.executions(job="send") == [third, first]
    assert world.executions(job="send", app=APP) == [first]
    assert world.executions(app="other") == [third]
    assert world.executions(queue="slow") == [second]
    assert world.executions(since=since) == [third, second]
    assert world.executions(status=Status.QUEUED, job="send", queue="mail") == [first]
    assert world.executions(status=Status.SUCCESS) == []
    assert world.executions(job="nothing") == []


def test_ended_executions_are_filtered_by_the_text_of_their_error(world: World) -> None:
    (id,) = world.fail()
    world.enqueue()
    assert world.executions(error="BOOM") == [id]
    assert world.executions(error="BOOM", status=Status.FAILED, job="send") == [id]
    assert world.executions(error="nothing like it") == []
    assert world.executions(error="boom", status=Status.SUCCESS) == []


@pytest.mark.parametrize("wanted", [{}, {"job": "send"}, {"status": Status.QUEUED}, {"queue": "default"}])
def test_pages_follow_each_other_without_gaps_or_doubles(world: World, wanted: dict[str, object]) -> None:
    ids = world.enqueue_many(25)
    seen: list[str] = []
    before = LAST_ID
    while page := world.executions(limit=7, before=before, **wanted):
        assert len(page) <= 7
        seen += page
        before = page[-1]
        world.enqueue("count", queue="new")
    assert [id for id in seen if id in ids] == sorted(ids, reverse=True)


def test_an_id_may_be_shortened_while_it_is_clear(world: World) -> None:
    id = world.enqueue()
    assert world.store.read(lookup.execution_id, NAMESPACE, id[:30]) == id
    assert world.store.read(lookup.execution_id, NAMESPACE, id.upper()) == id
    other = world.enqueue()
    with pytest.raises(UsageError, match="give more of the id"):
        world.store.read(lookup.execution_id, NAMESPACE, id[:8])
    assert world.store.read(lookup.execution_id, NAMESPACE, other) == other
    for nonsense in ("zzz", "%", "' OR 1=1 --", "_"):
        with pytest.raises(UnknownExecution):
            world.store.read(lookup.execution_id, NAMESPACE, nonsense)


def test_an_id_may_be_shortened_to_its_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "NEWEST", 2)
    by_status = one_of_each(world)
    for _ in range(2):
        world.cancel(world.enqueue())
    for status, id in by_status.items():
        for end in (id[-8:], id[-6:].upper(), f"…{id[-8:]}", id[-12:], id[-15:]):
            if status in TERMINAL - {Status.FAILED}:  # An old one; the failed one is a dead letter.
                with pytest.raises(UnknownExecution):
                    world.store.read(lookup.execution_id, NAMESPACE, end)
            else:
                assert world.store.read(lookup.execution_id, NAMESPACE, end) == id, (status, end)
    live = by_status[Status.QUEUED]
    for end in (live[-5:], "%" + live[-7:], "_" + live[-7:]):
        with pytest.raises(UnknownExecution):
            world.store.read(lookup.execution_id, NAMESPACE, end)
    world.register("send", namespace="tenant")
    with pytest.raises(UnknownExecution):
        world.store.read(lookup.execution_id, "tenant", live[-8:])


def test_an_id_that_is_not_clear_is_answered_with_the_ids_that_it_could_be(world: World) -> None:
    start = world.ids.new()[:23]
    ids = [f"{start}-00000{number}abcdef" for number in range(7)]
    items = [submission.Item(id, "{}") for id in ids]
    world.store.transact(enqueue.enqueue, world.header("send"), items[:2])
    for part in (start, "abcdef", "…abcdef"):
        with pytest.raises(UsageError, match=f"{part} may be any of {ids[1]}, {ids[0]}: give more of the id"):
            world.store.read(lookup.execution_id, NAMESPACE, part)
    world.store.transact(enqueue.enqueue, world.header("send"), items[2:])
    with pytest.raises(UsageError, match=f"{ids[6]}, .*, {ids[2]}, …: give more"):
        world.store.read(lookup.execution_id, NAMESPACE, start)


def test_an_unknown_execution_is_a_clear_error(world: World) -> None:
    id = world.ids.new()
    for query in (reader.status, reader.execution, reader.ending, claim_reader.claim_facts):
        with pytest.raises(UnknownExecution, match=id):
            world.store.read(query, NAMESPACE, id)


def test_executions_of_another_namespace_are_not_visible(world: World) -> None:
    world.register("send", namespace="tenant")
    (failed,) = world.fail()
    queued = world.enqueue()
    for id in (failed, queued):
        queries = (
            reader.status,
            reader.execution,
            reader.ending,
            claim_reader.claim_facts,
            lookup.execution_id,
            reader.attempts,
        )
        for query in queries:
            with pytest.raises(UnknownExecution):
                world.store.read(query, "tenant", id)
    for wanted in (Filter(), Filter(job="send"), Filter(status=Status.FAILED), Filter(status=Status.QUEUED)):
        assert world.store.read(execution.rows, "tenant", wanted).items == []
    assert world.store.read(reader.dead, "tenant", Filter()) == []
    assert world.store.read(reader.dead_count, "tenant") == 0
    assert world.store.read(reader.workers, "tenant", 0) == []
    assert [row.queued for row in world.store.read(reader.queues, "tenant")] == [0]


def queue(world: World, name: str = "default") -> QueueRow:
    return next(row for row in world.store.read(reader.queues, NAMESPACE) if row.name == name)


def test_a_queue_has_its_counts(world: World) -> None:
    world.fail(2)
    world.enqueue_many(3)
    oldest_at = world.clock.now()
    world.clock.advance(5)
    world.enqueue(delay_s=60)
    world.enqueue()
    world.claim(world.join(), 1)
    row = queue(world)
    assert (row.queued, row.scheduled, row.running, row.waiting, row.dead) == (3, 1, 1, 0, 2)
    assert row.oldest_at == oldest_at


def test_an_empty_queue_has_no_oldest(world: World) -> None:
    row = queue(world)
    assert (row.queued, row.scheduled, row.running, row.oldest_at, row.dead) == (0, 0, 0, None, 0)


def test_queued_executions_without_a_worker_are_found(world: World) -> None:
    def found() -> list[tuple[str, str]]:
        kinds = world.store.read(findings, NAMESPACE)
        return [(one.subject.name, one.evidence) for one in kinds if one.kind == "no_worker"]

    world.enqueue_many(3, queue="mail")
    assert found() == [("mail", "3 queued in mail, oldest 0 ms")]
    worker = world.join()
    assert found() == []
    world.store.transact(fleet.leave, worker)
    assert len(found()) == 1
    world.store.transact(define.pause_queue, NAMESPACE, "mail", "ann", "")
    assert found() == []


def test_an_execution_has_the_facts_that_a_claim_checks(world: World) -> None:
    first, second = world.enqueue(), world.enqueue()
    facts = world.store.read(claim_reader.claim_facts, NAMESPACE, second)
    assert (facts.status, facts.ahead, facts.live_workers) == (Status.QUEUED, 1, 0)
    (attempt,) = world.claim(world.join(), 1)
    assert attempt.id == first
    running = world.store.read(claim_reader.claim_facts, NAMESPACE, first)
    behind = world.store.read(claim_reader.claim_facts, NAMESPACE, second)
    assert (running.status, running.lease_until) == (Status.RUNNING, world.clock.now() + 10 * SECOND)
    assert (behind.ahead, behind.live_workers) == (0, 1)


def test_a_snoozed_execution_has_the_reason_snoozed(world: World) -> None:
    _, attempt = world.start()
    world.finish(attempt, Snoozed(60))
    facts = world.store.read(claim_reader.claim_facts, NAMESPACE, attempt.id)
    assert (facts.status, facts.reason) == (Status.SCHEDULED, "snoozed")
    assert facts.due_at == world.clock.now() + 60 * SECOND


def test_reading_sees_one_consistent_state(world: World) -> None:
    world.enqueue_many(3)

    def twice(view: View) -> tuple[int, int]:
        rows = execution.rows(view, NAMESPACE, Filter())
        again = execution.rows(view, NAMESPACE, Filter())
        return len(rows.items), len(again.items)

    assert world.store.read(twice) == (3, 3)


def test_an_accepted_execution_is_visible_to_the_next_read(world: World) -> None:
    for _ in range(50):
        assert world.status(world.enqueue()) is Status.QUEUED


def test_the_clock_of_the_database_is_read_with_the_newest_instant_in_it(world: World) -> None:
    world.enqueue()
    at = world.clock.now()
    world.clock.advance(5)
    assert world.store.read(reader.clock) == (at + 5 * SECOND, at)
