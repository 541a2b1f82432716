"""Statistics: each execution is counted once, whatever becomes of it, and folding changes no number."""

from __future__ import annotations

import threading

import pytest

from rota.clock import ManualClock
from rota.domain.outcome import Succeeded
from rota.domain.requirement import Offers
from rota.domain.statistics import Label, Metric
from rota.ops import finish, fleet, statistics, upkeep
from rota.ops.finish import Finished
from rota.store.port import Store
from tests.support.statistics import check, counted, fold_all, lately
from tests.support.tables import table
from tests.support.world import APP, FAILED, THREE_TRIES, Boom, World, boom_after
from tests.workflow.stage import Fail, Stage

MINUTE_S = 60


def values(world: World, metric: Metric, by: tuple[Label, ...] = (), namespace: str = "default") -> list[object]:
    """The values of all points that have one, of all series."""
    found = lately(world.store, metric, by=by, namespace=namespace)
    return [value for series in found for _, value in series.points if value]


def test_every_way_to_end_is_counted_once(world: World) -> None:
    world.enqueue_many(5)
    worker = world.join()
    first, second, third, fourth, _ = world.claim(worker)
    world.store.transact(finish.finish, [Finished(one.id, one.fence, Succeeded("1")) for one in (first, second)])
    world.finish(third, FAILED)
    world.cancel(fourth.id)
    world.finish(fourth, FAILED)
    world.store.transact(fleet.declare_dead, worker, "killed")
    queued, later, late = (
        world.enqueue("count"),
        world.enqueue("count", delay_s=60),
        world.enqueue("receive", start_within_s=5),
    )
    world.cancel(queued)
    world.cancel(later)
    world.clock.advance(6)
    world.store.transact(upkeep.expire)
    assert world.status(late) == "skipped"
    assert counted(world.store) == {
        (APP, "send", "created"): 5,
        (APP, "send", "success"): 2,
        (APP, "send", "failed"): 1,
        (APP, "send", "cancelled"): 1,
        (APP, "count", "created"): 2,
        (APP, "count", "cancelled"): 2,
        (APP, "receive", "created"): 1,
        (APP, "receive", "skipped"): 1,
    }
    check(world.store)


def test_retries_are_counted_and_their_execution_once(world: World) -> None:
    world.enqueue()
    worker = world.join(lease_s=1000)
    (attempt,) = world.claim(worker)
    for _ in range(2):
        world.finish(attempt, FAILED, THREE_TRIES)
        world.clock.advance(30)
        world.promote()
        (attempt,) = world.claim(worker)
    world.finish(attempt, FAILED, THREE_TRIES)
    assert counted(world.store)[APP, "send", "retries"] == 2
    assert counted(world.store)[APP, "send", "failed"] == 1
    check(world.store)


def test_stale_and_repeated_reports_are_not_counted(world: World) -> None:
    _, attempt = world.start()
    report = Finished(attempt.id, attempt.fence, Succeeded("1"))
    assert world.store.transact(finish.finish, [report, report]) == [attempt.id]
    assert world.store.transact(finish.finish, [report]) == [attempt.id]
    world.finish(attempt, FAILED)
    repeated = Finished(attempt.id, attempt.fence, Succeeded("1"), written="1")
    assert world.store.transact(finish.finish, [repeated]) == [attempt.id]
    assert counted(world.store)[APP, "send", "success"] == 1
    check(world.store)


def test_an_operation_that_fails_counts_nothing(world: World) -> None:
    _, attempt = world.start()
    before = counted(world.store)
    with pytest.raises(Boom):
        world.store.transact(boom_after, finish.finish, [Finished(attempt.id, attempt.fence, Succeeded("1"))])
    assert counted(world.store) == before


def test_the_steps_of_runs_are_counted_and_their_waits_are_not(world: World) -> None:
    stage = Stage(world)
    stage.job("work", lambda **_: 1)
    stage.job("break", _fail)
    stage.workflow(
        "flow",
        {"id": "a", "job": "work"},
        {"id": "pause", "sleep": 5, "after": ["a"]},
        {"id": "m", "job": "work", "map": [1, 2, 3], "as": "n", "after": ["pause"]},
        {"id": "b", "job": "break", "after": ["m"]},
        {"id": "c", "job": "work", "after": ["b"]},
    )
    stage.start("flow")
    cancelled = stage.start("flow")
    stage.open(2)
    stage.cancel(cancelled)
    stage.work()
    stage.advance(6)
    stage.work()
    found = counted(world.store)
    assert found[APP, "flow", "created"] == 2
    assert found[APP, "flow", "failed"] == found[APP, "flow", "cancelled"] == 1
    assert found[APP, "break", "failed"] == 1
    check(world.store)


def _fail(**_: object) -> None:
    raise Fail


