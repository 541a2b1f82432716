"""A worker can finish and write notes for only the attempts that it holds: reports about others are stale."""

from __future__ import annotations

import pytest

from rota.domain import payload
from rota.domain.claim import Claim
from rota.domain.note import Piece, State
from rota.domain.outcome import Failed, Outcome, Succeeded
from rota.domain.status import Status
from rota.domain.usage import Usage
from rota.ops import claim, finish, notes
from rota.ops.finish import Finished
from rota.store import notes as kept
from tests.support.world import NAMESPACE, World

PIECE = '[[0,"stdout",["hello"]]]'
FAILED = Failed(payload.error("ValueError", "boom"), permanent=True)


def forged(attempt: Claim) -> list[Finished]:
    """Every way in which a report is written."""
    outcomes: list[Outcome] = [Succeeded('"forged"'), FAILED]
    reports = [Finished(attempt.id, attempt.fence, outcome) for outcome in outcomes]
    reports.append(Finished(attempt.id, attempt.fence, Succeeded('"forged"'), usage=Usage(cpu_s=1.0)))
    reports.append(Finished(attempt.id, attempt.fence, FAILED, written=""))
    return reports


@pytest.mark.parametrize("way", ["finish", "turn"])
def test_a_report_of_an_attempt_that_another_worker_holds_changes_nothing(world: World, way: str) -> None:
    holder, attempt = world.start()
    other = world.join(name="other")
    for report in forged(attempt):
        if way == "finish":
            stale = world.store.transact(finish.finish, [report], other)
        else:
            stale = world.store.transact(claim.finish_and_claim, [report], other, world.served(), 1, []).stale
        assert stale == [attempt.id]
        assert world.status(attempt.id) is Status.RUNNING
    own = Finished(attempt.id, attempt.fence, Succeeded('"own"'))
    assert world.store.transact(finish.finish, [own], holder) == []
    assert world.status(attempt.id) is Status.SUCCESS
    assert [one.worker for one in world.attempts(attempt.id)] == ["w"]


def test_a_report_of_another_workers_attempt_does_not_affect_the_others(world: World) -> None:
    _, foreign = world.start()
    holder, own = world.start()
    reports = [Finished(one.id, one.fence, Succeeded()) for one in (foreign, own)]
    assert world.store.transact(finish.finish, reports, holder) == [foreign.id]
    assert (world.status(foreign.id), world.status(own.id)) == (Status.RUNNING, Status.SUCCESS)


def test_a_worker_writes_notes_only_for_its_own_attempts(world: World) -> None:
    holder, attempt = world.start()
    other = world.join(name="other")
    line = [Piece(attempt.id, attempt.fence, 1, 1, PIECE)]
    state = [State(attempt.id, attempt.fence, 1, done=1.0, checkpoint='"forged"')]
    assert world.store.transact(notes.write, line, state, other) == [attempt.id]
    assert world.store.read(kept.state, NAMESPACE, attempt.id) is None
    assert _pieces(world, attempt.id) == 0
    assert world.store.transact(notes.write, line, state, holder) == []
    assert _pieces(world, attempt.id) == 1
    # The last lines are written after the end of the attempt.
    world.finish(attempt)
    last = [Piece(attempt.id, attempt.fence, 2, 2, PIECE)]
    world.store.transact(notes.write, last, [], other)
    assert _pieces(world, attempt.id) == 1
    world.store.transact(notes.write, last, [], holder)
    assert _pieces(world, attempt.id) == 2


def _pieces(world: World, id: str) -> int:
    return len(world.store.read(kept.lines, NAMESPACE, id))
