"""Concurrent operations on PostgreSQL, each pair in its most dangerous order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from rota.domain.blocker import Kind
from rota.domain.errors import LeaseLost
from rota.domain.job import Definition, Queue
from rota.domain.lifecycle import Held
from rota.domain.outcome import Failed, Outcome, Succeeded
from rota.domain.retry import Fixed
from rota.domain.served import Served
from rota.domain.status import Reason, Status
from rota.domain.unique import Unique
from rota.ops import (
    blockers,
    claim,
    control,
    define,
    end_from_outside,
    enqueue,
    finish,
    fleet,
    job_definitions,
    job_pauses,
    upkeep,
)
from rota.ops.claim import Claimed
from rota.ops.finish import Finished
from rota.ops.fleet import Death
from rota.store import definition_reader, reader
from rota.store.definition_reader import JobRow
from rota.store.port import Tx
from rota.store.postgres.store import PostgresStore
from tests.store.arena import Arena
from tests.support.waiting import PATIENCE_S
from tests.support.world import APP, ERROR, NAMESPACE, THREE_TRIES, World


@pytest.fixture
def arena() -> Iterator[Arena]:
    with Arena() as arena:
        yield arena


@pytest.fixture
def world(arena: Arena) -> World:
    return arena.world


def take(tx: Tx, worker: int, slots: int = 100, jobs: Sequence[str] = ("send", "receive", "count")) -> Claimed:
    return claim.claim(tx, worker, Served.one(NAMESPACE, APP, None, list(jobs)), slots)


def report(tx: Tx, id: str, outcome: Outcome, fence: int = 1) -> list[str]:
    return finish.finish(tx, [Finished(id, fence, outcome)])


def stop(tx: Tx, id: str) -> Status:
    return control.cancel(tx, NAMESPACE, id, "test")


# Claims.


def test_two_claimers_never_get_the_same_row(arena: Arena, world: World) -> None:
    ids = world.enqueue_many(600)
    workers = [world.join(name=f"w{number}") for number in range(8)]
    stores = [arena.store() for _ in workers]

    def claim_all(place: int) -> list[str]:
        taken: list[str] = []
        while found := stores[place].transact(take, workers[place], 7).claims:
            taken += [one.id for one in found]
        return taken

    shares = arena.all_at_once([partial(claim_all, place) for place in range(len(workers))])
    assert sorted(id for share in shares for id in share) == sorted(ids)


def test_a_claim_skips_rows_that_another_claim_has_locked(arena: Arena, world: World) -> None:
    first, second = world.enqueue(), world.enqueue()
    one, other = world.join(), world.join()
    with arena.held_open(take, one, 1) as taken:
        assert [claimed.id for claimed in world.claim(other)] == [second]
    assert [claimed.id for claimed in taken.result().claims] == [first]


def test_a_row_of_a_rolled_back_claim_is_below_the_watermark_until_a_sweep(arena: Arena, world: World) -> None:
    first, second = world.enqueue(), world.enqueue()
    one, other = world.join(), world.join()
    with arena.held_open(take, one, 1, undo=True):
        passed = world.store.transact(take, other)
        assert [claimed.id for claimed in passed.claims] == [second]
    marked = world.store.transact(claim.claim, other, world.served(), 10, passed.marks)
    assert marked.claims == []
    assert [claimed.id for claimed in world.claim(other)] == [first]


def test_a_resume_releases_executions_that_a_claim_is_moving_to_waiting(arena: Arena, world: World) -> None:
    id, worker = world.enqueue(), world.join()
    world.store.transact(job_pauses.pause, NAMESPACE, APP, "send", "test")
    with arena.held_open(take, worker) as taken:
        resumed = arena.start(job_pauses.resume, NAMESPACE, APP, "send", "test")
        arena.wait_until_blocked(resumed)
    assert taken.result().claims == []
    assert resumed.result(PATIENCE_S)
    assert world.status(id) is Status.QUEUED


def test_a_deleted_job_releases_executions_that_a_claim_is_moving_to_waiting(arena: Arena, world: World) -> None:
    job = world.define("gone")
    id, worker = world.enqueue("gone"), world.join()
    world.store.transact(job_pauses.pause, NAMESPACE, APP, "gone", "test")
    with arena.held_open(take, worker, 100, ["gone"]) as taken:
        deleted = arena.start(job_definitions.delete, NAMESPACE, job, "test")
        arena.wait_until_blocked(deleted)
    assert taken.result().claims == []
    assert deleted.result(PATIENCE_S) == 0
    assert world.status(id) is Status.QUEUED


def test_a_deleted_job_releases_executions_of_a_pause_that_began_after_its_row_was_read(
    arena: Arena, world: World
) -> None:
    job = world.define("gone")
    id, worker, other = world.enqueue("gone"), world.join(), arena.store()

    def pause_and_claim(_: JobRow | None) -> None:
        other.transact(job_pauses.pause, NAMESPACE, APP, "gone", "test")
        assert other.transact(take, worker, 100, ["gone"]).claims == []

    world.store.transact(job_definitions.delete, NAMESPACE, job, "test", pause_and_claim)
    assert world.status(id) is Status.QUEUED


def put_aside(world: World, **options: Any) -> str:
    """An execution of a paused job that a claim has moved to `waiting`."""
    id, worker = world.enqueue(**options), world.join()
    world.store.transact(job_pauses.pause, NAMESPACE, APP, "send", "test")
    assert world.claim(worker) == []
    assert world.status(id) is Status.WAITING
    return id


def test_an_execution_that_is_cancelled_while_its_job_is_resumed_is_not_queued(arena: Arena, world: World) -> None:
    id = put_aside(world)
    with arena.held_open(stop, id) as stopped:
        assert world.store.transact(job_pauses.resume, NAMESPACE, APP, "send", "test")
    assert stopped.result() is Status.CANCELLED
    assert arena.place(id) == ["cancelled"]
    assert world.store.transact(blockers.release_lifted)
    assert not world.store.transact(blockers.release_lifted)
    assert world.claim(world.join()) == []


def test_an_execution_can_be_cancelled_while_it_is_released(arena: Arena, world: World) -> None:
    id = put_aside(world)
    with arena.held_open(job_pauses.resume, NAMESPACE, APP, "send", "test"):
        stopped = arena.start(stop, id)
        arena.wait_until_blocked(stopped)
    assert stopped.result(PATIENCE_S) is Status.CANCELLED
    assert arena.place(id) == ["cancelled"]


def test_an_execution_that_is_skipped_while_its_job_is_resumed_is_not_queued(arena: Arena, world: World) -> None:
    id = put_aside(world, start_within_s=5.0)
    world.clock.advance(10)
    with arena.held_open(upkeep.expire) as expired:
        assert world.store.transact(job_pauses.resume, NAMESPACE, APP, "send", "test")
    assert expired.result() == 1
    assert world.store.transact(blockers.release_lifted)
    assert arena.place(id) == ["skipped"]


def test_a_cancel_that_is_rolled_back_delays_the_release_until_upkeep(arena: Arena, world: World) -> None:
    id = put_aside(world)
    with arena.held_open(stop, id, undo=True):
        assert world.store.transact(job_pauses.resume, NAMESPACE, APP, "send", "test")
    assert arena.place(id) == ["waiting"]
    assert world.store.transact(blockers.release_lifted)
    assert arena.place(id) == ["ready"]


def test_an_execution_is_released_when_two_blockers_end_at_once(arena: Arena, world: World) -> None:
    """Each transaction removes one and does not see what the other removes: the waiting row makes one of them skip."""
    id = put_aside(world)
    world.store.transact(blockers.block, [(id, Kind.EVENT, "arrived")])
    with arena.held_open(blockers.release, Kind.EVENT, "arrived", 10):
        assert world.store.transact(job_pauses.resume, NAMESPACE, APP, "send", "test")
    assert arena.place(id) == ["waiting"]
    assert world.store.transact(blockers.release_lifted)
    assert arena.place(id) == ["ready"]


def test_the_last_batch_waits_for_a_claim_that_blocks_newer_executions(
    arena: Arena, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blockers, "MOST", 1)
    worker, (first, second) = world.join(), (put_aside(world), put_aside(world))
    world.store.transact(job_pauses.resume, NAMESPACE, APP, "send", "test")
    world.clock.advance(1)
    newer = world.enqueue()
    with arena.held_open(take, worker) as taken:
        assert world.store.transact(blockers.release_lifted)
        last = arena.start(blockers.release_lifted)
        arena.wait_until_blocked(last)
    assert [one.id for one in taken.result().claims] == [first]
    assert not last.result(PATIENCE_S), "it found nothing to release, and must not forget what the claim has blocked"
    assert [arena.place(id) for id in (second, newer)] == [["ready"], ["waiting"]]
    assert world.store.transact(blockers.release_lifted)
    assert arena.place(newer) == ["ready"]


def test_a_stale_ready_row_of_an_ended_execution_is_deleted_and_blocks_no_claim(arena: Arena, world: World) -> None:
    """No execution must be queued after its end. If one is, the claim deletes the row and takes the others."""
    ids, worker = world.enqueue_many(3), world.join()
    for id in ids[:2]:
        world.cancel(id)
        arena.haunt(id)
    assert world.store.transact(end_from_outside.end_pending, ids[:1], Status.SKIPPED, Reason.START_DEADLINE)
    assert {claimed.id for claimed in world.claim(worker)} == set(ids[1:])
    reports = [Finished(id, 1, Failed(ERROR)) for id in ids[1:]]
    assert world.store.transact(finish.finish, reports) == []
    assert [arena.place(id) for id in ids] == [["cancelled"], ["cancelled"], ["failed"]]


# Keys.


@pytest.mark.parametrize("kind", ["key", "unique"])
def test_fifty_callers_with_one_key_make_one_execution(arena: Arena, world: World, kind: str) -> None:
    stores = [arena.store(inline=False) for _ in range(5)]
    options: dict[str, Any] = {"key": "one"} if kind == "key" else {"unique": Unique(key="one")}
    calls = [
        partial(stores[number % 5].transact, enqueue.enqueue, world.header(**options), [world.item()])
        for number in range(50)
    ]
    answers = [answer for (answer,) in arena.all_at_once(calls)]
    assert len({answer.id for answer in answers}) == 1
    assert sum(answer.created for answer in answers) == 1
    assert world.executions() == [answers[0].id]


def test_bulks_with_the_same_keys_in_another_order_do_not_deadlock(arena: Arena, world: World) -> None:
    header = world.header(unique=Unique())
    arguments = [{"n": number} for number in range(20)]
    stores = [arena.store() for _ in range(6)]
    orders = [arguments, arguments[::-1]] * 3
    bulks = [[world.item(one) for one in order] for order in orders]
    calls = [partial(store.transact, enqueue.enqueue, header, bulk) for store, bulk in zip(stores, bulks, strict=True)]
    answers = arena.all_at_once(calls)
    assert len({answer.id for bulk in answers for answer in bulk}) == len(arguments)
    assert sum(answer.created for bulk in answers for answer in bulk) == len(arguments)


def test_a_replaced_execution_that_is_being_claimed_is_asked_to_stop(arena: Arena, world: World) -> None:
    options: dict[str, Any] = {"unique": Unique(key="one", on_conflict="replace")}
    old = world.enqueue(**options)
    worker = world.join()
    with arena.held_open(take, worker):
        newcomer = arena.start(enqueue.enqueue, world.header(**options), [world.item()])
        arena.wait_until_blocked(newcomer)
    (answer,) = newcomer.result(PATIENCE_S)
    assert answer.created
    row = world.execution(old)
    assert (row.status, row.reason) == (Status.RUNNING, Reason.REPLACED)
    assert row.cancel_at is not None
    assert arena.place(old) == ["running"]
    assert arena.place(answer.id) == ["ready"]


def test_a_debounce_of_an_execution_that_is_being_claimed_creates_another(arena: Arena, world: World) -> None:
    """The new data would be lost if the call relied on a start that has already happened."""
    options: dict[str, Any] = {"unique": Unique(key="one", on_conflict="debounce"), "delay_s": 5.0}
    old = world.enqueue(**options)
    arena.clock.advance(5)
    world.promote()
    with arena.held_open(take, world.join()):
        newcomer = arena.start(enqueue.enqueue, world.header(**options), [world.item()])
        arena.wait_until_blocked(newcomer)
    (answer,) = newcomer.result(PATIENCE_S)
    assert (answer.created, answer.id != old) == (True, True)
    assert arena.place(old) == ["running"]
    assert arena.place(answer.id) == ["scheduled"]


def test_an_execution_that_a_debounce_is_postponing_is_not_claimed(arena: Arena, world: World) -> None:
    options: dict[str, Any] = {"unique": Unique(key="one", on_conflict="debounce"), "delay_s": 5.0}
    old = world.enqueue(**options)
    worker = world.join()
    arena.clock.advance(5)
    world.promote()
    with arena.held_open(enqueue.enqueue, world.header(**options), [world.item()]) as newcomer:
        assert world.claim(worker) == []
    assert [(answer.id, answer.created) for answer in newcomer.result()] == [(old, False)]
    assert arena.place(old) == ["scheduled"]


# Cancels.


def test_a_cancel_during_a_claim_asks_the_running_execution_to_stop(arena: Arena, world: World) -> None:
    id = world.enqueue()
    with arena.held_open(take, world.join()):
        cancelled = arena.start(stop, id)
        arena.wait_until_blocked(cancelled)
    assert cancelled.result(PATIENCE_S) is Status.RUNNING
    assert world.execution(id).cancel_at is not None
    assert arena.place(id) == ["running"]


def test_an_execution_that_is_being_cancelled_is_not_claimed(arena: Arena, world: World) -> None:
    id = world.enqueue()
    worker = world.join()
    with arena.held_open(stop, id) as cancelled:
        assert world.claim(worker) == []
    assert cancelled.result() is Status.CANCELLED
    assert world.claim(worker) == []
    assert arena.place(id) == ["cancelled"]


def test_a_cancel_during_a_promotion_ends_the_execution(arena: Arena, world: World) -> None:
    id = world.enqueue(delay_s=5)
    arena.clock.advance(5)
    with arena.held_open(upkeep.promote):
        cancelled = arena.start(stop, id)
        arena.wait_until_blocked(cancelled)
    assert cancelled.result(PATIENCE_S) is Status.CANCELLED
    assert arena.place(id) == ["cancelled"]


def test_an_execution_that_is_being_cancelled_is_not_promoted(arena: Arena, world: World) -> None:
    id = world.enqueue(delay_s=5)
    arena.clock.advance(5)
    with arena.held_open(stop, id):
        assert world.promote() == 0
    assert arena.place(id) == ["cancelled"]


def test_a_cancel_during_a_finish_does_not_change_the_end(arena: Arena, world: World) -> None:
    _, attempt = world.start()
    with arena.held_open(report, attempt.id, Succeeded("1")):
        cancelled = arena.start(stop, attempt.id)
        arena.wait_until_blocked(cancelled)
    assert cancelled.result(PATIENCE_S) is Status.SUCCESS
    assert arena.place(attempt.id) == ["success"]


def test_a_failure_during_a_cancel_is_not_retried(arena: Arena, world: World) -> None:
    _, attempt = world.start()
    world.set_rules(attempt.id, THREE_TRIES)
    failed = Finished(attempt.id, attempt.fence, Failed(ERROR))
    with arena.held_open(stop, attempt.id) as cancelled:
        reported = arena.start(finish.finish, [failed])
        arena.wait_until_blocked(reported)
    assert cancelled.result() is Status.RUNNING
    assert reported.result(PATIENCE_S) == []
    assert arena.place(attempt.id) == ["cancelled"]


# Dead letters.


def test_two_replays_of_one_dead_letter_make_one_execution(arena: Arena, world: World) -> None:
    (dead,) = world.fail()
    news = world.ids.many(2)
    with arena.held_open(control.replay, NAMESPACE, {dead: news[0]}, "ann") as first:
        second = arena.start(control.replay, NAMESPACE, {dead: news[1]}, "ben")
        arena.wait_until_blocked(second)
    assert (first.result(), second.result(PATIENCE_S)) == ([news[0]], [])
    assert world.executions() == [news[0], dead]
    assert world.dead() == []


def test_a_dead_letter_that_is_being_replayed_is_not_discarded(arena: Arena, world: World) -> None:
    (dead,) = world.fail()
    with arena.held_open(control.replay, NAMESPACE, {dead: world.ids.new()}, "ann"):
        discarded = arena.start(control.discard, NAMESPACE, [dead], "ben")
        arena.wait_until_blocked(discarded)
    assert discarded.result(PATIENCE_S) == 0


# The fleet.


def test_a_rescue_waits_for_a_report_and_rescues_nothing(arena: Arena, world: World) -> None:
    _, attempt = world.start()
    arena.clock.advance(60)
    with arena.held_open(report, attempt.id, Succeeded("1")):
        rescued = arena.start(upkeep.rescue, 10.0)
        arena.wait_until_blocked(rescued)
    assert rescued.result(PATIENCE_S) == Death()
    assert arena.place(attempt.id) == ["success"]
    assert [one.status for one in world.attempts(attempt.id)] == ["success"]


def test_a_report_that_comes_during_a_rescue_is_stale(arena: Arena, world: World) -> None:
    _, attempt = world.start()
    arena.clock.advance(60)
    with arena.held_open(upkeep.rescue, 10.0) as rescued:
        reported = arena.start(report, attempt.id, Succeeded("1"))
        arena.wait_until_blocked(reported)
    assert rescued.result() == Death(1)
    assert reported.result(PATIENCE_S) == [attempt.id]
    assert arena.place(attempt.id) == ["ready"]
    assert world.execution(attempt.id).crashes == 1


def test_two_rescues_do_not_charge_the_same_death_twice(arena: Arena, world: World) -> None:
    _, attempt = world.start()
    arena.clock.advance(60)
    with arena.held_open(upkeep.rescue, 10.0) as first:
        assert world.store.transact(upkeep.rescue, 10.0) == Death()
    assert first.result() == Death(1)
    assert world.execution(attempt.id).crashes == 1


@pytest.mark.parametrize(("op", "crashes"), [(fleet.declare_dead, 1), (fleet.leave, 0)], ids=["dead", "left"])
def test_a_worker_that_leaves_during_a_claim_leaves_no_running_row(
    arena: Arena, world: World, op: Callable[..., object], crashes: int
) -> None:
    id = world.enqueue()
    worker = world.join()
    last_words = ("killed",) if op is fleet.declare_dead else ()
    with arena.held_open(take, worker):
        gone = arena.start(op, worker, *last_words)
        arena.wait_until_blocked(gone)
    gone.result(PATIENCE_S)
    assert arena.place(id) == ["ready"]
    assert (world.execution(id).fence, world.execution(id).crashes) == (1, crashes)


@pytest.mark.parametrize("op", [fleet.declare_dead, fleet.leave], ids=["dead", "left"])
def test_a_worker_that_is_leaving_claims_no_more(arena: Arena, world: World, op: Callable[..., object]) -> None:
    id = world.enqueue()
    worker = world.join()
    last_words = ("killed",) if op is fleet.declare_dead else ()
    with arena.held_open(op, worker, *last_words):
        claimed = arena.start(take, worker)
        arena.wait_until_blocked(claimed)
    with pytest.raises(LeaseLost):
        claimed.result(PATIENCE_S)
    assert arena.place(id) == ["ready"]


def test_a_heartbeat_does_not_wait_for_a_claim(arena: Arena, world: World) -> None:
    world.enqueue()
    worker = world.join()
    with arena.held_open(take, worker):
        assert world.store.transact(fleet.beat, [worker], 10.0) == {worker: "live"}


# Deadlines.


def test_a_start_deadline_is_checked_again_if_the_execution_is_being_promoted(arena: Arena, world: World) -> None:
    id = world.enqueue(delay_s=5, start_within_s=1)
    arena.clock.advance(10)
    with arena.held_open(upkeep.promote):
        expired = arena.start(upkeep.expire)
        arena.wait_until_blocked(expired)
    assert expired.result(PATIENCE_S) == 0
    assert arena.place(id) == ["ready"]
    assert world.store.transact(upkeep.expire) == 1
    assert arena.place(id) == ["skipped"]


def test_an_execution_that_is_being_skipped_is_neither_promoted_nor_claimed(arena: Arena, world: World) -> None:
    delayed, waiting = world.enqueue(delay_s=5, start_within_s=1), world.enqueue(start_within_s=1)
    worker = world.join(lease_s=60)
    arena.clock.advance(10)
    with arena.held_open(upkeep.expire) as expired:
        assert world.promote() == 0
        assert world.claim(worker) == []
    assert expired.result() == 2
    assert (arena.place(delayed), arena.place(waiting)) == (["skipped"], ["skipped"])


def test_two_supervisors_may_check_start_deadlines_at_once(arena: Arena, world: World) -> None:
    id = world.enqueue(start_within_s=1)
    arena.clock.advance(10)
    with arena.held_open(upkeep.expire):
        assert world.store.transact(upkeep.expire) == 0
    assert arena.place(id) == ["skipped"]


# Definitions.


def test_ten_nodes_register_at_once(arena: Arena, world: World) -> None:
    """A rolling deploy: half of them have the new code, and all name their jobs and queues in an order of their own."""
    names = [f"job{number}" for number in range(20)]

    def register(place: int, store: PostgresStore) -> None:
        retry = Fixed(attempts=2 + place % 2).describe()
        definitions = [Definition(name=name, queue=f"q{name}", retry=retry) for name in names]
        queues = [Queue(name=f"q{name}", max_depth=place + 1) for name in names]
        if place % 3:
            definitions.reverse()
            queues.reverse()
        store.transact(define.register, NAMESPACE, APP, definitions, queues)

    arena.all_at_once([partial(register, place, arena.store()) for place in range(10)])
    assert {row.name for row in world.store.read(definition_reader.all_jobs, NAMESPACE)} >= set(names)
    assert {row.name for row in world.store.read(reader.queues, NAMESPACE)} >= {f"q{name}" for name in names}


# Deadlocks.


def test_no_caller_gets_a_deadlock_error(arena: Arena, world: World) -> None:
    """The server ends one of two transactions that wait for each other; its operation is repeated."""
    ids = world.enqueue_many(2)
    world.claim(world.join())
    both_hold_one = threading.Barrier(2)
    tries: list[str] = []

    def lock(tx: Tx, first: str, second: str) -> int:
        tries.append(first)
        tx.records("held", Held, ids=[first])
        if len(tries) <= 2:
            both_hold_one.wait(PATIENCE_S)
        return len(tx.records("held", Held, ids=[second]))

    pair = [arena.start(lock, ids[0], ids[1]), arena.start(lock, ids[1], ids[0])]
    assert [future.result(PATIENCE_S) for future in pair] == [1, 1]
    assert len(tries) > 2


def test_concurrent_reports_rescues_and_cancels_of_the_same_rows_all_succeed(arena: Arena, world: World) -> None:
    ids = world.enqueue_many(40)
    worker = world.join()
    world.claim(worker, 40)
    arena.clock.advance(60)
    outcomes: list[Outcome] = [Succeeded("1"), Failed(ERROR)]
    reports = [Finished(id, 1, outcomes[at % 2]) for at, id in enumerate(ids)]
    calls: list[Callable[[], object]] = [
        partial(arena.store().transact, finish.finish, reports),
        partial(arena.store().transact, finish.finish, reports[::-1]),
        partial(arena.store().transact, upkeep.rescue, 10.0),
        partial(arena.store().transact, fleet.reconcile, worker, [], [(id, 1) for id in ids]),
        *(partial(arena.store().transact, stop, id) for id in ids[:8]),
    ]
    arena.all_at_once(calls)
    for id in ids:
        assert len(arena.place(id)) == 1
        assert len([one for one in world.attempts(id) if one.fence == 1]) == 1
