"""The critical path of a run, and what differs between two versions of a workflow: pure functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from rota.domain.workflow.critical_path import Span, critical_path
from rota.domain.workflow.difference import differences
from tests.workflow.graphs import graph

START = datetime(2030, 1, 1, tzinfo=UTC)


def step(id: str, *after: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "job": "j", "after": list(after), **more}


def span(placed_s: float, started_s: float, ended_s: float) -> Span:
    at = [START + timedelta(seconds=one) for one in (placed_s, started_s, ended_s)]
    return Span(*at)


def path(steps: list[dict[str, Any]], **spans: Span) -> list[str]:
    found = graph({"name": "w", "steps": steps})
    numbers = critical_path(found, {found.numbers[name]: one for name, one in spans.items()})
    return [found.steps[number].id for number in numbers]


def test_the_path_goes_through_the_upstream_that_ended_last() -> None:
    diamond = [step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c")]
    times = {"a": span(0, 0, 1), "b": span(1, 1, 2), "c": span(1, 1, 9), "d": span(9, 10, 11)}
    assert path(diamond, **times) == ["a", "c", "d"]


def test_the_path_ends_with_the_step_that_ended_last() -> None:
    """A step without downstream may take longer than the last step of the longest chain."""
    steps = [step("a"), step("b", "a"), step("slow")]
    times = {"a": span(0, 0, 1), "b": span(1, 1, 2), "slow": span(0, 0, 5)}
    assert path(steps, **times) == ["slow"]


def test_an_upstream_that_ended_after_the_start_delayed_nothing() -> None:
    steps = [step("quick"), step("slow"), step("any", "quick", "slow", rule="one_done")]
    times = {"quick": span(0, 0, 1), "slow": span(0, 0, 4), "any": span(1, 1, 5)}
    assert path(steps, **times) == ["quick", "any"]


def test_steps_that_did_not_run_are_on_no_path() -> None:
    steps = [step("kept"), step("a", "kept"), step("blocked", "a")]
    assert path(steps, a=span(0, 0, 1)) == ["a"]
    assert path(steps) == []


def test_differences() -> None:
    old = graph({"name": "w", "timeout": 5, "steps": [step("a"), step("b", "a", may_fail=True), step("gone")]})
    new = graph({"name": "w", "timeout": 6, "steps": [step("a"), step("b", "new", "a"), step("new")], "result": 1})
    found = [(one.kind, one.step, one.field, one.before, one.after) for one in differences(old, new)]
    assert ("changed", None, "timeout", 5, 6) in found
    assert ("added", None, "result", None, 1) in found
    assert [one[:3] for one in found if one[1] == "b"] == [("changed", "b", "after"), ("removed", "b", "may_fail")]
    assert [one[:3] for one in found if one[1] in ("new", "gone")] == [
        ("added", "new", None),
        ("removed", "gone", None),
    ]
    assert differences(old, old) == []
