"""Random runs: the outcome of every step is what the oracle says, in whatever order the steps end.

The planted bugs below show that these properties would notice mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from rota.domain.errors import UsageError
from rota.domain.status import Status
from rota.domain.workflow import advance as advancing
from rota.domain.workflow import condition, edges, letters, retry, rules
from rota.domain.workflow.advance import outcome
from rota.domain.workflow.graph import Graph, Step
from rota.domain.workflow.rules import Rule
from rota.domain.workflow.template import TemplateError, Value
from tests.workflow import graphs
from tests.workflow.graphs import Play
from tests.workflow.oracle import Oracle

randoms = st.randoms(use_true_random=False)
Property = Callable[[Random], None]


# --- Properties -----------------------------------------------------------------------------------


def outcomes_are_the_oracles(random: Random) -> None:
    data = graphs.workflow(random)
    would, values = graphs.endings(random, data), graphs.values(random, data)
    expected = Oracle(data["steps"], would, values).outcomes()
    for _ in range(3):
        play = Play(random, data, would, values)
        assert play.to_end() == expected
        unexcused = [step for step in data["steps"] if not step["may_fail"]]
        is_bad = any(expected[step["id"]] in ("failed", "cancelled") for step in unexcused)
        assert outcome(play.graph, play.letters) == (Status.FAILED if is_bad else Status.SUCCESS)


def a_stopping_run_ends(random: Random) -> None:
    """Undecided steps are cancelled, but those with the rule `always` are decided as ever."""
    data = graphs.workflow(random)
    play = Play(random, data, graphs.endings(random, data), graphs.values(random, data))
    undecided: set[str] = set()

    def stop() -> bool:
        if play.is_stopping or random.random() < 0.5:
            return False
        undecided.update(play.name(one) for one, letter in enumerate(play.letters) if letter == ".")
        return True

    outcomes = play.to_end(stop)
    always = {step["id"] for step in data["steps"] if step.get("rule") == "always"}
    assert {outcomes[name] for name in undecided - always} <= {"cancelled"}
    fixed = {name: outcomes[name] for name in outcomes if name not in undecided & always}
    assert outcomes == Oracle(data["steps"], play.would, play.known, fixed).outcomes()


def a_failure_stops_the_run(random: Random) -> None:
    data = graphs.workflow(random, on_failure="stop")
    play = Play(random, data, graphs.endings(random, data), graphs.values(random, data))

    def is_stopped() -> bool:
        if advancing.must_stop(play.graph, play.letters):
            waiting = [step for step, letter in zip(play.steps, play.letters, strict=True) if letter == "."]
            assert all(step.get("rule") == "always" for step in waiting)
        return False

    play.to_end(is_stopped)
    is_stopped()


def a_retry_repeats_what_is_downstream(random: Random) -> None:
    data = graphs.workflow(random)
    first = Play(random, data, graphs.endings(random, data), graphs.values(random, data))
    ended = first.to_end()
    from_ = random.choice([None, "start", random.choice(list(ended))])
    try:
        plan = retry.plan(first.graph, first.letters, from_)
    except UsageError:
        return
    again = {first.name(number) for number in plan.again}
    for step in data["steps"]:
        if {*graphs.upstream(step), *step.get("after", [])} & again:
            assert step["id"] in again
    if from_ is None:
        assert {name for name in ended if ended[name] in ("failed", "cancelled", "blocked")} <= again
    kept = {name: ended[name] for name in ended if name not in again}
    would = graphs.endings(random, data)
    values = graphs.values(random, data) | {name: first.known[name] for name in kept}
    second = Play(random, data, would, values, plan.letters)
    assert second.to_end() == Oracle(data["steps"], would, values, kept).outcomes()
    assert {second.name(one) for one, letter in enumerate(second.letters) if letters.is_kept(letter)} == set(kept)


PROPERTIES = [
    outcomes_are_the_oracles,
    a_stopping_run_ends,
    a_failure_stops_the_run,
    a_retry_repeats_what_is_downstream,
]


@pytest.mark.parametrize("check", PROPERTIES)
@given(random=randoms)
@settings(max_examples=100)
def test_property(check: Property, random: Random) -> None:
    check(random)


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.parametrize("check", PROPERTIES)
def test_property_of_many_runs(check: Property) -> None:
    for seed in range(20_000):
        try:
            check(Random(seed))
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise


# --- Planted bugs ---------------------------------------------------------------------------------

Patch = pytest.MonkeyPatch


def skips_too_early(patch: Patch) -> None:
    """A skipped upstream decides all_success, although a bad one may follow."""
    patch.setitem(rules.RULES, "all_success", Rule(lambda s, k, b, n: s == n, lambda s, k, b: b + k > 0, True))


def blocks_too_early(patch: Patch) -> None:
    patch.setitem(rules.RULES, "one_success", Rule(lambda s, k, b, n: s > 0, lambda s, k, b: s + b > 0, True))


def runs_too_early(patch: Patch) -> None:
    early = Rule(lambda s, k, b, n: s > 0, lambda s, k, b: s > 0, True)
    patch.setitem(rules.RULES, "all_done_min_one_success", early)


def data_is_judged_by_the_rule(patch: Patch) -> None:
    def by_edges(step: edges.StepEdges, now: Sequence[str]) -> str:
        return rules.judged(step.rule, step.data.upstreams(now) + "".join(now[one] for one in step.order))

    patch.setattr(advancing, "by_edges", by_edges)


def skipped_wins_over_blocked(patch: Patch) -> None:
    def by_edges(step: edges.StepEdges, now: Sequence[str]) -> str:
        both = (advancing._by_needs(step.data, now), advancing._by_rule(step, now))
        return next((letter for letter in ".kb" if letter in both), "o")

    patch.setattr(advancing, "by_edges", by_edges)


def first_is_decided_by_the_first_success(patch: Patch) -> None:
    genuine = edges._first
    patch.setattr(edges, "_first", lambda of: "s" if "s" in of else genuine(of))


def first_is_skipped_if_one_was(patch: Patch) -> None:
    genuine = edges._first
    patch.setattr(edges, "_first", lambda of: "k" if genuine(of) in "fcb" and "k" in of else genuine(of))


def default_needs_success(patch: Patch) -> None:
    genuine = edges.Needs.upstreams
    patch.setattr(
        edges.Needs, "upstreams", lambda needs, now: genuine(needs, now) + "".join(now[one] for one in needs.ends)
    )


def outcomes_need_no_end(patch: Patch) -> None:
    patch.setattr(
        edges.Needs,
        "upstreams",
        lambda needs, now: (
            "".join(now[one] for one in needs.values)
            + "".join(edges._first([now[one] for one in group]) for group in needs.firsts)
        ),
    )


def conditions_are_judged_from_the_innermost(patch: Patch) -> None:
    genuine = edges._of_step

    def reversed_conditions(graph: Graph, step: Step) -> edges.StepEdges:
        found = genuine(graph, step)
        return edges.StepEdges(found.data, found.order, found.rule, found.conditions[::-1])

    patch.setattr(edges, "_of_step", reversed_conditions)


def conditions_are_judged_before_edges(patch: Patch) -> None:
    genuine = advancing._decided

    def decided(step: edges.StepEdges, now: Sequence[str], value: Value) -> str:
        without = edges.StepEdges(edges.Needs(), (), "all_success", step.conditions)
        letter = genuine(without, now, value)
        return advancing.by_edges(step, now) if letter == "o" else letter

    patch.setattr(advancing, "_decided", decided)


def a_condition_over_a_missing_value_is_false(patch: Patch) -> None:
    genuine = advancing._by_condition
    patch.setattr(advancing, "_by_condition", lambda *given: genuine(*given).replace("b", "k"))


def a_bad_condition_is_false(patch: Patch) -> None:
    genuine = condition.holds

    def holds(*given: Any) -> bool:
        try:
            return genuine(*given)
        except TemplateError:
            return False

    patch.setattr(condition, "holds", holds)


def failed_leaves_out_blocked(patch: Patch) -> None:
    patch.setitem(condition._OUTCOMES, "failed", "fc")


def cancelled_is_not_bad(patch: Patch) -> None:
    patch.setattr(
        rules, "counted", lambda of: (of.count("s"), of.count("k") + of.count("c"), of.count("f") + of.count("b"))
    )


def decides_only_the_next_steps(patch: Patch) -> None:
    """Skips and blocks do not lead to decisions about later steps."""
    genuine = advancing._settle

    def settle(index: edges.Edges, *given: Any) -> list[int]:
        return genuine(edges.Edges(index.steps, tuple(() for _ in index.steps)), *given)

    patch.setattr(advancing, "_settle", settle)


def excused_failures_are_successes(patch: Patch) -> None:
    genuine = advancing.advance

    def advance(graph: Graph, before: str, value: Value, **named: Any) -> advancing.Advanced:
        excused = "".join(
            "s" if letter == "f" and step.may_fail else letter for letter, step in zip(before, graph.steps, strict=True)
        )
        after = genuine(graph, excused, value, **named)
        kept = [old if old != "." else new for old, new in zip(before, after.letters, strict=True)]
        return advancing.Advanced("".join(kept), after.start)

    patch.setattr(graphs, "advance", advance)


def always_is_cancelled_too(patch: Patch) -> None:
    patch.setattr(advancing, "_may_cancel", lambda index, number: True)


def always_starts_before_the_others_ended(patch: Patch) -> None:
    patch.setitem(rules.RULES, "always", Rule(lambda s, k, b, n: True, lambda s, k, b: b > 0))


def a_bad_condition_does_not_stop_the_run(patch: Patch) -> None:
    """Steps that start with the same end are placed, although the run stops."""
    genuine = advancing.advance

    def advance(graph: Graph, before: str, value: Value, **named: Any) -> advancing.Advanced:
        named["is_stopping"] = named["is_stopping"] or advancing.must_stop(graph, before)
        return genuine(structs.replace(graph, on_failure="finish"), before, value, **named)

    patch.setattr(graphs, "advance", advance)


def a_retry_repeats_only_the_next_steps(patch: Patch) -> None:
    patch.setattr(
        edges.Edges,
        "below",
        lambda self, causes: {*causes, *(one for cause in causes for one in self.downstream[cause])},
    )


@pytest.mark.parametrize(
    ("bug", "check"),
    [
        *(
            (bug, outcomes_are_the_oracles)
            for bug in (
                skips_too_early,
                blocks_too_early,
                runs_too_early,
                data_is_judged_by_the_rule,
                skipped_wins_over_blocked,
                first_is_decided_by_the_first_success,
                first_is_skipped_if_one_was,
                default_needs_success,
                outcomes_need_no_end,
                conditions_are_judged_from_the_innermost,
                conditions_are_judged_before_edges,
                a_condition_over_a_missing_value_is_false,
                a_bad_condition_is_false,
                failed_leaves_out_blocked,
                cancelled_is_not_bad,
                decides_only_the_next_steps,
                excused_failures_are_successes,
            )
        ),
        (always_is_cancelled_too, a_stopping_run_ends),
        (always_starts_before_the_others_ended, a_stopping_run_ends),
        (a_bad_condition_does_not_stop_the_run, a_failure_stops_the_run),
        (a_retry_repeats_only_the_next_steps, a_retry_repeats_what_is_downstream),
    ],
)
def test_planted_bug_is_found(bug: Callable[[Patch], None], check: Property, monkeypatch: Patch) -> None:
    bug(monkeypatch)
    for seed in range(3_000):
        try:
            check(Random(seed))
        except AssertionError:
            return
    pytest.fail(f"{bug.__name__} was not noticed")
