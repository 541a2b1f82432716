"""Steps that wait: sleeps, approvals and events. On both databases."""

from __future__ import annotations

from tests.workflow.stage import Stage


def ref(path: str) -> dict[str, str]:
    return {"$": path}


NAP = (
    {"id": "a", "job": "echo", "with": {"x": 1}},
    {"id": "nap", "sleep": "10m", "after": ["a"]},
    {"id": "b", "job": "echo", "with": {"x": ref("a")}, "after": ["nap"]},
)


# --- Sleep ----------------------------------------------------------------------------------------


def test_a_sleep_ends_at_its_time_and_not_before(stage: Stage) -> None:
    stage.workflow("nap", *NAP, result=ref("b"))
    id = stage.start("nap")
    stage.work()
    assert stage.letters(id) == "so."
    stage.advance(599.9)
    assert stage.letters(id) == "so."
    assert stage.is_swept()
    stage.advance(0.2)
    assert stage.result(id) == 1
    stage.check()
