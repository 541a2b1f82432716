"""Single decisions about a run, and the reasons that are shown for them."""

from __future__ import annotations

from typing import Any

import pytest

from rota.domain.status import Status
from rota.domain.workflow.advance import advance, must_stop, outcome, why
from rota.domain.workflow.graph import Graph
from rota.domain.workflow.letters import is_over, letter_of, status_of, with_ends
from tests.workflow import graphs
from tests.workflow.oracle import Data


def workflow(*steps: Data, **fields: Any) -> Graph:
    return graphs.graph({"name": "w", "steps": [{"job": "j", **step} for step in steps], **fields})


def no_value(root: str) -> Any:
    raise AssertionError(f"the value of {root} was read")


def values(**of: Any) -> Any:
    return of.__getitem__


A, B = {"id": "a"}, {"id": "b"}


def test_a_run_begins_with_the_steps_that_need_nothing() -> None:
    graph = workflow({"id": "c", "with": {"x": {"$": "a"}}}, A, {"id": "b", "with": {"x": {"$": "input.x"}}})
    begun = advance(graph, "...", no_value)
    assert (begun.letters, begun.start) == (".oo", (1, 2))
    assert not is_over(begun.letters)


def test_a_run_without_steps_is_over() -> None:
    assert advance(workflow(), "", no_value).letters == ""
    assert is_over("")


def test_a_fallback_replaces_a_step_that_may_fail() -> None:
    graph = workflow(
        {"id": "a", "may_fail": True},
        {"id": "b", "when": [{"failed": "a"}]},
        {"id": "c", "with": {"x": {"$first": [{"$": "a"}, {"$": "b"}]}}},
    )
    after_a = advance(graph, "f..", no_value, changed=[0])
    assert after_a.letters == "fo."
    after_b = advance(graph, "fs.", no_value, changed=[1])
    assert after_b.start == (2,)
    assert outcome(graph, "fss") == Status.SUCCESS
    assert advance(graph, "s..", no_value, changed=[0]).letters == "sko", "the branch that was not taken is skipped"


def test_a_notifier_does_not_make_a_failed_run_green() -> None:
    graph = workflow(A, {"id": "tell", "after": ["a"], "rule": "one_failed"})
    assert advance(graph, "f.", no_value, changed=[0]).start == (1,)
    assert outcome(graph, "fs") == Status.FAILED


def test_a_blocked_step_does_not_fail_a_run_whose_failure_is_excused() -> None:
    graph = workflow({"id": "a", "may_fail": True}, {"id": "b", "after": ["a"]})
    assert outcome(graph, advance(graph, "f.", no_value).letters) == Status.SUCCESS


@pytest.mark.parametrize(("letter", "expected"), [("f", "b"), ("c", "b"), ("k", "k")])
def test_both_branches_need_the_value_they_depend_on(letter: str, expected: str) -> None:
    is_large = {"gt": [{"$": "a.n"}, 5]}
    graph = workflow(A, {"id": "b", "when": [is_large]}, {"id": "c", "when": [{"not": is_large}]})
    assert advance(graph, f"{letter}..", no_value).letters == letter + 2 * expected


@pytest.mark.parametrize("value", [{}, {"n": "6"}, {"n": None}, 7])
def test_a_condition_that_cannot_be_judged_fails_both_branches(value: Any) -> None:
    is_large = {"gt": [{"$": "a.n"}, 5]}
    graph = workflow(A, {"id": "b", "when": [is_large]}, {"id": "c", "when": [{"not": is_large}]})
    after = advance(graph, "s..", values(a=value))
    assert after.letters == "sff"
    assert why(graph, after.letters, 1) == "bad_condition"
    assert outcome(graph, after.letters) == Status.FAILED


def test_an_outer_condition_that_is_false_decides_before_the_inner_is_known() -> None:
    graph = workflow(A, B, {"id": "c", "when": [{"failed": "a"}, {"eq": [{"$": "b"}, 1]}]})
    assert advance(graph, "so.", no_value).letters == "sok"
    assert advance(graph, "fo.", no_value).letters == "fo."


def test_a_value_is_read_only_when_a_condition_needs_it() -> None:
    graph = workflow(A, {"id": "b", "with": {"x": {"$": "a.x"}}, "when": [{"is_true": {"$": "input.go"}}]})
    assert advance(graph, "o.", no_value).letters == "o."
    assert advance(graph, "s.", values(input={"go": True})).letters == "so"


