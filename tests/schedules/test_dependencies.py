"""A job with a schedule that depends on others: its ticks wait for the ends that are missing."""

from __future__ import annotations

from typing import Any

import pytest

from rota.domain.blocker import Kind
from rota.domain.schedule import Overlap, Spec
from rota.domain.status import Reason, Status
from rota.ops import blockers, upkeep
from rota.store.port import Tx
from tests.schedules.timetable import Entry, Timetable, every
from tests.support.rounds import BOTH, Rounds, depending
from tests.support.world import World

MINUTELY = every(60)


@pytest.fixture
def rounds(world: World) -> Rounds:
    return Rounds(world)


def put(table: Timetable, overlap: Overlap = Overlap.SKIP, **options: Any) -> None:
    table.put(MINUTELY, job="load", overlap=overlap, **options)


def test_ends_alone_do_not_start_it_and_a_tick_takes_them(table: Timetable, rounds: Rounds) -> None:
    put(table)
    extract, rates = rounds.run("extract"), rounds.run("rates")
    assert rounds.placed() == []
    table.go_to(60)
    attempt = rounds.claim("load")
    assert attempt.upstream == f'{{"extract":"{extract}","rates":"{rates}"}}'
    assert set(rounds.met().values()) == {None}
    rounds.world.finish(attempt)
    table.go_to(120)
    (_, second) = rounds.placed()
    assert rounds.world.status(second) is Status.WAITING


def test_a_tick_waits_for_what_is_missing(table: Timetable, rounds: Rounds) -> None:
    put(table)
    rates = rounds.run("rates")
    table.go_to(60)
    (load,) = rounds.placed()
    assert rounds.world.status(load) is Status.WAITING
    assert rounds.world.execution(load).reason == "dependency"
    assert rounds.world.why(load) == "waits for a success of job shop.extract"
    rounds.run("rates")
    assert rounds.world.status(load) is Status.WAITING
    extract = rounds.run("extract")
    attempt = rounds.claim("load")
    assert attempt.id == load
    assert attempt.upstream == f'{{"extract":"{extract}","rates":"{rates}"}}'
    # The end that released the tick is used; the second end of `rates` counts for the next tick.
    assert rounds.met()["extract"] is None
    assert rounds.met()["rates"] is not None


def test_the_words_name_every_missing_end(table: Timetable, world: World) -> None:
    rounds = Rounds(world, {"extract": "failed", "rates": "done"})
    put(table)
    table.go_to(60)
    (load,) = rounds.placed()
    assert world.why(load) == "waits for a failure of job shop.extract and the end of job shop.rates"


def test_a_waiting_tick_counts_for_the_overlap(table: Timetable, rounds: Rounds) -> None:
    put(table)
    table.visit(60, 120)
    assert table.ledger() == [Entry(60, "fired"), Entry(120, "overlap")]
    assert len(rounds.placed()) == 1


def test_a_waiting_tick_is_skipped_after_its_start_deadline(table: Timetable, rounds: Rounds) -> None:
    put(table, start_within_s=30.0)
    rounds.run("rates")
    table.go_to(60)
    (load,) = rounds.placed()
    rounds.world.clock.advance(31)
    assert rounds.world.store.transact(upkeep.expire)
    assert rounds.world.status(load) is Status.SKIPPED
    rounds.run("extract")
    assert [rounds.world.status(id) for id in rounds.placed()] == [Status.SKIPPED]
    assert rounds.met()["extract"] is not None


def test_the_next_tick_replaces_one_that_waits(table: Timetable, rounds: Rounds) -> None:
    put(table, Overlap.CANCEL_PREVIOUS)
    table.visit(60, 120)
    first, second = rounds.placed()
    assert rounds.world.execution(first).reason == Reason.REPLACED
    assert rounds.world.status(second) is Status.WAITING
    rounds.run("extract")
    rounds.run("rates")
    assert rounds.world.status(second) is Status.QUEUED


