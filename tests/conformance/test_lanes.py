"""Lanes carry the identity of the job: a worker claims only executions of jobs that it has."""

from __future__ import annotations

import pytest

from rota.domain.claim import Claim
from rota.domain.errors import LeaseLost
from rota.domain.job import Definition
from rota.domain.requirement import Needs, Offers, Room
from rota.ids import FIRST_ID
from rota.ops import claim, define, fleet, job_pauses
from rota.ops.gates.claim_state import Claiming, Group
from rota.store import load_reader, reader
from rota.views.finding import findings
from tests.support.world import APP, LEASE_S, NAMESPACE, RecordingBus, World

OLD, NEW = ["send"], ["send", "receive"]


def ids(claims: list[Claim]) -> list[str]:
    return [one.id for one in claims]


def test_a_worker_without_the_job_claims_nothing_of_it_and_the_other_does_at_once(world: World) -> None:
    ahead = world.enqueue_many(300, "receive")
    world.clock.advance(1)
    x = world.enqueue("send")
    old, new = world.join(jobs=OLD), world.join(jobs=NEW)
    assert ids(world.claim(old, 10, jobs=OLD)) == [x]
    assert ids(world.claim(old, 10, jobs=OLD)) == []
    taken = world.claim(new, 300, jobs=NEW)
    assert sorted(ids(taken)) == sorted(ahead)
    assert {(one.fence, one.attempts) for one in taken} == {(1, 0)}


@pytest.mark.parametrize("marks", [None, []], ids=["looked up", "told"])
def test_a_worker_without_jobs_claims_nothing(world: World, marks: list[claim.Mark] | None) -> None:
    world.enqueue()
    claimed = world.store.transact(claim.claim, world.join(jobs=[]), world.served(jobs=[]), 10, marks)
    assert (claimed.claims, claimed.lanes) == ([], frozenset() if marks is None else None)


def test_the_lanes_of_a_worker_are_those_of_its_jobs_in_its_queues(world: World) -> None:
    world.enqueue("send", queue="mail")
    worker = world.join()

    def lanes(jobs: list[str], queues: list[str] | None = None) -> int:
        found = world.store.transact(claim.claim, worker, world.served(queues, jobs=jobs), 0).lanes
        assert found is not None
        return len(found)

    assert [lanes(OLD), lanes(NEW), lanes(OLD, ["mail"]), lanes(["receive"], ["mail"])] == [2, 3, 1, 0]


def test_no_hint_says_that_there_is_work_for_a_worker_that_lacks_the_job(world: World, bus: RecordingBus) -> None:
    world.enqueue("receive")
    assert not world.store.read(reader.has_ready, world.served(jobs=OLD))
    assert world.store.read(reader.has_ready, world.served(jobs=NEW))
    assert world.store.read(load_reader.needs_of_ready, world.served(jobs=OLD)) == []


def test_rows_of_many_jobs_are_claimed_in_the_order_in_which_they_came(world: World) -> None:
    jobs = [f"job_{number}" for number in range(20)]
    world.register(*jobs)
    came = []
    for number in range(60):
        came.append(world.enqueue(jobs[number * 7 % 20]))
        world.clock.advance(1)
    worker = world.join()
    assert [ids(world.claim(worker, 7)) for _ in range(9)] == [came[start : start + 7] for start in range(0, 63, 7)]


def test_a_claim_fills_all_slots_from_as_many_lanes_as_it_takes(world: World) -> None:
    jobs = [f"job_{number}" for number in range(50)]
    world.register(*jobs)
    for job in jobs:
        world.enqueue_many(2, job)
        world.clock.advance(0.001)
    claimed = world.store.transact(claim.claim, world.join(), world.served(), 100)
    assert len(claimed.claims) == 100
    assert len(claimed.marks) == 50
    marked = world.store.transact(claim.claim, world.join(), world.served(), 10, claimed.marks)
    assert sorted(marked.empty) == sorted(lane for lane, _, _ in claimed.marks)


