"""The edges of a graph by number, computed once per graph: the upstreams and the downstreams of each step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from rota.domain.workflow import condition, template
from rota.domain.workflow.graph import Condition, Graph, Step
from rota.domain.workflow.letters import BAD, ENDED, SKIPPED, SUCCESS, UNDECIDED
from rota.domain.workflow.template import Use

_CACHED = "_edges"


class Needs(msgspec.Struct, frozen=True):
    """The steps that templates and conditions use."""

    values: tuple[int, ...] = ()
    """They must have succeeded."""
    ends: tuple[int, ...] = ()
    """They must have ended."""
    firsts: tuple[tuple[int, ...], ...] = ()
    """One of each group must have succeeded, and all must have ended. A group counts as one upstream."""
    names: dict[str, int] = {}

    def upstreams(self, letters: Sequence[str]) -> str:
        """One letter per upstream, as `all_success` judges them."""
        values = [letters[number] for number in self.values]
        ends = [SUCCESS if letters[number] in ENDED else UNDECIDED for number in self.ends]
        return "".join([*values, *ends, *(_first([letters[number] for number in group]) for group in self.firsts)])


class StepEdges(msgspec.Struct, frozen=True):
    """What decides about one step."""

    data: Needs
    order: tuple[int, ...]
    rule: str
    conditions: tuple[tuple[Needs, Condition], ...]
    """Outermost first."""

    @property
    def upstream(self) -> set[int]:
        needs = [self.data, *(needs for needs, _ in self.conditions)]
        return {*self.order, *(number for one in needs for number in one.names.values())}


class Edges(msgspec.Struct, frozen=True):
    steps: tuple[StepEdges, ...]
    downstream: tuple[tuple[int, ...], ...]

    def above(self, number: int) -> set[int]:
        """All steps upstream of a step, without the step itself."""
        found: set[int] = set()
        rest = [number]
        while rest:
            more = self.steps[rest.pop()].upstream - found
            found |= more
            rest.extend(more)
        return found

    def below(self, numbers: Iterable[int]) -> set[int]:
        """The steps and everything downstream of them."""
        found: set[int] = set()
        rest = list(numbers)
        while rest:
            number = rest.pop()
            if number not in found:
                found.add(number)
                rest.extend(self.downstream[number])
        return found


def of(graph: Graph) -> Edges:
    """The edges of a graph, kept with it."""
    edges: Edges | None = vars(graph).get(_CACHED)
    if edges is None:
        edges = vars(graph)[_CACHED] = _found(graph)
    return edges


def _found(graph: Graph) -> Edges:
    steps = tuple(_of_step(graph, step) for step in graph.steps)
    downstream: list[list[int]] = [[] for _ in steps]
    for number, edges in enumerate(steps):
        for upstream in edges.upstream:
            downstream[upstream].append(number)
    return Edges(steps, tuple(map(tuple, downstream)))


def _of_step(graph: Graph, step: Step) -> StepEdges:
    return StepEdges(
        data=_needs(graph, template.references(step.values)),
        order=tuple(graph.numbers[name] for name in step.after),
        rule=step.rule,
        conditions=tuple((_needs(graph, condition.references(one)), one) for one in step.when),
    )


def _needs(graph: Graph, uses: Iterable[Use]) -> Needs:
    values: dict[int, None] = {}
    ends: dict[int, None] = {}
    firsts: dict[tuple[int, ...], None] = {}
    names: dict[str, int] = {}
    for use in uses:
        named = {one.root: graph.numbers[one.root] for one in use.references if one.root in graph.numbers}
        names |= named
        numbers = tuple(named.values())
        always_has_value = len(named) < len({one.root for one in use.references})
        if use.kind == "value":
            values |= dict.fromkeys(numbers)
        elif use.kind == "first" and not always_has_value:
            firsts[numbers] = None
        else:
            ends |= dict.fromkeys(numbers)
    return Needs(tuple(values), tuple(ends), tuple(firsts), names)


def _first(letters: Sequence[str]) -> str:
    """The letter of a `first`: decided when all have ended, because an earlier one in written order may succeed."""
    if not all(letter in ENDED for letter in letters):
        return UNDECIDED
    if SUCCESS in letters:
        return SUCCESS
    return next((letter for letter in letters if letter in BAD), SKIPPED)
