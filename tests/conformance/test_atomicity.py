"""An operation is all or nothing, and does not affect operations that share its commit."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

import pytest

from rota.domain.errors import QueueFull, StoreUnavailable, UnknownJob
from rota.domain.job import Definition, Queue
from rota.domain.outcome import Succeeded
from rota.domain.status import Status
from rota.ops import claim, control, define, enqueue, finish, fleet, submission
from rota.ops.finish import Finished
from rota.store import reader
from rota.store.port import Tx
from rota.store.postgres.store import PostgresStore
from tests.support.world import APP, FAILED, NAMESPACE, Boom, RecordingBus, World, boom_after


class Held:
    """Keeps the store busy, so that what is submitted meanwhile waits together."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._release = threading.Event()
        self._entered = threading.Event()
        # A store that runs everything in the caller's thread has no line to wait in; there the tests run in turn.
        self._has_line = not getattr(world.store, "_inline", False)

    def __enter__(self) -> None:
        if self._has_line:
            self._future: Future[None] = self._world.store.submit(self._hold)
            assert self._entered.wait(30)

    def __exit__(self, *_: object) -> None:
        self._release.set()
        if self._has_line:
            self._future.result(30)

    def _hold(self, tx: Tx) -> None:
        self._entered.set()
        assert self._release.wait(30)


def submit_enqueue(world: World, **options: Any) -> tuple[str, Future[list[submission.Accepted]]]:
    item = world.item()
    return item.id, world.store.submit(enqueue.enqueue, world.header(**options), [item])


def test_an_enqueue_that_fails_half_way_leaves_nothing(world: World, bus: RecordingBus) -> None:
    with pytest.raises(Boom):
        world.store.transact(boom_after, enqueue.enqueue, world.header(queue="new"), [world.item()])
    assert world.executions() == []
    assert "new" not in {row.name for row in world.store.read(reader.queues, NAMESPACE)}
    assert bus.hints == []


def test_a_claim_that_fails_half_way_leaves_everything_queued(world: World) -> None:
    ids, worker = world.enqueue_many(5), world.join()
    with pytest.raises(Boom):
        world.store.transact(boom_after, claim.claim, worker, world.served(), 5)
    assert all(world.status(id) is Status.QUEUED for id in ids)
    assert [attempt.fence for attempt in world.claim(worker)] == [1] * 5


def test_a_finish_that_fails_half_way_leaves_everything_running(world: World, bus: RecordingBus) -> None:
    world.enqueue_many(2)
    attempts = world.claim(world.join())
    reports = [
        Finished(attempts[0].id, 1, Succeeded("1")),
        Finished(attempts[1].id, 1, FAILED),
    ]
    bus.hints.clear()
    with pytest.raises(Boom):
        world.store.transact(boom_after, finish.finish, reports)
    assert all(world.status(attempt.id) is Status.RUNNING for attempt in attempts)
    assert world.dead() == []
    assert bus.hints == []
    assert world.store.transact(finish.finish, reports) == []


def test_a_death_that_fails_half_way_leaves_the_worker_alive(world: World) -> None:
    worker, attempt = world.start()
    with pytest.raises(Boom):
        world.store.transact(boom_after, fleet.declare_dead, worker, "gone")
    assert world.store.transact(fleet.beat, [worker], 10) == {worker: "live"}
    assert world.finish(attempt) == []


def test_a_cancel_or_replay_that_fails_half_way_changes_nothing(world: World) -> None:
    (dead,) = world.fail()
    queued = world.enqueue()
    with pytest.raises(Boom):
        world.store.transact(boom_after, control.cancel, NAMESPACE, queued, "test")
    with pytest.raises(Boom):
        world.store.transact(boom_after, control.replay, NAMESPACE, {dead: world.ids.new()}, "test")
    assert world.status(queued) is Status.QUEUED
    assert [row.id for row in world.dead()] == [dead]
    assert world.executions(status=Status.QUEUED) == [queued]