def test_times_are_of_the_last_attempt_and_of_the_first_start(world: World) -> None:
    world.enqueue()
    world.clock.advance(4)
    worker = world.join()
    (attempt,) = world.claim(worker)
    world.clock.advance(1)
    world.finish(attempt)
    for _ in range(2):
        (run_time,) = values(world, Metric.RUN_TIME_P50)
        (latency,) = values(world, Metric.START_LATENCY_P99)
        assert 0.5 < float(str(run_time)) < 2.1
        assert 2 < float(str(latency)) < 8.4
        assert values(world, Metric.LATENESS_P50) == []
        fold_all(world.store)


def test_the_numbers_of_the_slow_path_are_those_of_the_quick_one(world: World) -> None:
    """A report with more to write than the result is counted by another statement."""
    world.enqueue("send")
    world.enqueue("count")
    world.clock.advance(3)
    worker = world.join()
    attempts = world.claim(worker)
    world.clock.advance(0.2)
    reports = [
        Finished(one.id, one.fence, Succeeded("1"), written=None if one.job == "send" else "1") for one in attempts
    ]
    assert world.store.transact(finish.finish, reports) == []
    for metric in (Metric.SUCCESS, Metric.RUN_TIME_P50, Metric.START_LATENCY_P50):
        one, other = values(world, metric, (Label.JOB,))
        assert one == other, metric


def test_a_fold_that_is_killed_loses_and_doubles_nothing(world: World) -> None:
    for number in range(10):
        world.enqueue_many(number + 1)
        world.clock.advance(MINUTE_S)
    before = counted(world.store)
    assert before[APP, "send", "created"] == 55
    for _ in range(4):
        with pytest.raises(Boom):
            world.store.transact(boom_after, statistics.fold, 3)
        assert counted(world.store) == before
        assert world.store.transact(statistics.fold, 3) > 0
        assert counted(world.store) == before
    assert fold_all(world.store) == 0
    assert counted(world.store) == before
    assert sum(row["created"] for row in table(world.store, "stat")) == 3 * 55, "in minutes, five minutes and hours"


def test_folders_at_once_fold_each_row_once(world: World) -> None:
    for _ in range(60):
        world.enqueue()
    together = threading.Barrier(4)

    def work() -> None:
        together.wait()
        for _ in range(20):
            world.store.transact(statistics.fold, 2)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fold_all(world.store)
    assert counted(world.store)[APP, "send", "created"] == 60


def test_namespaces_do_not_mix(world: World) -> None:
    world.register("send", namespace="other")
    world.enqueue(namespace="other")
    world.enqueue_many(3)
    for _ in range(2):
        assert counted(world.store)[APP, "send", "created"] == 3
        assert counted(world.store, "other") == {(APP, "send", "created"): 1}
        assert counted(world.store, "nowhere") == {}
        fold_all(world.store)


def test_queues_are_sampled_once_a_minute(world: World) -> None:
    world.enqueue_many(3)
    world.join(offers=Offers(pools=("default", "gpu")), lease_s=1000)
    worker = world.join(lease_s=1000)
    world.claim(worker, 1)
    world.clock.advance(30)
    assert world.store.read(statistics.due).is_sample_due
    assert sample(world.store)
    assert not world.store.read(statistics.due).is_sample_due
    assert not sample(world.store), "another supervisor has done so"
    slots = sum(row["concurrency"] for row in table(world.store, "worker"))
    assert values(world, Metric.QUEUED) == values(world, Metric.QUEUED, (Label.QUEUE,)) == [2]
    assert values(world, Metric.OLDEST_AGE) == [30.0]
    assert values(world, Metric.BUSY, (Label.POOL,)) == [1]
    assert values(world, Metric.SLOTS) == values(world, Metric.SLOTS, (Label.QUEUE,)) == [slots]
    assert values(world, Metric.SLOTS, (Label.POOL,)) == [slots, slots // 2]
    assert values(world, Metric.QUEUED, namespace="other") == []
    world.clock.advance(MINUTE_S)
    assert sample(world.store)
    assert values(world, Metric.QUEUED) == [2, 2]


def sample(store: Store) -> bool:
    return store.transact(statistics.write_samples, store.read(statistics.observe))


def kept(world: World) -> list[list[int]]:
    return [sorted(row["step_s"] for row in table(world.store, name)) for name in ("stat", "stat_sample")]


def test_minutes_and_hours_are_kept_for_so_long_and_no_longer(world: World, clock: ManualClock) -> None:
    world.enqueue()
    fold_all(world.store)
    sample(world.store)
    before = kept(world)
    assert (before[0], before[1].count(60), before[1].count(300)) == ([60, 300, 3600], *[before[1].count(3600)] * 2)
    clock.advance(48 * 3600)
    assert world.store.transact(statistics.drop_old, 100) == 0
    clock.advance(2 * 3600)
    assert world.store.transact(statistics.drop_old, 100) > 0
    assert kept(world) == [[3600], [3600] * before[1].count(3600)]
    clock.advance(398 * 24 * 3600 - 3600)
    assert counted(world.store)[APP, "send", "created"] == 1
    clock.advance(24 * 3600)
    world.store.transact(statistics.drop_old, 100)
    assert kept(world) == [[], []]