def test_an_end_releases_one_of_several_ticks_the_oldest_first(table: Timetable, rounds: Rounds) -> None:
    put(table, Overlap.ALLOW)
    rounds.world.clock.advance(1)
    table.visit(60, 120)
    first, second = rounds.placed()
    rounds.run("extract")
    rounds.run("rates")
    assert (rounds.world.status(first), rounds.world.status(second)) == (Status.QUEUED, Status.WAITING)
    rounds.run("rates")
    rounds.run("extract")
    assert rounds.world.status(second) is Status.QUEUED


def test_an_enqueue_leaves_the_blockers_of_a_tick(table: Timetable, rounds: Rounds) -> None:
    put(table)
    rounds.run("rates")
    table.go_to(60)
    (tick,) = rounds.placed()
    rounds.run("rates")
    mine = rounds.world.enqueue("load")
    assert rounds.met() == {"extract": None, "rates": None}
    assert rounds.claim("load").id == mine
    assert rounds.world.status(tick) is Status.WAITING
    rounds.run("extract")
    assert rounds.world.status(tick) is Status.QUEUED


def test_a_backfill_waits_for_nothing_and_takes_nothing(table: Timetable, rounds: Rounds) -> None:
    put(table)
    rounds.run("rates")
    table.pause()
    table.go_to(300)
    table.resume()
    assert table.backfill(60, 120).started == 2
    assert {rounds.world.status(id) for id in rounds.placed()} == {Status.QUEUED}
    assert rounds.met()["rates"] is not None


def test_a_paused_schedule_keeps_what_is_met(table: Timetable, rounds: Rounds) -> None:
    put(table)
    table.pause()
    rounds.run("extract")
    rounds.run("rates")
    assert rounds.placed() == []
    table.resume()
    rounds.world.clock.advance(60)
    table.fire()
    assert rounds.world.status(rounds.placed()[0]) is Status.QUEUED


def test_a_tick_that_is_held_by_another_transaction_is_released_by_upkeep(
    table: Timetable, rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(table)
    rounds.run("rates")
    table.go_to(60)
    (load,) = rounds.placed()
    with monkeypatch.context() as patch:
        patch.setattr(blockers, "release_first", lambda tx, kind, key: _lifted(tx, key))
        rounds.run("extract")
    assert rounds.world.status(load) is Status.WAITING
    assert rounds.world.store.transact(blockers.release_lifted)
    assert rounds.world.status(load) is Status.QUEUED
    assert not rounds.world.store.transact(blockers.release_lifted)


def _lifted(tx: Tx, key: str) -> None:
    tx.run("lift_blocker", kind=Kind.DEPENDENCY, key=key)


@pytest.mark.parametrize("is_scheduled", [True, False])
def test_a_deploy_that_removes_an_edge_releases_the_ticks_behind_it(
    table: Timetable, rounds: Rounds, is_scheduled: bool
) -> None:
    deploy_with(rounds, BOTH, is_scheduled=True)
    rounds.run("rates")
    table.go_to(60)
    (load,) = rounds.placed()
    deploy_with(rounds, {"rates": "success"}, is_scheduled=is_scheduled)
    assert rounds.world.status(load) is Status.QUEUED
    assert rounds.placed() == [load]


def test_a_deploy_that_removes_the_schedule_starts_a_complete_round(rounds: Rounds) -> None:
    deploy_with(rounds, BOTH, is_scheduled=True)
    rounds.run("extract")
    rounds.run("rates")
    assert rounds.placed() == []
    deploy_with(rounds, BOTH, is_scheduled=False)
    assert len(rounds.placed()) == 1


def test_a_deploy_that_adds_a_schedule_starts_nothing(rounds: Rounds) -> None:
    deploy_with(rounds, BOTH, is_scheduled=False)
    rounds.run("extract")
    deploy_with(rounds, {"extract": "success"}, is_scheduled=True)
    assert rounds.placed() == []


def deploy_with(rounds: Rounds, upstreams: dict[str, str], *, is_scheduled: bool) -> None:
    schedules = {"load": Spec(job="load", trigger=MINUTELY)} if is_scheduled else {}
    rounds.deploy(depending("load", upstreams), schedules=schedules)
