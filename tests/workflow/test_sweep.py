"""The sweeper of runs: when it looks at a run, and that it repairs a run whose advance was lost. On both databases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rota.domain.instant import MICROSECONDS
from rota.ops import after_end, upkeep
from rota.ops.runs import sweep as sweeping
from rota.ops.runs.sweep import sweep
from tests.support.tables import table
from tests.workflow.stage import Stage

MINUTE_S, DAY_S = 60, 86_400
ECHO = {"id": "e", "job": "echo"}
NAP = {"id": "nap", "sleep": "30d"}
APPROVAL = {"id": "ok", "approve": {"text": "Release?", "timeout": "30d"}}
SHORT_APPROVAL = {"id": "soon", "approve": {"text": "Release?", "timeout": "1h"}}
EVENT = {"id": "paid", "event": {"names": ["paid"], "timeout": "30d"}}


def opened(stage: Stage, *steps: dict[str, Any]) -> str:
    stage.workflow("flow", *steps)
    id = stage.start("flow")
    stage.open()
    return id


def next_look_s(stage: Stage, run: str) -> float:
    """In how many seconds the sweeper looks at the run."""
    (row,) = [row for row in table(stage.store, "run") if str(row["id"]) == run]
    return float(row["look_at"] - stage.world.clock.now()) / MICROSECONDS


def swept(stage: Stage, seconds: float = 0.0) -> list[str]:
    stage.world.clock.advance(seconds)
    return stage.store.transact(sweep)


# --- When it looks --------------------------------------------------------------------------------


def test_a_run_with_a_job_is_looked_at_less_and_less_often(stage: Stage) -> None:
    id = opened(stage, ECHO, NAP)
    looks = []
    for minute in range(1, 60):
        before = next_look_s(stage, id)
        assert swept(stage, MINUTE_S + 0.5) == []
        looks += [minute] if next_look_s(stage, id) > before else []
    assert looks == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize(
    ("steps", "seconds"),
    [
        ([NAP], 30 * DAY_S + MINUTE_S),
        ([NAP, {"id": "short", "sleep": "10m"}], 11 * MINUTE_S),
        ([APPROVAL], DAY_S),
        ([EVENT, NAP], DAY_S),
        ([SHORT_APPROVAL, NAP], 61 * MINUTE_S),
        ([NAP, ECHO], MINUTE_S),
    ],
)
def test_the_first_look_at_a_run(stage: Stage, steps: Sequence[dict[str, Any]], seconds: float) -> None:
    """A run that only waits is not looked at before a wait should have ended. A job may end at any time."""
    assert next_look_s(stage, opened(stage, *steps)) == seconds


def test_a_run_that_only_waits_is_looked_at_once_after_its_last_change(stage: Stage) -> None:
    """The change that leaves only waits does not know when the earlier waits end. The next look reads it."""
    id = opened(stage, ECHO, NAP)
    stage.work()
    assert (stage.letters(id), next_look_s(stage, id)) == ("so", MINUTE_S)
    assert swept(stage, MINUTE_S) == []
    assert next_look_s(stage, id) == 30 * DAY_S
    assert swept(stage, 29 * DAY_S) == []
    assert next_look_s(stage, id) == DAY_S


def test_a_run_is_looked_at_again_when_its_sub_run_is(stage: Stage) -> None:
    stage.workflow("below", NAP)
    stage.workflow("above", {"id": "sub", "workflow": "below"})
    id = stage.start("above")
    stage.work()
    assert next_look_s(stage, id) == MINUTE_S
    assert swept(stage, MINUTE_S) == []
    assert next_look_s(stage, id) == 30 * DAY_S


def test_a_run_whose_wait_is_overdue_is_looked_at_less_and_less_often(stage: Stage) -> None:
    """As when upkeep has very many waits to end at once."""
    id = opened(stage, NAP)
    assert swept(stage, 30 * DAY_S + MINUTE_S) == []
    assert next_look_s(stage, id) == MINUTE_S
    assert swept(stage, 5 * MINUTE_S) == []
    assert next_look_s(stage, id) == 5 * MINUTE_S


def test_one_transaction_looks_at_few_steps(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "MOST_STEPS", 3)
    stage.workflow("flow", *({**ECHO, "id": f"e{number}"} for number in range(2)))
    runs = [stage.start("flow") for _ in range(5)]
    stage.open(5)
    stage.world.clock.advance(MINUTE_S)
    due = []
    for _ in range(4):
        due.append(sum(next_look_s(stage, id) <= 0 for id in runs))
        assert swept(stage) == []
    assert due == [5, 3, 1, 0]


# --- What it repairs ------------------------------------------------------------------------------


def lose_advances(stage: Stage, monkeypatch: pytest.MonkeyPatch, *acts: Any) -> None:
    """Does these acts, and no run advances by them."""

    def lost(*_: Any) -> list[Any]:
        return []

    with monkeypatch.context() as patched:
        patched.setattr(after_end, "advance_runs", lost)
        for act in acts:
            act()


def test_the_lost_end_of_a_job_is_repaired_after_a_minute(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    id = opened(stage, ECHO)
    (attempt,) = stage.take()
    lose_advances(stage, monkeypatch, lambda: stage.finish(attempt))
    assert swept(stage, MINUTE_S - 1) == []
    assert swept(stage, 1) == [id]
    assert stage.end(id) == ("success", "completed")
    stage.check()


def test_the_lost_end_of_a_sleep_is_repaired_after_a_minute(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    id = opened(stage, NAP, {**ECHO, "after": ["nap"]})
    stage.world.clock.advance(30 * DAY_S)
    lose_advances(stage, monkeypatch, lambda: stage.store.transact(upkeep.expire))
    assert swept(stage, MINUTE_S - 1) == []
    assert swept(stage, 1) == [id]
    stage.work()
    assert stage.end(id) == ("success", "completed")
    stage.check()


def test_a_lost_answer_is_repaired_within_a_day(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    id = opened(stage, APPROVAL)
    lose_advances(stage, monkeypatch, lambda: stage.answer(id))
    assert swept(stage, DAY_S) == [id]
    assert stage.end(id) == ("success", "completed")
    stage.check()


def test_a_lost_end_of_a_map_is_repaired(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The items were counted, but the run was not looked at."""
    id = opened(stage, {"id": "m", "job": "echo", "map": [1, 2, 3], "as": "x"})
    attempts = stage.take()
    with monkeypatch.context() as patched:
        patched.setattr("rota.ops.runs.advance._advance_level", lambda tx, level: [])
        stage.finish(*attempts)
    assert swept(stage, MINUTE_S) == [id]
    assert stage.end(id) == ("success", "completed")
    stage.check()


def test_one_transaction_repairs_one_run_and_leaves_the_others(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The repair walks from its run up to the runs above, and a second walk could lock in the wrong order."""
    stage.workflow("flow", ECHO)
    runs = [stage.start("flow") for _ in range(3)]
    attempts = stage.take()
    lose_advances(stage, monkeypatch, lambda: stage.finish(*attempts))
    stage.world.clock.advance(MINUTE_S)
    assert sorted(swept(stage)[0] for _ in runs) == sorted(runs)
    assert swept(stage) == []
    stage.check()
