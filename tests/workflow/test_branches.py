"""The analysis of branches against runs: what it says about all runs holds in each of many random ones."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rota.domain.workflow.branches import Branches
from rota.domain.workflow.check import topological
from rota.domain.workflow.graph import Graph
from tests.workflow import graphs
from tests.workflow.oracle import Oracle

RUNS = 30


@given(st.randoms(use_true_random=False))
def test_a_step_that_is_said_to_never_run_never_runs(random: Random) -> None:
    data = graphs.workflow(random)
    never = analysed(graphs.graph(data)).never()
    for _ in range(RUNS if never else 0):
        oracle = Oracle(data["steps"], graphs.endings(random, data), graphs.values(random, data))
        oracle.outcomes()
        assert not [name for name in never if oracle.verdict(oracle.steps[name]) == "runs"]


@given(st.randoms(use_true_random=False))
def test_a_result_that_is_accepted_is_there_in_every_run_that_succeeds(random: Random) -> None:
    data = graphs.workflow(random)
    for step in data["steps"]:
        step["may_fail"] = random.random() < 0.3
    names = [step["id"] for step in data["steps"]]
    chosen = random.sample(names, random.randint(1, min(3, len(names))))
    result: Any = {"$first": [{"$": name} for name in chosen]}
    branches = analysed(graphs.graph(data))
    if branches.never() or list(branches.missing(result)):
        return
    for _ in range(RUNS):
        would = {name: random.choice(["success", "success", "failed"]) for name in names}
        outcomes = Oracle(data["steps"], would, graphs.values(random, data)).outcomes()
        excused = {step["id"] for step in data["steps"] if step["may_fail"]}
        if all(outcomes[name] not in ("failed", "cancelled") or name in excused for name in names):
            assert "success" in [outcomes[name] for name in chosen], (chosen, outcomes)


def analysed(graph: Graph) -> Branches:
    order = topological(graph)
    return Branches(graph, order)