def busy(world: World) -> list[claim.Mark]:
    """Twenty jobs with three executions each, all within a second, and the marks of a worker that took one of each."""
    jobs = [f"job_{number}" for number in range(20)]
    world.register(*jobs)
    for job in jobs * 4:
        world.enqueue(job)
        world.clock.advance(0.001)
    return world.store.transact(claim.claim, world.join(), world.served(), 20).marks


def test_claims_from_many_busy_jobs_take_every_execution_once(world: World) -> None:
    """Seven slots do not divide the lanes evenly, and the last claims find fewer rows in the first lanes than slots."""
    worker, marks, taken = world.join(), {mark[0]: mark for mark in busy(world)}, []
    while claimed := world.store.transact(claim.claim, worker, world.served(), 7, list(marks.values())).claims:
        taken.append(ids(claimed))
        assert {one.fence for one in claimed} == {1}
        marks |= {one.lane: (one.lane, one.rank, one.id) for one in claimed}
    assert [len(some) for some in taken] == [7] * 8 + [4]
    assert len({id for some in taken for id in some}) == 60


def test_a_claim_that_takes_the_last_rows_of_one_lane_knows_that_it_is_empty(world: World) -> None:
    def behind(*marks: claim.Mark) -> claim.Claimed:
        return world.store.transact(claim.claim, worker, world.served(), 3, marks)

    worker, came = world.join(), []
    for _ in range(9):
        came.append(world.enqueue())
        world.clock.advance(0.001)
    taken = [world.store.transact(claim.claim, worker, world.served(), 3)]
    for _ in range(3):
        taken.append(behind(*(mark for mark in taken[-1].marks if mark[0] == taken[0].claims[0].lane)))
    assert [ids(one.claims) for one in taken] == [came[:3], came[3:6], came[6:], []]
    last = world.enqueue()
    found = behind(*taken[2].marks)
    assert (ids(found.claims), found.empty, found.has_more) == ([last], [found.claims[0].lane], False)


def test_a_worker_that_may_not_claim_gets_nothing_from_many_busy_jobs(world: World) -> None:
    marks, served = busy(world), world.served()
    drains, gone, late, live = (world.join() for _ in range(4))
    world.store.transact(fleet.drain, drains)
    world.store.transact(fleet.leave, gone)
    assert world.store.transact(claim.claim, drains, served, 7, marks).claims == []
    with pytest.raises(LeaseLost):
        world.store.transact(claim.claim, gone, served, 7, marks)
    world.clock.advance(LEASE_S + 1)
    assert world.store.transact(claim.claim, late, served, 7, marks).claims == []
    world.store.transact(fleet.beat, [live], LEASE_S)
    assert len(world.store.transact(claim.claim, live, served, 7, marks).claims) == 7


