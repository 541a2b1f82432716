"""Workers as the database knows them: leases, death, leaving, and claims whose reply was lost."""

from __future__ import annotations

from functools import partial

import pytest

from rota.domain import suspicion
from rota.domain.claim import Claim
from rota.domain.note import State
from rota.domain.outcome import Lost
from rota.domain.status import Reason, Status
from rota.ops import fleet, notes
from rota.ops.fleet import Death
from rota.store import reader
from rota.store.hints import Ready
from rota.store.reader import WorkerRow
from rota.views import worker as views
from tests.support.world import ERROR, NAMESPACE, RecordingBus, World

SECOND = 1_000_000


def row(world: World, worker: int) -> WorkerRow:
    return next(row for row in world.store.read(reader.workers, NAMESPACE, 0) if row.id == worker)


def reconcile(
    world: World, worker: int, named: list[str], suspects: list[tuple[str, int]] | None = None
) -> list[tuple[str, int]]:
    return world.store.transact(fleet.reconcile, worker, named, suspects or [])


def holding(world: World, count: int) -> tuple[int, list[Claim]]:
    world.enqueue_many(count)
    worker = world.join()
    return worker, world.claim(worker, count)


def test_a_worker_that_joins_is_live_with_its_own_lease(world: World) -> None:
    worker = world.join(name="ann", lease_s=10)
    found = row(world, worker)
    assert (found.name, found.state, found.app, found.running, found.stopped_at) == ("ann", "live", "shop", 0, None)
    assert (found.started_at, found.heartbeat_at) == (world.clock.now(), world.clock.now())
    assert found.lease_until == world.clock.now() + 10 * SECOND


def test_a_worker_reports_what_it_cannot_start_until_it_can(world: World) -> None:
    worker, other = world.join(), world.join()
    assert row(world, worker).trouble is None
    world.store.transact(fleet.tell_trouble, worker, {"commands": "no room"})
    assert (row(world, worker).trouble, row(world, other).trouble) == ('{"commands":"no room"}', None)
    world.store.transact(fleet.tell_trouble, worker, {})
    assert row(world, worker).trouble is None


def test_ids_of_workers_are_never_used_again(world: World) -> None:
    seen = set()
    for _ in range(5):
        worker = world.join()
        assert worker not in seen
        seen.add(worker)
        world.store.transact(fleet.leave, worker)


def test_a_heartbeat_renews_the_leases_of_all_it_names(world: World) -> None:
    one, other, third = world.join(), world.join(), world.join()
    world.clock.advance(5)
    assert sorted(world.store.transact(fleet.beat, [one, other], 10)) == [one, other]
    assert row(world, one).lease_until == world.clock.now() + 10 * SECOND
    assert row(world, third).lease_until == world.clock.now() + 5 * SECOND


def test_an_expired_lease_can_be_renewed_until_its_worker_is_declared_dead(world: World) -> None:
    worker, attempts = holding(world, 1)
    world.clock.advance(60)
    assert world.store.transact(fleet.beat, [worker], 10) == {worker: "live"}
    assert world.finish(attempts[0]) == []


def test_dead_and_stopped_workers_cannot_renew_their_lease(world: World) -> None:
    dead, gone, live = world.join(), world.join(), world.join()
    world.store.transact(fleet.declare_dead, dead, "killed")
    world.store.transact(fleet.leave, gone)
    assert world.store.transact(fleet.beat, [dead, gone, live, 999], 10) == {live: "live"}
    assert world.store.transact(fleet.beat, [], 10) == {}


def test_executions_of_a_dead_worker_can_be_claimed_at_once(world: World, bus: RecordingBus) -> None:
    worker, attempts = holding(world, 3)
    bus.hints.clear()
    assert world.store.transact(fleet.declare_dead, worker, "killed by SIGKILL").executions == 3
    assert [type(hint) for hint in bus.hints] == [Ready]
    found = world.execution(attempts[0].id)
    assert (found.status, found.attempts, found.crashes, found.fence) == (Status.QUEUED, 0, 0, 1)
    (kept,) = world.attempts(attempts[0].id)
    assert (kept.status, kept.reason, kept.worker) == ("lost", Reason.SUSPECTED, "w")
    assert "killed by SIGKILL" in (kept.error or "")
    assert row(world, worker).state == "lost"
    again = world.claim(world.join())
    assert [(attempt.id, attempt.fence) for attempt in again] == [(attempt.id, 2) for attempt in attempts]


