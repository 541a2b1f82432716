"""Pruning by rows: what is deleted, what is kept, and the statistics. The same on every store."""

from __future__ import annotations

import contextlib
from collections import Counter

import pytest

from rota.domain import retention as domain
from rota.domain.errors import DefinitionError, NotUnique, UnknownExecution
from rota.domain.status import Status
from rota.domain.unique import Unique
from rota.ops import control, fleet, notes, retention, upkeep
from rota.store import reader, retention_reader
from rota.views import execution as executions
from tests.notes import telling
from tests.retention.passes import DAY_S, begin, ended, finish_all, policy, prune, sweep_through
from tests.support.tables import table
from tests.support.world import FAILED, NAMESPACE, Boom, World, boom_after


def lines_left(world: World, ids: list[str]) -> dict[str, int]:
    """How many lines there are, whether or not there is an execution."""
    left: Counter[str] = Counter()
    for piece in table(world.store, "log"):
        left[str(piece["id"])] += piece["last"] - piece["first"] + 1
    return {id: left[id] for id in ids if id in left}


def test_old_executions_are_deleted_and_their_statistics_are_kept(world: World) -> None:
    old = world.enqueue_many(20)
    finish_all(world, after_s=2)
    world.clock.advance(29 * DAY_S)
    assert prune(world.store) == 0
    recent = world.enqueue_many(5)
    finish_all(world)
    world.clock.advance(2 * DAY_S)
    assert prune(world.store) == 20
    assert world.executions() == sorted(recent, reverse=True)
    with pytest.raises(UnknownExecution):
        world.execution(old[0])
    assert ended(world.store) == {("send", "success"): 25}


def test_dead_letters_and_executions_that_have_not_ended_are_kept(world: World) -> None:
    (dead,) = world.fail()
    queued = world.enqueue()
    later = world.enqueue(delay_s=100 * DAY_S)
    worker = world.join(lease_s=1000 * DAY_S)
    (running,) = world.claim(worker)
    assert running.id == queued
    queued = world.enqueue("receive")
    world.clock.advance(90 * DAY_S)
    assert prune(world.store) == 0
    assert [world.status(id) for id in (dead, later, running.id, queued)] == [
        Status.FAILED,
        Status.SCHEDULED,
        Status.RUNNING,
        Status.QUEUED,
    ]
    assert [letter.id for letter in world.dead()] == [dead]
    world.finish(running)
    world.clock.advance(29 * DAY_S)
    assert prune(world.store) == 0, "it ended a month after it was enqueued, and is kept for a month from then on"
    world.clock.advance(2 * DAY_S)
    assert prune(world.store) == 1
    world.store.transact(control.discard, NAMESPACE, [dead], "test")
    world.clock.advance(DAY_S)
    assert prune(world.store) == 1, "a dead letter that was discarded is history like any other"
    assert ended(world.store) == {("send", "failed"): 1, ("send", "success"): 1}


def test_a_namespace_has_a_retention_of_its_own(world: World) -> None:
    for namespace in ("short", "long", "ever"):
        world.register("send", namespace=namespace)
    world.store.transact(retention.set_retention, "short", 7 * DAY_S, "test")
    world.store.transact(retention.set_retention, "long", 90 * DAY_S, "test")
    world.store.transact(retention.set_retention, "ever", domain.FOREVER, "test")
    names = ("default", "short", "long", "ever")
    for namespace in names:
        world.enqueue(namespace=namespace)
        worker = world.join(namespace=namespace)
        (attempt,) = world.claim(worker, namespace=namespace)
        world.finish(attempt)

    def kept() -> list[str]:
        return [name for name in names if world.store.read(executions.rows, name, reader.Filter()).items]

    world.clock.advance(8 * DAY_S)
    assert (prune(world.store), kept()) == (1, ["default", "long", "ever"])
    world.clock.advance(25 * DAY_S)
    assert (prune(world.store), kept()) == (1, ["long", "ever"])
    world.clock.advance(60 * DAY_S)
    assert (prune(world.store), kept()) == (1, ["ever"])
    world.store.transact(retention.set_retention, "ever", None, "test")
    world.clock.advance(DAY_S)
    assert (prune(world.store), kept()) == (1, [])
    assert world.store.read(retention_reader.retentions) == {
        "default": None,
        "short": 7 * DAY_S,
        "long": 90 * DAY_S,
        "ever": None,
    }


