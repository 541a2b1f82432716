"""Case 3: a crash between any two statements changes nothing, and the run ends as it does without crashes."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from rota.domain.errors import Conflict
from rota.domain.status import Status
from rota.ops.runs import expand, start
from rota.store.port import Store
from tests.support.proving import proof
from tests.support.tables import table
from tests.workflow.stage import Fail, Stage

WIDTH = 45
STATEMENTS = ("run", "rows", "one", "records")


def ref(path: str) -> dict[str, str]:
    return {"$": path}


class Crash(Exception):
    """The process that held the transaction died."""


class Shaky:
    """A store whose process dies before the nth statement, once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.left: int | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def transact(self, op: Callable[..., Any], *args: Any) -> Any:
        @functools.wraps(op)
        def counted(tx: Any, *args: Any) -> Any:
            before = {name: getattr(tx, name) for name in STATEMENTS}
            for name, call in before.items():
                setattr(tx, name, functools.partial(self._count, call))
            try:
                return op(tx, *args)
            finally:
                for name in before:
                    delattr(tx, name)

        return self._store.transact(counted, *args)

    def _count(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                self.left = None
                raise Crash
        return call(*args, **kwargs)


class Ordeal:
    """A stage whose store is shaky: whatever crashes is done again."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.shaky = Shaky(stage.store)
        stage.store = self.shaky  # type: ignore[assignment]
        stage.world.store = self.shaky  # type: ignore[assignment]
        stage.worker  # noqa: B018 -- It joins.

    def insist(self, call: Callable[[], Any]) -> Any:
        while True:
            with contextlib.suppress(Crash):
                return call()

    def work(self, random: Random) -> None:
        self.insist(lambda: self.stage.work(random, most=random.choice([1, 7, 100])))


def unlucky(x: Any = 0, **_: Any) -> Any:
    if x == 3:
        raise Fail("three")
    return x


def declare(stage: Stage) -> None:
    stage.job("unlucky", unlucky)
    stage.workflow(
        "leaf",
        {"id": "m", "job": "unlucky", "map": ref("input.x"), "as": "x", "tolerate": 1, "at_once": 2},
        {"id": "j", "job": "echo", "with": {"x": ref("m")}},
        result=ref("j"),
    )
    stage.workflow(
        "main",
        {"id": "a", "job": "echo", "with": {"x": [[1, 2, 3], [], [3, 4]]}},
        {"id": "each", "workflow": "leaf", "map": ref("a"), "as": "x"},
        {"id": "b", "job": "unlucky", "with": {"x": 3}, "may_fail": True},
        {"id": "c", "job": "echo", "with": {"x": "c"}, "when": [{"failed": "b"}]},
        {"id": "d", "job": "echo", "with": {"x": {"$first": [ref("b"), ref("c")]}}},
        {"id": "z", "job": "echo", "after": ["each", "d"], "rule": "always"},
        result={"each": ref("each"), "d": ref("d")},
    )
    stage.workflow(
        "wide",
        {"id": "m", "job": "echo", "map": list(range(WIDTH)), "as": "x"},
        {"id": "f", "job": "unlucky", "with": {"x": 3}, "after": ["m"]},
        result=ref("m"),
    )
    stage.workflow(
        "twig",
        {"id": "a", "job": "echo", "map": [[ref("input.x"), 1], [ref("input.x"), 2]], "as": "x"},
        {"id": "f", "job": "unlucky", "with": {"x": ref("input.x")}, "after": ["a"]},
    )
    stage.workflow("branch", {"id": "t", "workflow": "twig", "with": {"x": ref("input.x")}})
    stage.workflow("nested", {"id": "m", "workflow": "branch", "map": [3, 4, 3.0], "as": "x", "tolerate": 1})
    stage.job("undo", unlucky, parameters={"x": {"first": True}})
    stage.workflow("part", {"id": "p", "job": "echo", "with": {"x": ref("input.x")}, "undo": "undo"})
    stage.workflow(
        "saga",
        {"id": "a", "job": "echo", "with": {"x": 1}, "undo": "undo"},
        {"id": "m", "job": "echo", "map": list(range(15)), "as": "x", "after": ["a"], "undo": "undo", "at_once": 4},
        {"id": "s", "workflow": "part", "map": [2, 3], "as": "x", "after": ["a"]},
        {"id": "f", "job": "unlucky", "with": {"x": 3}, "after": ["m", "s"], "undo": "undo", "undo_failed": True},
    )

    stage.workflow(
        "sleeper",
        {"id": "nap", "sleep": 60},
        {"id": "e", "job": "echo", "with": {"x": "slept"}, "after": ["nap"]},
        result=ref("e"),
    )
    stage.workflow(
        "waits",
        {"id": "each", "workflow": "sleeper", "map": [{}, {}]},
        {"id": "ok", "approve": {"text": "?", "timeout": "1d"}},
        {"id": "late", "approve": {"text": ref("ok.by"), "timeout": 50}},
        {"id": "bad", "approve": {"text": ref("ok.approved"), "timeout": 50}, "may_fail": True},
        result={"each": ref("each"), "ok": ref("ok.by"), "timed_out": ref("late.timed_out")},
    )


def plain(ordeal: Ordeal, random: Random) -> None:
    id = ordeal.stage.start("main")
    yield_to(ordeal, random)
    assert ordeal.stage.result(id) == {"each": [[1, 2], [], [4]], "d": "c"}


def cancelled(ordeal: Ordeal, random: Random) -> None:
    stage = ordeal.stage
    id = stage.start("main")
    ordeal.insist(lambda: stage.take(2))
    ordeal.insist(lambda: stage.cancel(id))
    yield_to(ordeal, random)
    assert stage.end(id) == ("cancelled", "cancelled")


def waited(ordeal: Ordeal, random: Random) -> None:
    """Sleeps, an answer and an approval without an answer, in sub-runs."""
    stage = ordeal.stage
    id = stage.start("waits")
    ordeal.work(random)
    ordeal.insist(lambda: answer(stage, id))
    for _ in range(2):
        stage.world.clock.advance(60)
        ordeal.work(random)
    yield_to(ordeal, random)
    assert stage.result(id) == {"each": ["slept", "slept"], "ok": "ann", "timed_out": True}


def answer(stage: Stage, id: str) -> None:
    """The answer may have been written although the caller saw a crash."""
    with contextlib.suppress(Conflict):
        stage.answer(id, "ok")


def retried(ordeal: Ordeal, random: Random) -> None:
    stage = ordeal.stage
    id = stage.start("wide")
    ordeal.work(random)
    assert stage.end(id) == ("failed", "step_failed")
    again = ordeal.insist(lambda: stage.retry(id))
    yield_to(ordeal, random)
    assert stage.end(again) == ("failed", "step_failed")
    executions = [row for row in stage.executions("echo") if str(row["run"]) in (id, again)]
    assert len(executions) == WIDTH, "the retry keeps the map"


def sub_retried(ordeal: Ordeal, random: Random) -> None:
    """In two of three sub-runs the last step fails, also in the retry, which keeps their other steps."""
    stage = ordeal.stage
    id = stage.start("nested")
    ordeal.work(random)
    assert stage.end(id) == ("failed", "step_failed")
    again = ordeal.insist(lambda: stage.retry(id))
    yield_to(ordeal, random)
    assert stage.end(again) == ("failed", "step_failed")
    roots = {str(row["id"]): str(row["root"]) for row in table(stage.store, "run_ended")}
    executions = [row for row in stage.executions("echo") if row["run"] and roots[str(row["run"])] in (id, again)]
    items = Counter((row["arguments"], row["status"]) for row in executions)
    assert {count for (_, status), count in items.items() if status == "success"} == {1}


def undone(ordeal: Ordeal, random: Random) -> None:
    """Two undos fail for good: that of an item, and one in a sub-run. A retry repeats these, and fails again."""
    stage = ordeal.stage
    id = stage.start("saga")
    ordeal.work(random)
    assert stage.end(id) == ("failed", "undo_failed")
    stage.started.clear()
    again = ordeal.insist(lambda: stage.retry(id))
    yield_to(ordeal, random)
    assert stage.end(again) == ("failed", "undo_failed")
    runs = {str(row["id"]): str(row["root"]) for row in table(stage.store, "run_ended")}
    undos = [row["arguments"] for row in stage.executions("undo") if runs[str(row["run"])] == id]
    assert len(undos) == 1 + 15 + 2 + 1
    assert len([row for row in stage.executions("undo") if runs[str(row["run"])] == again]) == 2


def yield_to(ordeal: Ordeal, random: Random) -> None:
    ordeal.work(random)
    assert ordeal.stage.held == []


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The expander has work to do for a map of a few items."""
    monkeypatch.setattr(start, "AT_FIRST", 10)
    monkeypatch.setattr(expand, "CHUNK", 10)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("step", [151, proof(3)])
@pytest.mark.parametrize(
    "scene", [plain, cancelled, retried, sub_retried, waited, undone], ids=lambda scene: scene.__name__
)
def test_case_3_a_crash_before_every_statement(
    stage: Stage, scene: Callable[[Ordeal, Random], None], step: int
) -> None:
    declare(stage)
    ordeal = Ordeal(stage)
    for nth in range(1, 100_000, step):
        ordeal.shaky.left = nth
        try:
            scene(ordeal, Random(nth))
        except Crash:
            # The enqueue itself: nothing has been accepted.
            continue
        if ordeal.shaky.left is not None:
            break
    assert nth > 60, "too short to mean anything"
    ordeal.shaky.left = None
    assert stage.world.status(stage.start("echo")) == Status.QUEUED
    stage.work()
    stage.check()
