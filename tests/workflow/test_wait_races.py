"""Waits that end twice at the same time on PostgreSQL: one end counts, and the other caller learns of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rota.domain.errors import Conflict, RotaError
from rota.ops import control, upkeep
from rota.ops.runs import approvals
from rota.ops.runs.approvals import Answer
from rota.ops.runs.tell import tell_steps
from rota.store.port import Tx
from tests.store.arena import Arena
from tests.support.tables import table
from tests.support.waiting import PATIENCE_S
from tests.support.world import NAMESPACE
from tests.workflow.stage import Stage
from tests.workflow.test_races import planted


@pytest.fixture
def arena() -> Iterator[Arena]:
    with Arena() as arena:
        yield arena


@pytest.fixture
def stage(arena: Arena) -> Stage:
    return Stage(arena.world)


def asked(stage: Stage) -> str:
    """A run that waits for an answer."""
    approved = {"is_true": {"$": "ok.approved"}}
    stage.workflow(
        "release",
        {"id": "ok", "approve": {"text": "?", "timeout": 60}},
        {"id": "yes", "job": "echo", "when": [approved]},
        {"id": "no", "job": "echo", "when": [{"not": approved}]},
        result={"$": "ok"},
    )
    id = stage.start("release")
    stage.work()
    return id


def answer(tx: Tx, id: str, approved: bool, by: str) -> str:
    return approvals.answer(tx, NAMESPACE, id, Answer(approved, by, "", "ok"))


def check(stage: Stage, id: str) -> None:
    stage.work()
    assert stage.count("echo") == 1
    assert stage.is_swept()
    stage.check()


@pytest.mark.parametrize("approved", [True, False])
def test_case_22_approve_and_reject_at_once(arena: Arena, stage: Stage, approved: bool) -> None:
    id = asked(stage)
    with arena.held_open(answer, id, approved, "ann"):
        second = arena.start(answer, id, not approved, "bob")
        arena.wait_until_blocked(second)
    with pytest.raises(Conflict, match=f"step ok was {'approved' if approved else 'rejected'} by ann at "):
        second.result(PATIENCE_S)
    check(stage, id)
    assert stage.result(id) == {"approved": approved, "by": "ann", "note": "", "timed_out": False}
    assert len([row for row in table(stage.store, "audit") if row["subject"] == id]) == 1


def test_case_22_an_answer_before_the_timeout_of_the_same_instant(arena: Arena, stage: Stage) -> None:
    id = asked(stage)
    arena.clock.advance(60)
    with arena.held_open(answer, id, True, "ann"):
        late = arena.start(upkeep.expire)
        arena.wait_until_blocked(late)
    late.result(PATIENCE_S)
    check(stage, id)
    assert stage.result(id)["by"] == "ann"


def test_case_22_an_answer_after_the_timeout_of_the_same_instant(arena: Arena, stage: Stage) -> None:
    id = asked(stage)
    arena.clock.advance(60)
    with arena.held_open(upkeep.expire):
        second = arena.start(answer, id, True, "ann")
        arena.wait_until_blocked(second)
    with pytest.raises(Conflict, match="because no answer came in time"):
        second.result(PATIENCE_S)
    check(stage, id)
    assert stage.result(id)["timed_out"]


@pytest.mark.parametrize("first", ["answer", "cancel"])
def test_an_answer_and_a_cancel_at_once(arena: Arena, stage: Stage, first: str) -> None:
    id = asked(stage)
    arena.store().transact(control.cancel, NAMESPACE, id, "test")
    ops: dict[str, tuple[Any, ...]] = {"answer": (answer, id, True, "ann"), "cancel": (tell_steps,)}
    other = ops["cancel" if first == "answer" else "answer"]
    with arena.held_open(*ops[first]):
        second = arena.start(*other)
        arena.wait_until_blocked(second)
    if first == "answer":
        second.result(PATIENCE_S)
    else:
        with pytest.raises(Conflict, match="step ok ended as cancelled"):
            second.result(PATIENCE_S)
    stage.work()
    assert stage.end(id) == ("cancelled", "cancelled")
    assert stage.count("echo") == 0
    assert arena.deadlocks() == 0
    stage.check()


def test_two_waits_of_one_run_end_at_once(arena: Arena, stage: Stage) -> None:
    """The second one waits for the lock of the run, and starts the join."""
    stage.workflow(
        "both",
        {"id": "ok", "approve": {"text": "?", "timeout": "1d"}},
        {"id": "nap", "sleep": 60},
        {"id": "z", "job": "echo", "with": {"x": {"$": "ok.by"}}, "after": ["nap"]},
        result={"$": "z"},
    )
    id = stage.start("both")
    stage.work()
    arena.clock.advance(60)
    with arena.held_open(answer, id, True, "ann"):
        slept = arena.start(upkeep.expire)
        arena.wait_until_blocked(slept)
    slept.result(PATIENCE_S)
    check(stage, id)
    assert stage.result(id) == "ann"


def test_two_nodes_end_different_sleeps(arena: Arena, stage: Stage) -> None:
    stage.workflow("nap", {"id": "nap", "sleep": 60}, {"id": "e", "job": "echo", "after": ["nap"]})
    ids = [stage.start("nap") for _ in range(40)]
    stage.work()
    arena.clock.advance(60)
    stores = [arena.store() for _ in range(4)]
    arena.all_at_once([lambda store=store: store.transact(upkeep.expire) for store in stores])  # type: ignore[misc]
    stage.work()
    assert stage.count("echo") == len(ids)
    assert arena.deadlocks() == 0
    stage.check()


def test_a_planted_bug_is_caught(arena: Arena, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the lock of the waiting row both answers are accepted, or one fails in another way."""
    monkeypatch.setattr("tests.workflow.test_wait_races.PATIENCE_S", 3)
    scene: Callable[..., None] = test_case_22_approve_and_reject_at_once
    with planted("lock_waits", "FOR UPDATE", ""), pytest.raises((AssertionError, TimeoutError, RotaError)):
        scene(arena, stage, True)