def test_an_execution_that_was_alone_in_its_worker_is_charged_with_the_crash(world: World) -> None:
    worker, (attempt,) = holding(world, 1)
    world.store.transact(fleet.declare_dead, worker, "killed by SIGKILL")
    assert world.execution(attempt.id).crashes == 1
    assert world.attempts(attempt.id)[0].reason == Reason.CRASHED
    (again,) = world.claim(world.join())
    assert not again.is_suspect, "it ran alone, so it is no suspect"


def test_the_last_started_executions_of_a_crashed_worker_run_alone(world: World) -> None:
    world.enqueue_many(suspicion.LIKELY)
    early = world.join()
    first = world.claim(early)
    world.clock.advance(1)
    world.enqueue_many(suspicion.LIKELY)
    last = world.claim(early)
    world.store.transact(fleet.declare_dead, early, "gone")
    again = {one.id: one.is_suspect for one in world.claim(world.join(), 100)}
    assert {id for id, is_suspect in again.items() if is_suspect} == {one.id for one in last}
    assert {world.execution(one.id).crashes for one in (*first, *last)} == {0}


def test_an_execution_that_was_present_at_three_crashes_runs_alone(world: World) -> None:
    world.enqueue_many(2)
    for times in range(suspicion.ALONE + 1):
        worker = world.join()
        claims = world.claim(worker)
        assert [one.is_suspect for one in claims] == [times >= suspicion.ALONE] * 2
        world.store.transact(partial(fleet.declare_dead, with_supervisor=True), worker, "gone")


def test_executions_that_a_worker_reports_as_lost_together_run_alone(world: World) -> None:
    _, (one, other, crashed) = holding(world, 3)
    for attempt in (one, other):
        world.finish(attempt, Lost(ERROR, shared=True))
    world.finish(crashed, Lost(ERROR))
    again = {claim.id: claim.is_suspect for claim in world.claim(world.join())}
    assert again == {one.id: True, other.id: True, crashed.id: False}
    assert [world.execution(attempt.id).crashes for attempt in (one, other, crashed)] == [0, 0, 1]


def test_a_checkpoint_and_a_suspicion_do_not_overwrite_each_other(world: World) -> None:
    world.enqueue_many(2)
    worker = world.join()
    one, other = world.claim(worker)
    world.store.transact(notes.write, [], [State(one.id, one.fence, 0, checkpoint="7")])
    world.store.transact(fleet.declare_dead, worker, "gone")
    again = {claim.id: claim for claim in world.claim(world.join())}
    assert (again[one.id].checkpoint, again[one.id].is_suspect) == ("7", True)
    assert (again[other.id].checkpoint, again[other.id].is_suspect) == (None, True)
    world.store.transact(notes.write, [], [State(one.id, 2, 0, checkpoint="8")])
    assert world.store.read(notes.kept, [one.id])[one.id] == notes.Kept(one.id, "8", suspicion.ALONE)


def test_a_worker_dies_only_once(world: World) -> None:
    worker, attempts = holding(world, 1)
    assert world.store.transact(fleet.declare_dead, worker, "first").executions == 1
    world.claim(world.join())
    assert world.store.transact(fleet.declare_dead, worker, "second") == Death()
    assert world.execution(attempts[0].id).crashes == 1


def test_thousands_held_by_one_worker_are_all_rescued(world: World) -> None:
    worker, attempts = holding(world, 2500)
    assert world.store.transact(fleet.declare_dead, worker, "killed").executions == 2500
    assert len(world.claim(world.join(), 5000)) == len(attempts)


def test_a_worker_that_leaves_gives_back_its_executions_and_counts_no_attempt(world: World) -> None:
    worker, attempts = holding(world, 2)
    world.store.transact(fleet.leave, worker)
    for attempt in attempts:
        found = world.execution(attempt.id)
        assert (found.status, found.attempts, found.crashes, found.fence) == (Status.QUEUED, 0, 0, 1)
        assert [kept.reason for kept in world.attempts(attempt.id)] == [Reason.DRAINED]
    assert row(world, worker).state == "stopped"
    assert world.finish(attempts[0]) == [attempts[0].id]


def test_a_draining_worker_may_finish_its_executions(world: World) -> None:
    worker, attempts = holding(world, 1)
    world.store.transact(fleet.drain, worker)
    assert row(world, worker).state == "draining"
    assert world.store.transact(fleet.beat, [worker], 10) == {worker: "draining"}
    assert world.finish(attempts[0]) == []


