"""Ends of upstreams, of the job that depends on them, ticks, enqueues and cancels at the same time on PostgreSQL."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from functools import partial

import psycopg
import pytest

from rota.domain.claim import Claim
from rota.domain.outcome import Succeeded
from rota.domain.schedule import Overlap, Spec
from rota.domain.status import PENDING, Status
from rota.domain.trigger import Every
from rota.ops import blockers, control, enqueue, finish, firing, schedule, upkeep
from rota.ops.end_from_outside import Pending
from rota.ops.finish import Finished
from rota.store.dependencies import edges
from rota.store.port import Tx
from tests.store.arena import Arena
from tests.support.proving import sampled
from tests.support.rounds import BOTH, Rounds, depending
from tests.support.world import APP, NAMESPACE, World

Op = Callable[[Tx], object]
ACTIVE = {*PENDING, Status.RUNNING}


@pytest.fixture
def arena() -> Iterator[Arena]:
    with Arena() as arena:
        yield arena
        assert arena.deadlocks() == 0


@pytest.fixture
def rounds(arena: Arena) -> Rounds:
    return Rounds(arena.world)


def ended(tx: Tx, *attempts: Claim) -> list[str]:
    return finish.finish(tx, [Finished(one.id, one.fence, Succeeded("1"), job=one.job) for one in attempts])


def attempt(rounds: Rounds, job: str) -> Claim:
    rounds.world.enqueue(job)
    return rounds.claim(job)


def in_order(one: Op, other: Op, is_first: bool) -> tuple[Op, Op]:
    return (one, other) if is_first else (other, one)


@pytest.mark.parametrize("undo", [False, True], ids=["commits", "rolls back"])
def test_two_upstreams_end_at_once_and_the_job_is_placed_once(arena: Arena, rounds: Rounds, undo: bool) -> None:
    extract, rates = attempt(rounds, "extract"), attempt(rounds, "rates")
    with arena.held_open(ended, extract, undo=undo):
        second = arena.start(ended, rates)
        arena.wait_until_blocked(second)
    second.result()
    if undo:
        assert rounds.placed() == []
        rounds.world.finish(extract)
    assert len(rounds.placed()) == 1
    assert set(rounds.met().values()) == {None}


@pytest.mark.parametrize("first", ["load", "rates"])
def test_the_job_and_its_last_upstream_end_at_once(arena: Arena, rounds: Rounds, first: str) -> None:
    rounds.run("extract")
    rounds.run("rates")
    running = {"load": rounds.claim("load")}
    rounds.run("extract")
    running["rates"] = attempt(rounds, "rates")
    with arena.held_open(ended, running.pop(first)):
        other = arena.start(ended, *running.values())
        arena.wait_until_blocked(other)
    other.result()
    assert len(rounds.placed()) == 2
    assert rounds.world.status(rounds.placed()[1]) is Status.QUEUED


@pytest.mark.parametrize("is_first", [True, False], ids=["enqueue first", "end first"])
def test_an_enqueue_at_the_moment_of_the_last_end(arena: Arena, rounds: Rounds, is_first: bool) -> None:
    rounds.run("extract")
    last = attempt(rounds, "rates")
    mine = partial(enqueue.enqueue, header=rounds.world.header("load"), items=[rounds.world.item()])
    first, second = in_order(mine, lambda tx: ended(tx, last), is_first)
    with arena.held_open(first):
        other = arena.start(second)
        arena.wait_until_blocked(other)
    other.result()
    # The end came after the enqueue, which cleared the other edge; or before it, and both are there.
    assert len(rounds.placed()) == (1 if is_first else 2)
    assert rounds.met() == ({"extract": None, "rates": last.id} if is_first else {"extract": None, "rates": None})


def test_an_enqueue_in_sql_clears_the_edges(arena: Arena, rounds: Rounds) -> None:
    rounds.run("extract")
    with psycopg.connect(arena.url, autocommit=True) as connection:
        connection.execute("SELECT rota.enqueue('load')")
    assert rounds.met() == {"extract": None, "rates": None}
    rounds.run("rates")
    assert len(rounds.placed()) == 1


@pytest.fixture
def tick(rounds: Rounds) -> Op:
    """An operation that fires a tick of the job, which waits for `extract` only."""
    rounds.run("rates")
    spec = Spec(job="load", trigger=Every(60_000_000), overlap=Overlap.SKIP)
    rounds.world.store.transact(schedule.put, NAMESPACE, APP, "load", spec, "test")
    rounds.world.clock.advance(60)
    return lambda tx: firing.fire(tx, upkeep.ALL_SHARDS, rounds.world.ids.many)


@pytest.mark.parametrize("is_first", [True, False], ids=["tick first", "end first"])
def test_a_tick_at_the_moment_of_the_end_that_it_would_wait_for(
    arena: Arena, rounds: Rounds, tick: Op, is_first: bool
) -> None:
    last = attempt(rounds, "extract")
    first, second = in_order(tick, lambda tx: ended(tx, last), is_first)
    with arena.held_open(first):
        other = arena.start(second)
        arena.wait_until_blocked(other)
    other.result()
    (load,) = rounds.placed()
    assert arena.place(load) == ["ready"]
    assert set(rounds.met().values()) == {None}


@pytest.mark.parametrize("undo", [True, False], ids=["cancel fails", "cancelled"])
def test_an_end_at_the_moment_of_a_cancel_of_the_tick(arena: Arena, rounds: Rounds, tick: Op, undo: bool) -> None:
    rounds.world.store.transact(tick)
    (load,) = rounds.placed()
    last = attempt(rounds, "extract")
    with arena.held_open(control.cancel, NAMESPACE, load, "test", undo=undo):
        other = arena.start(ended, last)
        arena.wait_until_blocked(other)
    other.result()
    assert arena.place(load) == ["ready" if undo else "cancelled"]
    assert rounds.met()["extract"] == (None if undo else last.id)


def test_an_end_does_not_wait_for_a_transaction_that_holds_the_tick_and_upkeep_releases_it(
    arena: Arena, rounds: Rounds, tick: Op
) -> None:
    rounds.world.store.transact(tick)
    (load,) = rounds.placed()
    last = attempt(rounds, "extract")
    with arena.held_open(lambda tx: tx.records("pending", Pending, ids=[load])):
        arena.start(ended, last).result()
        assert not rounds.world.store.transact(blockers.release_lifted)
    assert arena.place(load) == ["waiting"]
    assert rounds.world.store.transact(blockers.release_lifted)
    assert arena.place(load) == ["ready"]
    assert not rounds.world.store.transact(blockers.release_lifted)


@pytest.mark.parametrize("seed", sampled(range(10), 1))
def test_a_storm_of_ends_never_runs_a_job_twice_at_once_and_leaves_no_round_behind(arena: Arena, seed: int) -> None:
    """`load` and `report` depend on the same jobs, and `report` on `load`: several rows are locked by every end."""
    rounds = Rounds(arena.world)
    report = depending("report", {"extract": "done", "load": "success", "rates": "done"})
    rounds.deploy(depending("load", BOTH), report)
    jobs = ("extract", "rates")
    for _ in range(30):
        for job in jobs:
            arena.world.enqueue(job)
    left = {job: arena.world.claim(rounds.worker, jobs=[job]) for job in jobs}
    lock = threading.Lock()

    def work(world: World, chance: random.Random) -> None:
        for _ in range(15):
            with lock:
                job = chance.choice(jobs)
                attempts = [left[job].pop() for _ in range(chance.randint(1, 2)) if left[job]]
            if attempts:
                world.store.transact(ended, *attempts)
            for name in ("load", "report"):
                with lock:
                    assert sum(world.status(id) in ACTIVE for id in world.executions(job=name)) <= 1
                    mine = world.claim(rounds.worker, jobs=[name])
                if mine:
                    world.store.transact(ended, *mine)

    worlds = [World(arena.store(), arena.clock) for _ in range(4)]
    arena.all_at_once([partial(work, world, random.Random(f"{seed}/{n}")) for n, world in enumerate(worlds)])
    for job in jobs:
        if left[job]:
            arena.world.store.transact(ended, *left[job])
    # Whatever is left is run to its end: then no job may have all its edges met.
    while mine := arena.world.claim(rounds.worker, jobs=["load", "report"]):
        arena.world.store.transact(ended, *mine)
    for name in ("load", "report"):
        assert None in [edge.met for edge in arena.world.store.read(edges, NAMESPACE) if edge.job == name]
    assert 1 <= len(rounds.placed()) <= 30
