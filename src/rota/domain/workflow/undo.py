"""Undoing a run: which of its steps are undone, and in which order.

The undo of a run is a run of its own. Its graph is derived from the graph of the undone run: step n of the undo undoes
step n of the undone run, so both have the same names and numbers. The edges are reversed. A step that is not undone has
the letter `NOT_UNDONE` from the start, and the edges bypass it. Everything else is as in every run: `advance` decides
which undos start, maps of undos are expanded and counted like maps, and the undo of a sub-workflow is a sub-run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache

from rota.domain.status import Status
from rota.domain.workflow import edges
from rota.domain.workflow.graph import Graph, Step
from rota.domain.workflow.letters import BAD, CANCELLED, FAILED, SKIPPED, SUCCESS, UNDECIDED

NOT_UNDONE = SKIPPED.upper()
"""The letter of a step that is not undone: skipped, in upper case like the letter of a kept step."""


class Undo(Step, frozen=True):
    """The undo of the step that has the same name."""

    @property
    def is_undo(self) -> bool:
        return True


def is_wanted(graph: Graph, end: Status) -> bool:
    """Whether a run that ends with this status is undone, if it has steps to undo."""
    return end.value in graph.undo_on


def first_letters(graph: Graph, letters: str, has_executions: Callable[[int], bool]) -> str:
    """The letters with which the undo of a run begins. `letters` are those of the undone run.

    `has_executions` reads whether a step, by its number, has executions to undo. It is called only if the letter of the
    step does not decide that.
    """
    return "".join(
        [
            UNDECIDED if _is_undone(step, letter, number, has_executions) else NOT_UNDONE
            for number, (step, letter) in enumerate(zip(graph.steps, letters.lower(), strict=True))
        ]
    )


def _is_undone(step: Step, letter: str, number: int, has_executions: Callable[[int], bool]) -> bool:
    if step.undo is None and step.workflow is None:
        return False
    if letter == SUCCESS and step.workflow is None and not step.is_map:
        return True
    # A map that failed may have items that succeeded.
    may_have = letter == SUCCESS or (letter in (FAILED, CANCELLED) and (step.is_map or step.undo_failed))
    return may_have and has_executions(number)


def retry_letters(ended: str) -> str:
    """The letters with which the retry of an ended undo begins: the undos that succeeded are kept."""
    return "".join([_retry_letter(letter) for letter in ended])


def _retry_letter(letter: str) -> str:
    if letter == NOT_UNDONE:
        return NOT_UNDONE
    return SUCCESS.upper() if letter.lower() == SUCCESS else UNDECIDED


def undone(letters: str) -> frozenset[int]:
    """The numbers of the steps that an undo with these letters undoes, whether that has succeeded or not."""
    return frozenset(number for number, letter in enumerate(letters) if letter != NOT_UNDONE)


def failures(letters: str) -> list[int]:
    """The numbers of the steps whose undo failed."""
    return [number for number, letter in enumerate(letters.lower()) if letter in BAD]


def undo_graph(graph: Graph, letters: str) -> Graph:
    """The graph of an undo. `graph` is that of the undone run, `letters` are those of the undo."""
    return _undo_graph(_Identity(graph), undone(letters))


class _Identity:
    """A graph as the key of a cache, compared by identity: each graph is decoded once per process."""

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
    """The nearest undone steps downstream of a step: the search does not go past an undone step."""
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
