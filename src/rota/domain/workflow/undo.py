"""Undoing a run: which of its steps are undone, and in which order.

The undo of a run is a run of its own. Its graph is derived from that of the undone run: step n of the one undoes step n
of the other, so both have the same names and numbers. The edges are reversed. A step that is not undone is skipped from
the start, with the letter of a kept step; the edges lead past it. All else is as in every run: `advance` decides which
undos start, maps of undos are expanded and counted like maps, and the undo of a sub-workflow is a run below.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache

from rota.domain.status import Status
from rota.domain.workflow import edges
from rota.domain.workflow.graph import Graph, Step
from rota.domain.workflow.letters import BAD, CANCELLED, FAILED, SKIPPED, SUCCESS, UNDECIDED

LEFT = SKIPPED.upper()
"""The letter of a step that is not undone."""


class Undo(Step, frozen=True):
    """The undo of the step that has the same name."""

    @property
    def is_undo(self) -> bool:
        return True


def is_wanted(graph: Graph, end: Status) -> bool:
    """Whether a run that ends so is undone, if there is something to undo."""
    return end.value in graph.undo_on


def begin(graph: Graph, letters: str, has_items: Callable[[int], bool]) -> str:
    """The letters with which the undo of a run begins: `LEFT` for each step that is not undone.

    `has_items` looks whether a step has an execution to undo. It is asked where the letter of the step does not say it.
    """
    return "".join(
        [
            UNDECIDED if _is_undone(step, letter, number, has_items) else LEFT
            for number, (step, letter) in enumerate(zip(graph.steps, letters.lower(), strict=True))
        ]
    )


def _is_undone(step: Step, letter: str, number: int, has_items: Callable[[int], bool]) -> bool:
    if step.undo is None and step.workflow is None:
        return False
    if letter == SUCCESS and step.workflow is None and not step.is_map:
        return True
    # A map that failed has items that succeeded.
    may_have = letter == SUCCESS or (letter in (FAILED, CANCELLED) and (step.is_map or step.undo_failed))
    return may_have and has_items(number)


def again(before: str) -> str:
    """The letters with which a retry of an ended undo begins: the undos that succeeded are kept."""
    return "".join([_again(letter) for letter in before])


def _again(letter: str) -> str:
    if letter == LEFT:
        return LEFT
    return SUCCESS.upper() if letter.lower() == SUCCESS else UNDECIDED


def is_incomplete(letters: str) -> bool:
    """Whether an undo with these letters has failed."""
    return any(letter in BAD for letter in letters.lower())


def undone(letters: str) -> frozenset[int]:
    """The steps that an undo with these letters has undone, or has tried to."""
    return frozenset(number for number, letter in enumerate(letters) if letter != LEFT)


def failures(letters: str) -> list[int]:
    """The steps whose undo failed."""
    return [number for number, letter in enumerate(letters.lower()) if letter in BAD]


def undo_graph(graph: Graph, letters: str) -> Graph:
    """The graph of the undo with these letters."""
    return _undo_graph(_Identity(graph), undone(letters))


class _Identity:
    """A graph as a key of a cache: each graph is decoded once per process."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __hash__(self) -> int:
        return id(self.graph)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.graph is other.graph


@lru_cache(maxsize=1_000)
def _undo_graph(of: _Identity, undone: frozenset[int]) -> Graph:
    graph = of.graph
    steps = [_undo_of(graph, number, undone) for number in range(len(graph.steps))]
    return Graph(name=graph.name, steps=tuple(steps), max_width=graph.max_width)


def _undo_of(graph: Graph, number: int, undone: Collection[int]) -> Undo:
    step = graph.steps[number]
    return Undo(
        id=step.id,
        job=None if step.workflow is not None else step.undo or step.job,
        workflow=step.workflow,
        map=[] if step.is_map else None,
        at_once=step.at_once,
        after=tuple(graph.steps[other].id for other in sorted(_nearest(graph, number, undone))),
        rule="all_done",
    )


def _nearest(graph: Graph, number: int, undone: Collection[int]) -> set[int]:
    """The steps downstream that are undone, without those downstream of them."""
    if number not in undone:
        return set()
    downstream = edges.of(graph).downstream
    found: set[int] = set()
    seen: set[int] = set()
    rest = list(downstream[number])
    while rest:
        one = rest.pop()
        if one in undone:
            found.add(one)
        elif one not in seen:
            seen.add(one)
            rest.extend(downstream[one])
    return found