def test_a_retention_of_for_ever_deletes_nothing(world: World) -> None:
    world.enqueue()
    finish_all(world)
    world.clock.advance(10_000 * DAY_S)
    assert prune(world.store, days=0) == 0
    assert len(world.executions()) == 1


def test_an_invalid_retention_is_refused(world: World) -> None:
    with pytest.raises(DefinitionError, match="no namespace 'nowhere'"):
        world.store.transact(retention.set_retention, "nowhere", DAY_S, "test")
    with pytest.raises(DefinitionError, match="an hour at least, not 60 s"):
        world.store.transact(retention.set_retention, NAMESPACE, 60, "test")


def test_logs_and_notes_are_deleted_with_their_executions(world: World) -> None:
    ids = world.enqueue_many(3)
    claims = world.claim(world.join())
    for attempt in claims:
        telling.write(world, telling.some_lines(attempt, 20))
        telling.tell(world, attempt, done=1, checkpoint="1")
    world.finish(claims[0])
    world.finish(claims[1], FAILED)
    world.clock.advance(31 * DAY_S)
    assert prune(world.store) == 1
    assert lines_left(world, ids) == {claims[1].id: 20, claims[2].id: 20}
    assert world.store.read(notes.kept, ids).keys() == {claims[1].id, claims[2].id}
    assert telling.told(world, claims[2].id) == (1, None, None, "1")


def test_keys_are_deleted_with_their_holders(world: World) -> None:
    first = world.accept(key="order-1")
    assert world.accept(key="order-1").id == first.id
    world.enqueue(arguments={"n": 1}, unique=Unique(scope="forever", on_conflict="reject"))
    finish_all(world)
    world.clock.advance(20 * DAY_S)
    prune(world.store)
    assert world.accept(key="order-1").id == first.id
    world.clock.advance(11 * DAY_S)
    assert prune(world.store) == 2
    again = world.accept(key="order-1")
    assert again.created
    with pytest.raises(NotUnique):
        world.enqueue(arguments={"n": 1}, unique=Unique(scope="forever", on_conflict="reject"))


def test_the_key_of_a_dead_letter_is_kept(world: World) -> None:
    (dead,) = world.fail(key="order-1")
    world.clock.advance(60 * DAY_S)
    assert prune(world.store) == 0
    assert world.accept(arguments={"n": 0}, key="order-1").id == dead


def test_many_keys_of_one_instant_are_all_pruned(world: World) -> None:
    for number in range(30):
        world.enqueue(key=f"k{number}")
    finish_all(world)
    world.clock.advance(31 * DAY_S)
    assert prune(world.store, batch=7) == 30
    assert world.accept(key="k29").created


def test_stopped_workers_are_deleted_except_those_that_dead_letters_name(world: World) -> None:
    world.fail()
    world.enqueue()
    finish_all(world)
    live = world.join(lease_s=1000 * DAY_S)
    world.clock.advance(33 * DAY_S)
    prune(world.store)
    rows = world.store.read(reader.workers, NAMESPACE, 0)
    assert [row.state for row in rows] == ["stopped", "live"]
    assert rows[1].id == live
    assert world.attempts(world.dead()[0].id)[0].worker == "w"


def test_the_audit_trail_is_kept_for_a_year(world: World) -> None:
    for _ in range(3):
        world.cancel(world.enqueue())
    world.clock.advance(360 * DAY_S)
    world.cancel(world.enqueue())
    prune(world.store)
    assert len(table(world.store, "audit")) == 4
    world.clock.advance(10 * DAY_S)
    prune(world.store)
    assert len(table(world.store, "audit")) == 1


