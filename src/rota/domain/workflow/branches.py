"""Which steps can run together: finds a step that never runs, and a result that can be missing.

A `Case` maps facts to the values that they may have: a condition to True or False, a step to its outcome (`s` success,
`k` skipped, `b` bad). Two cases are in conflict if a fact has no value left. Conditions are compared as text, so two
different conditions are taken to be independent of each other.

The analysis errs to one side only: a graph is refused if it is certainly wrong, or, for the result, if the reader of
the graph could not tell either that the result is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any

from rota.domain.workflow import condition as conditions
from rota.domain.workflow import template
from rota.domain.workflow.graph import Condition, Graph, Step, Template
from rota.domain.workflow.rules import DEFAULT
from rota.domain.workflow.template import Use

Fact = tuple[str, str]
Case = dict[Fact, frozenset[Any]]

TRUTHS = frozenset({True, False})
OUTCOMES = frozenset("skb")
MOST_FACTS = 16
"""More combinations than these are not tried; the result then counts as present."""
_OPPOSITES = {"ne": "eq", "ge": "lt", "gt": "le"}
_BY_OUTCOME = {"succeeded": frozenset("s"), "failed": frozenset("b"), "skipped": frozenset("k")}
_EACH = {DEFAULT: "s", "all_failed": "b", "none_failed": "sk", "none_skipped": "sb", "all_skipped": "k"}
"""The rules that want one of these outcomes from every step."""
_SOME = {
    "one_success": "s",
    "none_failed_min_one_success": "s",
    "all_done_min_one_success": "s",
    "one_failed": "b",
    "one_done": "sb",
}
"""The rules that want one of these outcomes from at least one step."""


class Branches:
    """The analysis of one graph, which has no cycles and refers only to steps that it has."""

    def __init__(self, graph: Graph, order: Iterable[int]) -> None:
        self._graph = graph
        self._steps = {step.id: step for step in graph.steps}
        self._needs: dict[str, Case | None] = {}
        self._conflicts: dict[str, tuple[str, str]] = {}
        self._succeeds: dict[str, Case] = {}
        self._can_be_bad: dict[str, bool] = {}
        self._watched = {name for step in graph.steps for name in _watched(step)}
        self._unknown: set[str] = set()
        """Steps whose success cannot be derived from other facts."""
        for number in order:
            step = graph.steps[number]
            self._needs[step.id] = self._needed(step)
            self._can_be_bad[step.id] = step.may_fail or any(
                self._can_be_bad[name] for name in self._all_upstreams(step)
            )
            self._succeeds[step.id] = self._sufficient(step)

    def never(self) -> dict[str, tuple[str, str]]:
        """The steps that can never run, by id, each with two things that exclude each other.

        A step that only follows from another such step is left out.
        """
        return self._conflicts

    def missing(self, result: Template) -> Iterator[Use]:
        """The uses of a result's template that may have no value in a run that succeeds."""
        for use in template.references(result):
            named = [one for one in use.references if one.root in self._steps]
            if use.kind == "end" or len(named) < len(use.references):
                continue
            if not self._covers([self._succeeds[one.root] for one in named]):
                yield use

    # --- What must hold for a step to run -----------------------------------------------------------

    def _needed(self, step: Step) -> Case | None:
        """What certainly holds if the step runs; None if it cannot run."""
        found: Case = {}
        sources: dict[Fact, str] = {}
        for words, case in self._demands(step):
            if case is None:
                return None
            for fact, values in case.items():
                if found.get(fact) is values:
                    continue
                left = found.get(fact, values) & values
                if not left:
                    self._conflicts[step.id] = (sources[fact], words)
                    return None
                found[fact] = left
                sources.setdefault(fact, words)
        return found

    def _demands(self, step: Step) -> Iterator[tuple[str, Case | None]]:
        for use in template.references(step.values):
            yield from self._by_use(use)
        yield from self._by_rule(step)
        for condition in step.when:
            for use in conditions.references(condition):
                yield from self._by_use(use)
            for fact, values in _literals(condition):
                yield _words(fact, values), {fact: values}

    def _by_use(self, use: Use) -> Iterator[tuple[str, Case | None]]:
        names = [one.root for one in use.references if one.root in self._steps]
        if use.kind == "end" or len(names) < len(use.references):
            return
        if use.kind == "value":
            yield f"the value of {names[0]}", self._if_success(names[0])
        else:
            yield f"a value of {', '.join(names)}", _common([self._if_success(name) for name in names])

    def _by_rule(self, step: Step) -> Iterator[tuple[str, Case | None]]:
        if step.rule in _EACH:
            for name in step.after:
                wanted = frozenset(_EACH[step.rule])
                is_success = wanted == {"s"}
                yield f"{step.rule} over {name}", self._if_success(name) if is_success else {("step", name): wanted}
        elif step.rule in _SOME and step.after:
            wanted = frozenset(_SOME[step.rule])
            cases: list[Case | None] = [
                self._if_success(name) if wanted == {"s"} else {("step", name): wanted} for name in step.after
            ]
            yield f"{step.rule} over {', '.join(step.after)}", _common(cases)

    def _if_success(self, name: str) -> Case | None:
        needs = self._needs[name]
        if needs is None or name not in self._watched:
            return needs
        return {**needs, ("step", name): frozenset("s")}

    # --- What is enough for a step to succeed, in a run that succeeds -----------------------------------

    def _sufficient(self, step: Step) -> Case:
        itself: Case = {("step", step.id): frozenset("s")}
        uses = [*template.references(step.values), *self._condition_uses(step)]
        parts = [*map(self._enough, uses), self._rule_enough(step), itself if step.may_fail else {}]
        parts += [dict(_opaque(condition)) for condition in step.when]
        parts += [None] if step.event is not None and step.event.on_timeout == "skip" else []
        found: Case = {}
        for part in parts:
            if part is None:
                self._unknown.add(step.id)
                return itself
            found |= part
        return found

    def _enough(self, use: Use) -> Case | None:
        names = [one.root for one in use.references if one.root in self._steps]
        if use.kind == "end" or len(names) < len(use.references):
            return {}
        cases = [self._succeeds[name] for name in names]
        if len(cases) == 1:
            return cases[0]
        shared = {fact: values for fact, values in cases[0].items() if all(one.get(fact) == values for one in cases)}
        rest = [{fact: values for fact, values in case.items() if fact not in shared} for case in cases]
        return shared if self._covers(rest, shared) else None

    def _rule_enough(self, step: Step) -> Case | None:
        if step.rule == DEFAULT:
            return reduce(lambda found, name: {**found, **self._succeeds[name]}, step.after, Case())
        if step.rule in ("all_done", "always") or not step.after:
            return {}
        if step.rule == "none_failed" and not any(self._can_be_bad[name] for name in step.after):
            return {}
        return None

    def _covers(self, cases: list[Case], known: Case | None = None) -> bool:
        """Whether one of the cases holds, whatever the facts are."""
        facts = {fact for case in cases for fact in case}
        if len(cases) > 1 and len(facts) > MOST_FACTS:
            return True
        # Conditions first: they decide which outcomes of a step are possible.
        return self._holds(cases, sorted(facts), dict(known or {}))

    def _holds(self, cases: list[Case], facts: list[Fact], known: Case) -> bool:
        if any(all(known.get(fact, OUTCOMES) <= values for fact, values in case.items()) for case in cases):
            return True
        cases = [case for case in cases if all(known.get(fact, values) & values for fact, values in case.items())]
        if not facts or not cases:
            return False
        fact, *rest = facts
        return all(
            self._holds(cases, rest, {**known, fact: frozenset({value})}) for value in self._possible(fact, known)
        )

    def _possible(self, fact: Fact, known: Case) -> Iterable[Any]:
        kind, name = fact
        if kind == "condition":
            return known.get(fact, TRUTHS)
        asked = {one: values for one, values in self._succeeds[name].items() if one != fact}
        is_met = name not in self._unknown and all(known.get(one, OUTCOMES) <= values for one, values in asked.items())
        is_refused = any(one in known and not known[one] & values for one, values in asked.items())
        possible = ("" if is_refused else "s") + ("b" if self._can_be_bad[name] else "") + ("" if is_met else "k")
        return known.get(fact, OUTCOMES) & set(possible)

    def _condition_uses(self, step: Step) -> Iterator[Use]:
        return (use for condition in step.when for use in conditions.references(condition))

    def _all_upstreams(self, step: Step) -> Iterator[str]:
        uses = [*template.references(step.values), *self._condition_uses(step)]
        named = [one.root for use in uses if use.kind != "end" for one in use.references]
        ordered = step.after if step.rule not in ("all_done", "always") else ()
        return (name for name in (*named, *ordered) if name in self._steps)