def test_the_first_failure_stops_a_run_that_asks_for_it() -> None:
    always = {"id": "clean", "after": ["a", "b"], "rule": "always"}
    graph = workflow(A, B, {"id": "c", "after": ["b"]}, always, on_failure="stop")
    assert must_stop(graph, "fo..")
    assert advance(graph, "fo..", no_value, changed=[0]).letters == "foc."
    assert advance(graph, "fsc.", no_value, changed=[1]).start == (3,)
    assert not must_stop(workflow({"id": "a", "may_fail": True}, on_failure="stop"), "f")
    assert not must_stop(graph, "Fo.."), "a failure that a retry kept does not stop the new run"


def test_a_condition_that_fails_stops_the_run_before_its_siblings_are_placed() -> None:
    broken = {"id": "b", "when": [{"is_true": {"$": "a.n"}}]}
    graph = workflow(A, broken, {"id": "c", "after": ["a"]}, on_failure="stop")
    after = advance(graph, "s..", values(a={}), changed=[0])
    assert (after.letters, after.start) == ("sfc", ())


def test_kept_letters_count_like_others_and_stay() -> None:
    graph = workflow(A, B, {"id": "c", "after": ["a"]}, {"id": "d", "after": ["b"]})
    assert advance(graph, "SK..", no_value).letters == "SKok"
    assert outcome(graph, "FKss") == Status.FAILED


@pytest.mark.parametrize(
    ("step", "letters", "reason"),
    [
        ({"with": {"x": {"$": "a"}}}, "ks", "upstream_skipped"),
        ({"after": ["a"]}, "ks", "upstream_skipped"),
        ({"after": ["a"]}, "fs", "upstream_failed"),
        ({"after": ["a"], "rule": "one_failed"}, "ss", "rule"),
        ({"after": ["a"], "rule": "one_failed"}, "ks", "rule"),
        ({"after": ["a", "b"], "rule": "one_success"}, "kk", "upstream_skipped"),
        ({"after": ["a", "b"], "rule": "none_skipped"}, "fk", "upstream_skipped"),
        ({"after": ["a", "b"], "rule": "all_skipped"}, "sk", "rule"),
        ({"when": [{"failed": "a"}]}, "ss", "condition"),
        ({"when": [{"eq": [{"$": "a"}, 1]}]}, "ss", "condition"),
        ({"when": [{"eq": [{"$": "input.n"}, 1]}]}, "ss", "condition"),
        ({"when": [{"eq": [{"$": "a"}, 1]}]}, "ks", "upstream_skipped"),
        ({"when": [{"failed": "a"}, {"eq": [{"$": "b"}, 1]}]}, "fk", "upstream_skipped"),
    ],
)
def test_reason_of_a_step_that_never_ran(step: Data, letters: str, reason: str) -> None:
    graph = workflow(A, B, {"id": "c", **step})
    after = advance(graph, f"{letters}.", values(a=2, b=2, input={"n": 2}))
    assert after.letters[2] in "kb"
    assert why(graph, after.letters, 2) == reason


def test_the_values_tell_which_of_two_conditions_was_false() -> None:
    graph = workflow(A, B, {"id": "c", "when": [{"eq": [{"$": "a"}, 1]}, {"eq": [{"$": "b"}, 1]}]})
    assert why(graph, "skk", 2) == "condition"
    assert why(graph, "skk", 2, values(a=1)) == "upstream_skipped"


def test_a_step_that_a_stopping_run_cancelled_has_its_reason() -> None:
    assert why(workflow(A), advance(workflow(A), ".", no_value, is_stopping=True).letters, 0) == "run_stopped"


def test_only_open_steps_end() -> None:
    assert with_ends("oso", {0: "f", 2: "s"}) == "fss"
    with pytest.raises(AssertionError, match="step 1 cannot end as 'f': it is 's'"):
        with_ends("oso", {1: "f"})


def test_letters_and_statuses() -> None:
    assert {
        letter_of(status): status_of(letter_of(status).upper()) for status in map(Status, ("success", "failed"))
    } == {
        "s": Status.SUCCESS,
        "f": Status.FAILED,
    }
    assert (status_of("b"), status_of("o"), status_of(".")) == (Status.SKIPPED, None, None)