def test_lane_gates_bound_lanes_without_requirements_for_a_worker_with_offers_of_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documented place for a condition on a worker: its offers switch off the fast path, for this worker only."""

    def never(claiming: Claiming, group: Group) -> None:
        group.limit(0)

    marks, worker = busy(world), world.join(offers=Offers(tags=["a"]))
    assert len(world.store.transact(claim.claim, worker, world.served(), 7, marks).claims) == 7
    monkeypatch.setattr(claim, "LANE_GATES", (*claim.LANE_GATES, never))
    assert world.store.transact(claim.claim, worker, world.served(), 7, marks).claims == []


def test_nothing_is_claimed_from_many_busy_jobs_while_their_queue_is_paused(world: World) -> None:
    marks, worker = busy(world), world.join()
    world.store.transact(define.pause_queue, NAMESPACE, "default", "ann", "")
    assert world.store.transact(claim.claim, worker, world.served(), 7, marks).claims == []
    world.store.transact(define.resume_queue, NAMESPACE, "default", "ann")
    assert len(world.store.transact(claim.claim, worker, world.served(), 7, marks).claims) == 7


def test_the_needs_of_a_job_among_many_busy_ones_are_checked(world: World) -> None:
    world.register(Definition(name="paint", needs=Needs(tags=["gpu"])))
    x = world.enqueue("paint")
    marks, served = busy(world), world.served()
    plain, able = world.join(), world.join(offers=Offers(tags=["gpu"]))
    (lane,) = world.store.transact(claim.claim, able, world.served(jobs=["paint"]), 0).lanes or [0]
    told = [(lane, min(mark[1] for mark in marks) - 1_000, FIRST_ID), *marks]
    first = [world.store.transact(claim.claim, worker, served, 7, told).claims for worker in (plain, able)]
    assert [x in ids(claims) for claims in first] == [False, True]


def test_lanes_with_the_same_needs_share_the_resources(world: World) -> None:
    jobs = [f"job_{number}" for number in range(5)]
    world.register(*(Definition(name=job, needs=Needs(isolated=True)) for job in jobs))
    came = []
    for job in jobs:
        came.append(world.enqueue(job))
        world.clock.advance(1)
    worker = world.join()
    taken = world.store.transact(claim.claim, worker, world.served(), 10, None, Room(isolated=3))
    assert ids(taken.claims) == came[:3]


def test_a_claim_that_left_work_with_other_needs_says_that_there_is_more(world: World) -> None:
    world.register(
        Definition(name="crunch", needs=Needs(isolated=True)), Definition(name="print", needs=Needs(command=True))
    )
    x, y = world.enqueue("crunch"), world.enqueue("print")
    worker, room = world.join(), Room(isolated=4, commands=4)
    first = world.store.transact(claim.claim, worker, world.served(), 10, None, room)
    assert (len(first.claims), first.has_more) == (1, True)
    second = world.store.transact(claim.claim, worker, world.served(), 10, None, room)
    assert (sorted(ids(first.claims + second.claims)), second.has_more) == (sorted([x, y]), False)


def test_an_execution_whose_job_no_worker_has_says_so(world: World) -> None:
    x = world.enqueue("receive")
    assert "no live worker of app shop serves queue default" in world.why(x)
    old = world.join(jobs=OLD)
    assert world.why(x).startswith("no live worker has the job receive: ")
    (found,) = world.store.read(findings, NAMESPACE)
    assert (found.kind, found.subject.kind, found.subject.name, found.affected) == ("no_worker", "job", "receive", 1)
    world.join(jobs=NEW)
    world.store.transact(fleet.leave, old)
    assert world.why(x) == "next in line; waits for a free slot of a worker"
    assert world.store.read(findings, NAMESPACE) == []


def test_a_queue_that_no_worker_serves_is_reported_once_for_all_its_jobs(world: World) -> None:
    world.enqueue("receive")
    world.enqueue_many(2, "send")
    (found,) = world.store.read(findings, NAMESPACE)
    assert (found.kind, found.subject.kind, found.subject.name, found.affected) == ("no_worker", "queue", "default", 3)


def test_the_place_in_the_queue_counts_executions_of_all_jobs(world: World) -> None:
    world.join()
    world.enqueue_many(3, "receive")
    world.clock.advance(1)
    assert world.why(world.enqueue("send")).startswith("queued behind 3;")


def test_a_claim_moves_only_executions_of_the_paused_job_to_waiting(world: World) -> None:
    world.enqueue_many(5, "receive")
    world.clock.advance(1)
    x = world.enqueue("send")
    world.store.transact(job_pauses.pause, NAMESPACE, APP, "receive", "ann")
    worker = world.join()
    assert ids(world.claim(worker, 10)) == [x]
    world.store.transact(job_pauses.resume, NAMESPACE, APP, "receive", "ann")
    assert len(world.claim(worker, 10)) == 5


def test_a_job_that_moves_to_another_queue_leaves_its_old_executions_where_workers_find_them(world: World) -> None:
    x = world.enqueue("send")
    world.store.transact(define.register, NAMESPACE, APP, [Definition(name="send", queue="mail")], [])
    y = world.enqueue("send", queue="mail")
    assert sorted(ids(world.claim(world.join()))) == sorted([x, y])