def _watched(step: Step) -> Iterator[str]:
    """The steps whose outcome other than success may be wanted; the facts about all others need not be kept."""
    if step.rule != DEFAULT:
        yield from step.after
    for condition in step.when:
        yield from (one.root for use in conditions.references(condition) if use.kind == "end" for one in use.references)


def _common(cases: list[Case | None]) -> Case | None:
    """What holds in every case that is possible; None if none is."""
    possible = [case for case in cases if case is not None]
    if not possible:
        return None
    shared = set(possible[0]).intersection(*possible)
    return {fact: frozenset().union(*(case[fact] for case in possible)) for fact in shared}


def _literals(condition: Condition, truth: bool = True) -> Iterator[tuple[Fact, frozenset[Any]]]:
    """Every fact that follows from the condition."""
    ((operator, operand),) = condition.items()
    if operator == "not":
        yield from _literals(operand, not truth)
    elif operator == ("all" if truth else "any"):
        for one in operand:
            yield from _literals(one, truth)
    else:
        yield from _opaque(condition, truth)
        if operator == ("eq" if truth else "ne") and (pair := _with_literal(operand)) is not None:
            yield ("value", pair[0]), frozenset({pair[1]})  # Equal to two different constants is a conflict.


def _opaque(condition: Condition, truth: bool = True) -> Iterator[tuple[Fact, frozenset[Any]]]:
    """The condition as one fact."""
    ((operator, operand),) = condition.items()
    if operator == "not":
        yield from _opaque(operand, not truth)
    elif operator in _BY_OUTCOME:
        wanted = _BY_OUTCOME[operator]
        yield ("step", operand), wanted if truth else OUTCOMES - wanted
    elif operator in _OPPOSITES:
        yield from _opaque({_OPPOSITES[operator]: operand}, not truth)
    else:
        yield ("condition", json.dumps({operator: operand}, sort_keys=True)), frozenset({truth})


def _with_literal(operands: list[Any]) -> tuple[str, str] | None:
    """A value and the constant that it is compared with, as texts."""
    first, second = (json.dumps(one, sort_keys=True) for one in operands)
    is_known = [template.is_literal(one) for one in operands]
    return {(False, True): (first, second), (True, False): (second, first)}.get((is_known[0], is_known[1]))


def _words(fact: Fact, values: frozenset[Any]) -> str:
    kind, name = fact
    if kind == "step":
        named = {"s": "succeeded", "k": "skipped", "b": "failed"}
        return f"the condition that {name} " + " or ".join(sorted(named[one] for one in values))
    if kind == "value":
        return f"the condition that {name} is {next(iter(values))}"
    return f"{'' if True in values else 'the opposite of '}the condition {name}"
