"""Ready executions and free slots: both databases count the same."""

from __future__ import annotations

from rota.domain import breaker
from rota.domain import load as figures
from rota.domain.job import Definition
from rota.domain.lifecycle import Rules
from rota.domain.load import Capacity, Lane, Measured, Report, suggested_slots
from rota.domain.requirement import Needs, Offers
from rota.domain.retry import Fixed
from rota.ops import define, fleet
from rota.store import load_reader
from tests.support.world import APP, FAILED, NAMESPACE, World

SECOND = 1_000_000


def report(world: World, target_s: float = 60.0) -> Report:
    return figures.report(world.store.read(load_reader.measure, NAMESPACE), target_s, 10)


def queues(found: Report) -> dict[tuple[str, str], figures.Figures]:
    return {(group.queue, group.pool): group for group in found.groups}


def test_no_slots_are_suggested_without_work_and_workers(world: World) -> None:
    found = report(world).total
    assert (found.ready, found.running, found.slots, found.suggested_slots, found.suggested_workers) == (0,) * 5
    assert (found.oldest_ready_s, found.busy_share, found.run_s) == (None, None, None)


def test_ready_running_and_due_executions_are_counted_by_queue_and_pool(world: World) -> None:
    world.register(Definition(name="crunch", needs=Needs(pool="cpu")))
    world.register("send", app="other", namespace="elsewhere")
    world.enqueue_many(4, queue="mail")
    world.enqueue("crunch", queue="mail")
    world.enqueue(queue="mail", delay_s=30)
    world.enqueue(queue="mail", delay_s=90)
    world.clock.advance(7)
    plain, cpu = world.join(), world.join(offers=Offers(pools=("cpu",)))
    world.claim(plain, 3)
    found = report(world)
    mail, crunch = queues(found)["mail", "default"], queues(found)["mail", "cpu"]
    assert (mail.ready, mail.running, mail.due_soon, mail.oldest_ready_s) == (1, 3, 1, 7.0)
    assert (mail.slots, mail.free_slots, mail.busy_share) == (10, 7, 0.3)
    assert (crunch.ready, crunch.running, crunch.slots, crunch.free_slots) == (1, 0, 10, 10)
    assert (found.total.ready, found.total.running, found.total.slots, found.total.free_slots) == (2, 3, 20, 17)
    assert found.total.busy_share == 0.15
    world.store.transact(fleet.drain, cpu)
    assert queues(report(world))["mail", "cpu"].slots == 0


def test_rates_are_those_of_the_last_minutes(world: World) -> None:
    worker = world.join(lease_s=3600)
    world.enqueue_many(10)
    for attempt in world.claim(worker, 10):
        world.clock.advance(2)
        world.finish(attempt)
    world.clock.advance(figures.WINDOW_S)
    found = report(world).total
    assert (found.arrivals_per_s, found.ended_per_s, found.run_s) == (0.0, 0.0, 11.0)
    world.enqueue_many(30)
    for attempt in world.claim(worker, 6):
        world.finish(attempt)
    found = report(world).total
    assert (found.arrivals_per_s, found.ended_per_s) == (30 / figures.WINDOW_S, 6 / figures.WINDOW_S)
    assert found.run_s == round(110 / 16, 3)


def test_no_slots_are_suggested_for_a_paused_queue(world: World) -> None:
    world.enqueue_many(50, queue="mail")
    assert queues(report(world))["mail", "default"].suggested_slots > 0
    world.store.transact(define.pause_queue, NAMESPACE, "mail", "test", "")
    (group,) = [group for group in report(world).groups if group.queue == "mail"]
    assert (group.paused, group.ready, group.suggested_slots) == (True, 50, 0)


def test_the_needs_of_ready_executions_exclude_those_of_paused_queues(world: World) -> None:
    def needs(names: list[str] | None = None) -> list[str]:
        return sorted(world.store.read(load_reader.needs_of_ready, world.served(names)))

    world.register(Definition(name="crunch", needs=Needs(pool="cpu")))
    assert needs() == []
    world.enqueue_many(2, queue="mail")
    world.enqueue("crunch")
    assert needs() == ["", '{"pool":"cpu"}']
    assert (needs(["mail"]), needs(["nothing"])) == ([""], [])
    world.store.transact(define.pause_queue, NAMESPACE, "mail", "test", "")
    assert needs() == ['{"pool":"cpu"}']


def test_no_slots_are_suggested_for_executions_behind_an_open_breaker(world: World) -> None:
    bank = breaker.breaker("bank", 1, "1h")
    world.register(Definition(name="pay", needs=Needs(breakers=["bank"])))
    world.enqueue_many(5, "pay")
    (attempt,) = world.claim(world.join(), 1)
    assert queues(report(world))["default", "default"].suggested_slots > 1
    world.finish(attempt, FAILED, Rules(retry=Fixed(attempts=1), breakers=(bank,)))
    found = queues(report(world))["default", "default"]
    assert (found.ready, found.suggested_slots) == (4, 0)
    assert world.store.read(load_reader.needs_of_ready, world.served()) == []
    world.enqueue("send")
    assert world.store.read(load_reader.needs_of_ready, world.served()) == [""]
    assert queues(report(world))["default", "default"].suggested_slots == 2


def test_the_suggested_slots_keep_up_and_catch_up() -> None:
    def suggested(target_s: float = 60.0, **counted: float) -> int:
        return suggested_slots([Lane(app=APP, job="send", queue="mail", **counted)], target_s)  # type: ignore[arg-type]

    two_seconds = {"ended": 10, "took": 20 * SECOND}
    assert suggested() == 0
    assert suggested(ready=300, **two_seconds) == 10
    assert suggested(ready=301, **two_seconds) == 11
    assert suggested(ready=300, target_s=600, **two_seconds) == 1
    assert suggested(ready=3, target_s=0.1, **two_seconds) == 3, "no more than one for each that waits"
    assert suggested(arrivals_per_s=4.5, **two_seconds) == 9
    assert suggested(arrivals_per_s=4.5, running=20, **two_seconds) == 20
    assert suggested(arrivals_per_s=4.5, running=20, ready=30, **two_seconds) == 21
    assert suggested(ready=90) == 2, "an unknown run time counts as one second"
    assert suggested(ready=6, running=2, running_for=60 * SECOND) == 2 + 3


def test_a_worker_that_serves_several_groups_counts_in_each_and_once_in_the_total() -> None:
    sends = frozenset({"send"})
    lanes = [Lane(app=APP, job="send", queue=queue, ready=5) for queue in ("mail", "reports")]
    workers = [
        Capacity(app=APP, queues=None, jobs=sends, offers="{}", slots=10, running=4),
        Capacity(app=APP, queues=["mail"], jobs=sends, offers="{}", slots=10, running=12),
        Capacity(app="other", queues=None, jobs=sends, offers="{}", slots=10, running=0),
        Capacity(app=APP, queues=None, jobs=frozenset({"receive"}), offers="{}", slots=10, running=0),
    ]
    found = figures.report(Measured(at=0, lanes=lanes, workers=workers), 60, 10)
    assert [(group.slots, group.free_slots) for group in found.groups] == [(20, 6), (10, 6)]
    assert (found.total.slots, found.total.free_slots) == (20, 6)
    assert (found.total.suggested_slots, found.total.suggested_workers) == (2, 1)
