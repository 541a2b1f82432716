"""The checker finds violations: a correct history, changed in one point at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from tests.kill import check
from tests.kill.check import Witnesses
from tests.kill.effects import Answer, Effect, Recorded
from tests.kill.evidence import Attempt, Evidence, Execution
from tests.kill.journal import Entry

ID, TICKET = "execution-1", "enqueuer-0-1"
LOST = Attempt(ID, 1, False, "lost", "crashed", 0, 1, 11, 100, 200, None, '{"type": "WorkerLost"}')
WON = Attempt(ID, 2, True, "success", "completed", 1, 1, 12, 300, 400, "2", None)


def effect(fence: int, kind: str, answer: Answer = Answer.COUNTED, pid: int | None = None) -> Recorded:
    return Recorded(Effect(ID, fence, kind, kind == "charge", pid or 10 + fence), answer, 100 + 200 * (fence - 1))


HEALTHY = Witnesses(
    journals=[[Entry(TICKET, True), Entry(TICKET, True, ID)]],
    effects=[effect(1, "start"), effect(2, "start"), effect(2, "charge", Answer.DONE)],
    database=Evidence(
        executions=[Execution(ID, "quick", TICKET)],
        attempts={ID: [LOST, WON]},
        pending={"ready": 0},
        dead=set(),
        live_workers=0,
        integrity="ok",
    ),
)


def test_a_healthy_story_has_no_problems() -> None:
    assert check.problems(HEALTHY) == []
    assert check.unfenced_doubles(HEALTHY) == 1


def with_database(**changes: object) -> Witnesses:
    return replace(HEALTHY, database=replace(HEALTHY.database, **changes))


def with_history(*attempts: Attempt) -> Witnesses:
    return with_database(attempts={ID: list(attempts)})


def with_effects(*more: Recorded) -> Witnesses:
    return replace(HEALTHY, effects=[*HEALTHY.effects, *more])


FAILED = replace(WON, status="failed", reason="retries_exhausted", result=None)
TALES: dict[str, tuple[str, Callable[[], Witnesses]]] = {
    "accepted and lost": ("accepted", lambda: with_database(executions=[], attempts={})),
    "a key without an answer": ("accepted", lambda: replace(HEALTHY, journals=[[Entry(TICKET, True)]])),
    "stored twice": ("stored", lambda: with_database(executions=[*HEALTHY.database.executions] * 2)),
    "a phantom": ("stored", lambda: replace(HEALTHY, journals=[[]])),
    "something left": ("at_rest", lambda: with_database(pending={"ready": 1})),
    "a worker left": ("at_rest", lambda: with_database(live_workers=1)),
    "a damaged file": ("at_rest", lambda: with_database(integrity="row 1 missing from index")),
    "no end": ("ends", lambda: with_history(LOST, replace(WON, final=False))),
    "two ends": ("ends", lambda: with_history(replace(LOST, final=True), WON)),
    "started after its end": ("ends", lambda: with_history(replace(LOST, final=True), replace(WON, final=False))),
    "a dead letter that succeeded": ("ends", lambda: with_database(dead={ID})),
    "a fence used twice": ("history", lambda: with_history(LOST, replace(WON, fence=1))),
    "overlapping leases": ("history", lambda: with_history(LOST, replace(WON, started_at=199))),
    "a crash not counted": ("history", lambda: with_history(LOST, replace(WON, crashes=0))),
    "a strange failure": ("outcomes", lambda: with_history(LOST, replace(WON, error='{"type": "OSError"}'))),
    "a stale outcome committed": ("outcomes", lambda: with_history(LOST, replace(WON, result="1"))),
    "an end that the job cannot have": ("outcomes", lambda: with_history(LOST, FAILED)),
    "a receiver that is wrong": ("receiver", lambda: with_effects(effect(2, "charge", Answer.DONE))),
    "a start that happened twice": ("effects", lambda: with_effects(effect(2, "start"))),
    "an effect of nobody": ("effects", lambda: with_effects(effect(3, "start"))),
    "an effect from elsewhere": ("effects", lambda: with_effects(effect(2, "end", pid=99))),
    "a success without its charge": ("charges", lambda: replace(HEALTHY, effects=HEALTHY.effects[:2])),
    "charged twice": ("charges", lambda: with_effects(effect(2, "charge", Answer.DONE))),
}


@pytest.mark.parametrize("tale", TALES)
def test_a_wrong_story_is_found(tale: str) -> None:
    rule, told = TALES[tale]
    assert rule in {problem.split(":")[0] for problem in check.problems(told())}
