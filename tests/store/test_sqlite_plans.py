"""The rows that a claim reads of a large SQLite database: only as many as it takes."""

from __future__ import annotations

from typing import Any

import pytest

from rota.clock import ManualClock
from rota.domain.served import Served
from rota.ids import FIRST_ID
from rota.ops import claim
from rota.store import event_reader, reader
from rota.store.sqlite.store import SqliteStore
from rota.views import lookup
from tests.support.world import NAMESPACE, World

STEPS = 10
"""Instructions of SQLite's virtual machine between two calls of the handler."""


@pytest.fixture
def world() -> World:
    clock = ManualClock()
    return World(SqliteStore("sqlite://:memory:", clock, inline=True), clock)


def steps(tx: Any, *call: Any) -> int:
    """How many instructions an operation takes, in tens."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    tx._connection.set_progress_handler(tick, STEPS)
    op, *args = call
    op(tx, *args)
    tx._connection.set_progress_handler(None, 0)
    return count


def test_executions_of_other_jobs_at_the_head_of_the_queue_do_not_slow_a_claim(world: World) -> None:
    """The instructions of a claim are counted with one execution of another job ahead, and with thousands."""
    worker, served = world.join(jobs=["send"]), world.served(jobs=["send"])
    costs = []
    for ahead in (1, 5_000):
        world.enqueue_many(ahead, "receive")
        world.clock.advance(1)
        world.enqueue_many(20)
        lanes = world.store.transact(claim.claim, worker, served, 0).lanes
        marks = [(lane, claim.FIRST_RANK, FIRST_ID) for lane in lanes or ()]
        looked_up = world.store.transact(steps, claim.claim, worker, served, 10)
        told = world.store.transact(steps, claim.claim, worker, served, 10, marks)
        look = world.store.read(steps, reader.has_ready, served)
        costs.append((looked_up, told, look))
    assert costs[1] == pytest.approx(costs[0], rel=0.2, abs=5)


def test_an_id_is_found_by_a_part_of_it_without_a_look_at_all_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "NEWEST", 10)
    costs = []
    for count in (20, 5_000):
        id = world.enqueue_many(count)[-1]
        costs.append([world.store.read(steps, lookup.execution_id, NAMESPACE, part) for part in (id, id[:30], id[-8:])])
    assert costs[1] == pytest.approx(costs[0], rel=0.2, abs=5)


def test_what_an_event_has_started_is_read_without_a_look_at_other_executions(world: World) -> None:
    costs = []
    for count in (20, 5_000):
        ids = world.enqueue_many(count)
        gone = ids[-1][:-1] + ("0" if ids[-1][-1] != "0" else "1")
        world.store.transact(_deliver, FIRST_ID, [*ids[-2:], gone] if count == 20 else [])
        costs.append(world.store.read(steps, event_reader.deliveries, FIRST_ID, 10))
    assert len(world.store.read(event_reader.deliveries, FIRST_ID, 10)) == 3
    assert costs[1] <= costs[0], "the first read also prepares the statement"


def _deliver(tx: Any, event: str, executions: list[str]) -> None:
    rows = [(event, execution, execution) for execution in executions]
    tx._connection.executemany("INSERT INTO delivery (event, execution, at, subscriber) VALUES (?, ?, 1, ?)", rows)


def test_claims_from_many_busy_jobs_cost_little_more_than_from_one(world: World) -> None:
    """Fifty jobs whose executions came in turn, all within a second, against one job with as many."""
    jobs = [f"job_{number}" for number in range(50)]
    world.register(*jobs)
    costs = []
    for mixed in (["send"], jobs):
        for _ in range(30):
            for job in mixed:
                world.enqueue_many(50 // len(mixed), job)
            world.clock.advance(0.01)
        worker, served = world.join(jobs=mixed), world.served(jobs=mixed)
        marks: dict[int, claim.Mark] = {}
        cost = 0
        for _ in range(10):
            told = list(marks.values()) or None
            cost += world.store.transact(steps, _claim, worker, served, told, marks)
        costs.append(cost)
    assert costs[1] < 1.4 * costs[0]


def _claim(tx: Any, worker: int, served: Served, told: list[claim.Mark] | None, marks: dict[int, claim.Mark]) -> None:
    """Claims a hundred and keeps the marks, as a dispatcher does."""
    claimed = claim.claim(tx, worker, served, 100, told)
    assert len(claimed.claims) == 100
    for lane in claimed.lanes or ():
        marks[lane] = (lane, claim.FIRST_RANK, FIRST_ID)
    marks.update((mark[0], mark) for mark in claimed.marks)
