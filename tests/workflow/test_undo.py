"""Undoing runs, on both databases: which steps are undone, in which order, and what a retry does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.workflow.stage import Fail, Stage

TAKES = {"x": {"first": True}}


def ref(path: str) -> dict[str, str]:
    return {"$": path}


class Undos:
    """The undos that ran: what each was called with. Those in `broken` fail."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.broken: set[Any] = set()

    def __call__(self, x: Any) -> None:
        if x in self.broken:
            raise Fail(f"cannot undo {x}")
        self.done.append(x)


def fail(**_: Any) -> None:
    raise Fail("boom")


@pytest.fixture
def undos(stage: Stage) -> Undos:
    undos = Undos()
    stage.job("undo", undos, parameters=TAKES)
    stage.job("fail", fail)
    return undos


def test_succeeded_steps_are_undone_in_reverse_order(stage: Stage, undos: Undos) -> None:
    stage.workflow(
        "main",
        {"id": "a", "job": "echo", "with": {"x": "a"}, "undo": "undo"},
        {"id": "b", "job": "echo", "after": ["a"]},
        {"id": "c", "job": "echo", "with": {"x": "c"}, "after": ["b"], "undo": "undo"},
        {"id": "d", "job": "fail", "after": ["c"], "undo": "undo"},
    )
    id = stage.start("main")
    stage.work()
    assert undos.done == ["c", "a"]
    assert stage.end(id) == ("failed", "step_failed")
    stage.check()