def test_start_deadlines_are_deleted_with_their_executions(world: World) -> None:
    world.enqueue(start_within_s=900 * DAY_S)
    finish_all(world)
    world.clock.advance(31 * DAY_S)
    assert prune(world.store) == 1
    assert world.store.read(upkeep.look, 1.0).next_deadline is None


def test_a_step_that_fails_changes_nothing(world: World) -> None:
    world.enqueue_many(10)
    finish_all(world)
    world.clock.advance(31 * DAY_S)
    begun = begin(world.store)
    sweep = retention.sweep_all(policy(world.store), begun.mark, begun.begun_at)
    assert sweep is not None
    with contextlib.suppress(Boom):
        world.store.transact(boom_after, retention.prune, begun.begun_at, sweep, sweep.after, 5)
    assert len(world.executions()) == 10
    assert sweep_through(world.store, begun, sweep, 5) == 10
    assert ended(world.store) == {("send", "success"): 10}


def test_one_janitor_prunes_at_a_time_and_another_resumes_after_a_kill(world: World) -> None:
    world.enqueue_many(20)
    finish_all(world)
    world.clock.advance(31 * DAY_S)
    begun = begin(world.store)
    kept = policy(world.store)
    sweep = retention.sweep_all(kept, begun.mark, begun.begun_at)
    assert sweep is not None
    step = world.store.transact(retention.prune, begun.begun_at, sweep, sweep.after, 5)
    assert world.store.transact(retention.begin) is None, "another janitor runs the pass"
    world.clock.advance(600)
    taken = begin(world.store)
    assert (taken.mark, taken.removed) == (step.after, 5)
    with pytest.raises(retention.Overtaken):
        world.store.transact(retention.prune, begun.begun_at, sweep, step.after or "", 5)
    assert len(world.executions()) == 15
    again = retention.sweep_all(kept, taken.mark, taken.begun_at)
    assert again is not None
    assert sweep_through(world.store, taken, again) == 15
    world.store.transact(retention.end, taken.begun_at)
    assert world.store.transact(retention.begin) is None, "it is done for this hour"
    assert ended(world.store) == {("send", "success"): 20}


def test_a_pass_starts_where_the_last_one_ended_and_once_a_day_from_the_start(world: World) -> None:
    world.enqueue_many(3)
    finish_all(world)
    straggler = world.enqueue(delay_s=31 * DAY_S)
    world.clock.advance(31 * DAY_S)
    assert prune(world.store) == 3
    world.promote()
    finish_all(world)
    world.clock.advance(30 * DAY_S - 3600)
    begun = begin(world.store)
    assert begun.mark == ""
    assert begun.full_at == begun.begun_at
    world.store.transact(retention.end, begun.begun_at)
    world.clock.advance(2 * 3600)
    assert prune(world.store) == 1
    assert straggler not in world.executions()


def test_history_that_should_be_gone_is_counted(world: World) -> None:
    def look() -> retention_reader.History:
        return world.store.read(retention_reader.history, 30 * DAY_S, retention.PASS_NAME, 2 * domain.DAY)

    assert look().oldest_at is None
    world.enqueue_many(4)
    finish_all(world, FAILED)
    world.enqueue_many(3)
    finish_all(world)
    assert (look().oldest_at, look().overdue) == (world.clock.now() - 4_000_000, 0)
    world.clock.advance(33 * DAY_S)
    assert look().overdue == 3
    prune(world.store)
    assert (look().overdue, look().last.removed) == (0, 3)
    assert look().last.done_at == world.clock.now()


def test_leaving_workers_are_not_deleted_while_they_hold_executions(world: World) -> None:
    worker, _ = world.start()
    world.clock.advance(1)
    assert world.store.transact(fleet.declare_dead, worker, "test").executions == 1
    world.clock.advance(40 * DAY_S)
    prune(world.store)
    assert world.store.read(reader.workers, NAMESPACE, 0) == []
