"""The retry of a run that has ended: a new run that keeps what need not run again."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from rota.domain.errors import Conflict, UsageError
from rota.domain.workflow import edges
from rota.domain.workflow.advance import by_edges
from rota.domain.workflow.graph import Graph
from rota.domain.workflow.letters import BAD, CANCELLED, FAILED, OPEN, UNDECIDED, is_over, status_of

START = "start"
_COMPARED = ("job", "workflow", "sleep", "approve", "event", "arguments", "map", "item", "after", "rule", "when")


class Retry(msgspec.Struct, frozen=True):
    """How the new run begins. Numbers are those of its own graph."""

    letters: str
    """Kept steps in upper case, the others undecided."""
    again: tuple[int, ...]
    """The steps that are decided, and may run, again."""
    partial: tuple[int, ...]
    """The maps among them that keep their successful items, because their inputs are the same."""
    sub_retries: tuple[int, ...] = ()
    """The sub-workflows among them whose sub-runs open as retries, because their inputs are the same."""


def plan(
    graph: Graph,
    letters: str,
    from_: str | None = None,
    *,
    has_arguments: bool = False,
    step_arguments: Collection[str] = (),
    latest: Graph | None = None,
    undone: Collection[int] = (),
) -> Retry:
    """What a retry of the ended run keeps.

    By default every step that failed, was cancelled or was blocked runs again, and everything downstream; with a
    step's name that step and everything downstream; from the start every step. `step_arguments` names the steps that
    get other arguments. With `latest` the new run has that graph, and the steps that are new in it run too. `undone`
    are the numbers of the steps that were undone: these run again.
    """
    if not is_over(letters):
        raise Conflict("the run has not ended: wait for it, or cancel it first")
    if has_arguments and from_ != START:
        raise UsageError(f"new arguments of the run change every step: retry it from {START!r}")
    new = latest or graph
    old = dict(zip(graph.numbers, letters.lower(), strict=True))
    gone = {graph.steps[number].id for number in undone}
    again = edges.of(new).below(_causes(new, old, from_, gone))
    begin = "".join([UNDECIDED if number in again else old[name].upper() for name, number in new.numbers.items()])
    _refuse_kept(graph, new, again, step_arguments)
    if from_ is not None and from_ != START:
        _refuse_hopeless(new, begin, from_)
    same = () if from_ == START else _with_same_inputs(graph, new, old, again, {*step_arguments, *gone})
    partial = tuple(number for number in same if new.steps[number].is_map)
    sub_retries = tuple(number for number in same if new.steps[number].workflow is not None and from_ is None)
    return Retry(begin, tuple(sorted(again)), partial, sub_retries)


def plan_of_sub_run(graph: Graph, letters: str, undone: Collection[int], *, was_stopped: bool) -> Retry | None:
    """What the retry of a sub-run that did not succeed keeps; None if all steps run again.

    If no step is bad or undone, there are two cases. A sub-run that was stopped during its last step keeps all steps.
    Otherwise the sub-run failed because its result could not be made from the results of its steps, so they run again.
    """
    if undone or any(letter in BAD for letter in letters.lower()):
        return plan(graph, letters, undone=undone)
    return Retry(letters.upper(), (), ()) if was_stopped else None


def _causes(graph: Graph, old: dict[str, str], from_: str | None, undone: Collection[str]) -> set[int]:
    """The steps from which the run is repeated."""
    numbers = graph.numbers
    if from_ == START:
        return set(numbers.values())
    causes = {number for name, number in numbers.items() if name not in old or name in undone}
    if from_ is None:
        causes |= {number for name, number in numbers.items() if name in old and old[name] in BAD}
    elif from_ in numbers:
        causes.add(numbers[from_])
    else:
        raise UsageError(f"the workflow has no step {from_!r}: its steps are {', '.join(numbers)}")
    if not causes:
        raise UsageError(f"no step failed, was cancelled or was blocked: name a step, or {START!r} for all of them")
    return causes


def _refuse_kept(graph: Graph, new: Graph, again: set[int], step_arguments: Collection[str]) -> None:
    """A kept step is as it was: its result would be another one otherwise."""
    kept = [name for name, number in new.numbers.items() if number not in again]
    for name in step_arguments:
        if name not in new.numbers:
            raise UsageError(f"arguments for {name!r}: the workflow has no such step")
        if new.steps[new.numbers[name]].wait is not None:
            raise UsageError(f"arguments for {name!r}: the step waits, and takes no arguments")
        if name in kept:
            raise UsageError(f"arguments for {name!r}: the step is kept and does not run again; retry from it")
    for name in kept:
        if changes := _changes(graph, new, name):
            raise UsageError(f"step {name!r} is kept, but the latest version changed its {changes}: retry from it")


def _refuse_hopeless(graph: Graph, letters: str, name: str) -> None:
    step = edges.of(graph).steps[graph.numbers[name]]
    if by_edges(step, letters.lower()) not in (OPEN, UNDECIDED):
        ended = ", ".join(f"{graph.steps[one].id} ({status_of(letters[one])})" for one in sorted(step.upstream))
        raise UsageError(f"step {name!r} would not run again, because what it needs is kept: {ended}. Retry from there")


def _with_same_inputs(
    graph: Graph, new: Graph, old: dict[str, str], again: set[int], changed: Collection[str]
) -> tuple[int, ...]:
    """The steps that ran without success and would get the same arguments again."""
    return tuple(
        number
        for number in sorted(again)
        if old.get((step := new.steps[number]).id, UNDECIDED) in (FAILED, CANCELLED)
        and step.id not in changed
        and again.isdisjoint(edges.of(new).steps[number].upstream)
        and not _changes(graph, new, step.id)
    )


def _changes(graph: Graph, new: Graph, name: str) -> str:
    """The fields of a step that differ between two versions of a workflow."""
    before, after = graph.steps[graph.numbers[name]], new.steps[new.numbers[name]]
    if before is after:
        return ""
    return ", ".join(field for field in _COMPARED if getattr(before, field) != getattr(after, field))