def test_an_execution_that_its_worker_twice_does_not_name_is_given_back(world: World) -> None:
    worker, (known, lost) = holding(world, 2)
    suspects = reconcile(world, worker, [known.id])
    assert suspects == [(lost.id, lost.fence)]
    assert world.status(lost.id) is Status.RUNNING
    assert reconcile(world, worker, [known.id], suspects) == []
    found = world.execution(lost.id)
    assert (found.status, found.attempts, found.crashes) == (Status.QUEUED, 0, 0)
    assert [kept.reason for kept in world.attempts(lost.id)] == [Reason.NOT_HELD]
    assert world.status(known.id) is Status.RUNNING


def test_an_execution_that_its_worker_names_the_second_time_is_kept(world: World) -> None:
    worker, (one, other) = holding(world, 2)
    suspects = reconcile(world, worker, [one.id])
    assert reconcile(world, worker, [one.id, other.id], suspects) == []
    assert world.status(other.id) is Status.RUNNING


def test_a_suspect_that_was_claimed_anew_is_not_given_back_for_its_old_fence(world: World) -> None:
    worker, (attempt,) = holding(world, 1)
    suspects = reconcile(world, worker, [])
    world.store.transact(fleet.reconcile, worker, [], suspects)
    (new,) = world.claim(worker)
    assert reconcile(world, worker, [], suspects) == [(new.id, new.fence)]
    assert world.status(attempt.id) is Status.RUNNING


def test_a_worker_that_names_everything_changes_nothing(world: World) -> None:
    worker, attempts = holding(world, 3)
    ids = [attempt.id for attempt in attempts]
    assert not world.store.read(reader.holds_more, worker, ids)
    assert reconcile(world, worker, [*ids, world.ids.new()]) == []
    assert world.store.read(reader.holds_more, worker, ids[:2])


def test_a_worker_cannot_give_back_executions_of_another(world: World) -> None:
    _, (attempt,) = holding(world, 1)
    other = world.join()
    assert reconcile(world, other, [], [(attempt.id, attempt.fence)]) == []
    assert world.status(attempt.id) is Status.RUNNING


def test_stopped_workers_are_listed_for_a_while(world: World) -> None:
    gone, live = world.join(), world.join()
    world.store.transact(fleet.leave, gone)
    world.clock.advance(60)
    since = world.clock.now()
    assert [worker.id for worker in world.store.read(reader.workers, NAMESPACE, since)] == [live]
    assert [worker.id for worker in world.store.read(reader.workers, NAMESPACE, since - 61 * SECOND)] == [gone, live]


@pytest.mark.parametrize("count", [1, 3])
def test_a_listed_worker_shows_how_many_executions_it_runs(world: World, count: int) -> None:
    worker, _ = holding(world, count)
    assert row(world, worker).running == count


def test_a_worker_notes_how_late_its_last_heartbeats_were(world: World) -> None:
    worker = world.join(lease_s=40)
    for seconds in (10, 11, 20, 35, 200, 10):
        world.clock.advance(seconds)
        world.store.transact(fleet.beat, [worker], 40)
    (row,) = world.store.read(reader.workers, NAMESPACE, 0)
    assert row.beats == "001290"
    for _ in range(50):
        world.clock.advance(10)
        world.store.transact(fleet.beat, [worker], 40)
    (row,) = world.store.read(reader.workers, NAMESPACE, 0)
    assert (row.beats, row.memory) == ("0" * 40, None)
    world.store.transact(fleet.beat, [worker], 40, {worker: 61_000_000})
    world.store.transact(fleet.beat, [worker], 40)
    assert world.store.read(reader.workers, NAMESPACE, 0)[0].memory == 61_000_000


def test_a_worker_that_stops_notes_what_became_of_its_work(world: World) -> None:
    def end(worker: int) -> tuple[int, int, int, str | None]:
        rows = {one.worker_id: one for one in world.store.read(views.workers, NAMESPACE, 0)}
        found = rows[str(worker)].ended
        assert found is not None
        return found.held, found.returned, found.failed, found.cause

    world.enqueue_many(5)
    drained, lost, idle = world.join(), world.join(), world.join()
    world.claim(drained, 2)
    world.claim(lost, 3)
    world.store.transact(fleet.leave, drained)
    world.store.transact(fleet.declare_dead, lost, "killed by signal 9")
    world.store.transact(fleet.leave, idle)
    assert end(drained) == (2, 2, 0, None)
    assert end(lost) == (3, 3, 0, "killed by signal 9")
    assert end(idle) == (0, 0, 0, None)