def test_a_registration_that_fails_half_way_registers_nothing(world: World) -> None:
    with pytest.raises(Boom):
        world.store.transact(boom_after, define.register, NAMESPACE, APP, [Definition(name="new")], [])
    with pytest.raises(UnknownJob):
        world.enqueue("new")


def test_the_store_keeps_working_after_any_exception_of_an_operation(world: World) -> None:
    def bad(tx: Tx, error: BaseException) -> None:
        raise error

    for error in (ValueError("x"), KeyboardInterrupt(), SystemExit(3), GeneratorExit(), RecursionError()):
        with pytest.raises(type(error)):
            world.store.transact(bad, error)
        assert world.status(world.enqueue()) is Status.QUEUED


def test_operations_that_share_a_commit_with_a_failing_one_are_committed(world: World, bus: RecordingBus) -> None:
    with Held(world):
        before, first = submit_enqueue(world)
        failing = world.store.submit(boom_after, enqueue.enqueue, world.header(), [world.item()])
        after, second = submit_enqueue(world)
    assert [first.result(30)[0].id, second.result(30)[0].id] == [before, after]
    assert isinstance(failing.exception(30), Boom)
    assert world.executions() == sorted([before, after], reverse=True)


def test_an_id_used_twice_among_waiting_enqueues_is_refused_once(world: World) -> None:
    item, header = world.item(), world.header()
    with Held(world):
        futures = [world.store.submit(enqueue.enqueue, header, [item]) for _ in range(3)]
        id, other = submit_enqueue(world)
    errors = [future.exception(30) for future in futures]
    assert sorted(error is None for error in errors) == [False, False, True]
    assert other.result(30)[0].id == id
    assert world.executions() == sorted([item.id, id], reverse=True)


def has_several_connections(world: World) -> bool:
    return isinstance(world.store, PostgresStore) and not world.store._inline


def test_operations_that_wait_together_see_each_other_in_order(world: World) -> None:
    if has_several_connections(world):
        pytest.skip("several connections keep no order between calls that wait")
    worker = world.join()
    with Held(world):
        id, accepted = submit_enqueue(world)
        claimed = world.store.submit(claim.claim, worker, world.served(), 10)
        finished = world.store.submit(finish.finish, [Finished(id, 1, Succeeded("1"))])
        cancelled = world.store.submit(control.cancel, NAMESPACE, id, "test")
    assert accepted.result(30)[0].id == id
    assert [attempt.id for attempt in claimed.result(30).claims] == [id]
    assert finished.result(30) == []
    assert cancelled.result(30) is Status.SUCCESS


def test_a_future_is_done_only_when_its_commit_can_be_read(world: World) -> None:
    seen: list[Status] = []
    for _ in range(20):
        id, future = submit_enqueue(world)
        future.result(30)
        seen.append(world.status(id))
    assert seen == [Status.QUEUED] * 20


def test_a_closed_store_refuses_operations_with_a_clear_error(world: World) -> None:
    world.enqueue()
    world.store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        world.enqueue()
    world.store.close()


def test_of_many_waiting_enqueues_only_the_bad_ones_are_refused(world: World) -> None:
    world.register(queues=[Queue(name="small", max_depth=2)])
    with Held(world):
        submitted = [
            submit_enqueue(world, queue="small" if number % 2 else "large", job="sned" if number == 4 else "send")
            for number in range(10)
        ]
    errors = [future.exception(30) for _, future in submitted]
    kinds = [type(error) for error in errors]
    assert kinds.count(UnknownJob) == 1
    # Transactions that run side by side do not see each other's rows, and a limit may be overshot by these.
    assert kinds.count(QueueFull) == 3 or (kinds.count(QueueFull) > 0 and has_several_connections(world))
    accepted = [id for (id, _), error in zip(submitted, errors, strict=True) if error is None]
    assert world.executions() == sorted(accepted, reverse=True)


def test_a_closed_store_refuses_reads_with_a_clear_error(world: World) -> None:
    world.enqueue()
    world.store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        world.executions()
