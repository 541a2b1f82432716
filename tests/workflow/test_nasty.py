"""Cases in which other systems get it wrong. Those about races are in test_races.py, those about crashes in
test_crashes.py, and the simulation loses hints (case 2) and kills workers all the time."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from rota.domain.outcome import Succeeded
from rota.domain.workflow import rules
from rota.ops import claim, upkeep
from tests.support.proving import proof
from tests.support.tables import table
from tests.support.world import RecordingBus
from tests.workflow.stage import Fail, Stage

pytestmark = pytest.mark.parametrize("store", ["sqlite", proof("postgres")], indirect=True)


def ref(path: str) -> dict[str, str]:
    return {"$": path}


def fail(**_: Any) -> None:
    raise Fail("boom")


@pytest.fixture(autouse=True)
def jobs(stage: Stage) -> None:
    stage.job("fail", fail)
    stage.job("echo2", lambda x=None: x)


def test_case_2_the_finisher_dies_before_its_hints(stage: Stage) -> None:
    """Nothing depends on hints: the next claim finds the child."""
    stage.workflow("main", {"id": "a", "job": "echo"}, {"id": "b", "job": "echo", "after": ["a"]})
    before, stage.store.bus = stage.store.bus, Silent()
    id = stage.start("main")
    stage.finish(*stage.take())
    (child,) = stage.take()
    stage.finish(child)
    stage.store.bus = before
    assert stage.end(id) == ("success", "completed")
    assert stage.is_swept()
    stage.check()


class Silent(RecordingBus):
    def send(self, hints: Any) -> None:
        """All hints are lost."""


def test_case_4_a_stale_attempt_of_a_step_that_was_rescued_and_failed(stage: Stage) -> None:
    stage.workflow("main", {"id": "a", "job": "fail"}, {"id": "b", "job": "echo", "after": ["a"]})
    id = stage.start("main")
    stage.take(1, jobs=["main"])
    doomed = stage.world.join(name="doomed")
    served = stage.world.served()
    (old,) = stage.store.transact(claim.claim, doomed, served, 1).claims
    stage.world.clock.advance(60)
    stage.store.transact(upkeep.rescue, 10.0)
    stage.work()
    assert stage.letters(id) == "fb"
    assert stage.report((old, Succeeded("1"))) == [old.id]
    assert (stage.letters(id), stage.end(id)) == ("fb", ("failed", "step_failed"))
    stage.check()


def test_case_8_the_tolerance_is_reached_while_half_of_the_map_is_not_expanded(stage: Stage) -> None:
    stage.workflow(
        "main",
        {"id": "m", "job": "fail", "map": list(range(2000)), "as": "x", "tolerate": "1%"},
        {"id": "j", "job": "echo", "after": ["m"]},
    )
    id = stage.start("main")
    stage.take(1, jobs=["main"])
    first = stage.take(21)
    stage.finish(*first)
    placed = len(stage.executions("fail"))
    while stage.chores():
        pass
    stage.work()
    assert len(stage.executions("fail")) == placed == 500, "no later chunk"
    assert stage.count("fail") == 21
    assert stage.letters(id) == "fb"
    (end,) = [row for row in table(stage.store, "finished") if str(row["id"]) == id]
    assert end["status"] == "failed"
    stage.check()


@pytest.mark.parametrize("rule", sorted(rules.RULES))
def test_case_10_the_order_of_ends_does_not_matter(stage: Stage, rule: str) -> None:
    stage.workflow(
        "main",
        {"id": "t", "job": "echo", "with": {"x": 0}},
        {"id": "skip", "job": "echo2", "when": [{"eq": [ref("t"), 1]}]},
        {"id": "bad", "job": "fail", "may_fail": True},
        {"id": "good", "job": "echo2"},
        {"id": "end", "job": "echo2", "after": ["skip", "bad", "good"], "rule": rule},
    )
    seen = set()
    for order in (
        ["echo", "fail", "echo2"],
        ["fail", "echo", "echo2"],
        ["echo2", "fail", "echo"],
        ["fail", "echo2", "echo"],
    ):
        id = stage.start("main")
        stage.take()
        for job in order:
            stage.finish(*(one for one in stage.held if one.job == job and one.run == id))
        stage.work()
        seen.add(stage.letters(id))
    assert len(seen) == 1
    stage.check()


def test_case_12_a_fallback(stage: Stage) -> None:
    stage.workflow(
        "main",
        {"id": "a", "job": "fail", "may_fail": True},
        {"id": "b", "job": "echo", "with": {"x": "b"}, "when": [{"failed": "a"}]},
        result={"$first": [ref("a"), ref("b")]},
    )
    id = stage.start("main")
    stage.work()
    assert stage.result(id) == "b"
    stage.check()


def test_case_13_a_notifier_does_not_rescue_its_run(stage: Stage) -> None:
    stage.workflow(
        "main", {"id": "load", "job": "fail"}, {"id": "notify", "job": "echo", "after": ["load"], "rule": "one_failed"}
    )
    id = stage.start("main")
    stage.work()
    assert (stage.letters(id), stage.end(id)) == ("fs", ("failed", "step_failed"))
    stage.check()


def test_case_23_a_deploy_changes_the_workflow_under_an_open_run(stage: Stage) -> None:
    """The run keeps its graph; its queue and its version of the jobs are those of its opening."""
    stage.job("second", lambda old: old)
    stage.workflow(
        "main",
        {"id": "a", "job": "echo", "with": {"x": 1}},
        {"id": "b", "job": "second", "with": {"old": ref("a")}},
        result=ref("b"),
    )
    id = stage.start("main")
    stage.take()
    stage.workflow("main", {"id": "other", "job": "echo", "with": {"x": 2}}, result=ref("other"))
    stage.job("second", lambda new: new, queue="slow")
    stage.bodies["second"] = lambda old: ["still", old]
    later = stage.start("main")
    stage.work()
    assert (stage.result(id), stage.result(later)) == (["still", 1], 2)
    assert [row["queue"] for row in stage.executions("second")] == ["default"]
    stage.check()


@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_ends_leads_to_the_same_end(stage: Stage, seed: int) -> None:
    stage.job("odd", lambda x: x if x % 2 else fail())
    stage.workflow(
        "leaf",
        {"id": "m", "job": "odd", "map": [1, 2, 3, 4, 5], "as": "x", "tolerate": "50%", "at_once": 2},
        {"id": "o", "job": "echo", "with": {"x": {"$outcomes": "m"}}, "after": ["m"], "rule": "all_done"},
        result=ref("m"),
    )
    stage.workflow(
        "main",
        {"id": "l", "workflow": "leaf", "map": [1, 2, 3], "as": "x"},
        {"id": "f", "job": "fail", "may_fail": True},
        {"id": "g", "job": "echo", "after": ["f"], "rule": "none_failed"},
        {"id": "h", "job": "echo", "with": {"x": ref("l")}, "after": ["f", "g"], "rule": "all_done"},
        result=ref("h"),
    )
    id = stage.start("main")
    stage.work(Random(seed), most=5)
    assert (stage.letters(id), stage.result(id)) == ("sfbs", [[1, 3, 5]] * 3)
    stage.check()
