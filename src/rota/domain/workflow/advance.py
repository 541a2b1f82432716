"""Decides what happens next in a run: a pure function of the graph, the letters of its steps, and condition values.

A step looks at its edges, then at its conditions from the outermost:

- **data edges** (values in arguments) need success, as the rule `all_success` judges them;
- **order edges** (`after`) are judged by the step's own rule;
- the step runs if both allow it; it is blocked if one of them blocks it, else skipped;
- a **condition** over values needs them like a data edge does, then it is true or false. False skips the step, and a
  condition that cannot be judged fails it.

No decision changes when more steps end. So the outcome of every step is the same in whatever order the steps end, and
in whatever order this module looks at them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from rota.domain.status import Status
from rota.domain.workflow import condition, edges, rules
from rota.domain.workflow.edges import Edges, Needs, StepEdges
from rota.domain.workflow.graph import Condition, Graph
from rota.domain.workflow.letters import BLOCKED, CANCELLED, FAILED, OPEN, SKIPPED, UNDECIDED, counted
from rota.domain.workflow.template import TemplateError, Value

_WHY = {FAILED: "bad_condition", CANCELLED: "run_stopped", BLOCKED: "upstream_failed"}


class Advanced(msgspec.Struct, frozen=True):
    letters: str
    start: tuple[int, ...]
    """The steps to place now, by number. They are open in `letters`."""


def advance(
    graph: Graph, letters: str, value: Value, *, is_stopping: bool = False, changed: Iterable[int] | None = None
) -> Advanced:
    """Decides everything that can be decided.

    `changed` are the steps that ended since the last call; without it every undecided step is looked at. `value` is
    called for conditions only. A stopping run cancels its undecided steps, except those with the rule `always`: they
    are decided as ever, when their upstreams have ended.
    """
    index = edges.of(graph)
    now = list(letters.lower())
    is_stopping = is_stopping or must_stop(graph, letters)
    queue = list(range(len(now)) if changed is None else _downstream(index, changed))
    if is_stopping:
        cancelled = [number for number, letter in enumerate(now) if letter == UNDECIDED and _may_cancel(index, number)]
        for number in cancelled:
            now[number] = CANCELLED
        queue.extend(_downstream(index, cancelled))
    start = _settle(index, now, queue, value)
    after = "".join([new if old == UNDECIDED else old for old, new in zip(letters, now, strict=True)])
    if not is_stopping and must_stop(graph, after):
        # A condition failed its step, and the run stops at the first failure: these steps are not placed after all.
        placed = set(start)
        after = "".join([UNDECIDED if number in placed else letter for number, letter in enumerate(after)])
        return advance(graph, after, value, is_stopping=True)
    return Advanced(after, tuple(sorted(start)))


def must_stop(graph: Graph, letters: str) -> bool:
    """Whether the run stops before its other steps end. Failures that a retry kept do not stop it again."""
    return graph.on_failure == "stop" and _has_failure(graph, letters)


def outcome(graph: Graph, letters: str) -> Status:
    """How a run ends that was neither cancelled nor timed out. Skipped and blocked steps do not fail it."""
    return Status.FAILED if _has_failure(graph, letters.lower()) else Status.SUCCESS


def why(graph: Graph, letters: str, number: int, value: Value | None = None) -> str:
    """Why a step never ran, as a stable code.

    Without `value` a condition over values counts as the one that was false.
    """
    now = letters.lower()
    if now[number] != SKIPPED:
        return _WHY[now[number]]
    step = edges.of(graph).steps[number]
    if _by_needs(step.data, now) == SKIPPED:
        return "upstream_skipped"
    if _by_rule(step, now) == SKIPPED:
        return _why_not_by_rule(step, now)
    for needs, one in step.conditions:
        if _by_needs(needs, now) == SKIPPED:
            return "upstream_skipped"
        try:
            if not _holds(needs, one, now, value or _no_value):
                break
        except _NoValue:
            break
    return "condition"


def by_edges(step: StepEdges, now: Sequence[str]) -> str:
    """The letter that the edges give a step, by lower-case letters; open means that its conditions are judged."""
    judgements = (_by_needs(step.data, now), _by_rule(step, now))
    return next((letter for letter in (BLOCKED, UNDECIDED, SKIPPED) if letter in judgements), OPEN)


# --- Deciding -------------------------------------------------------------------------------------


def _settle(index: Edges, now: list[str], queue: list[int], value: Value) -> list[int]:
    """Decides the steps in the queue and what follows from them. Returns those that start."""
    start = []
    while queue:
        number = queue.pop()
        if now[number] != UNDECIDED:
            continue
        letter = now[number] = _decided(index.steps[number], now, value)
        if letter == OPEN:
            start.append(number)
        elif letter != UNDECIDED:
            queue.extend(index.downstream[number])
    return start


def _decided(step: StepEdges, now: Sequence[str], value: Value) -> str:
    letter = by_edges(step, now)
    for needs, one in step.conditions:
        if letter == OPEN:
            letter = _by_condition(needs, one, now, value)
    return letter


def _by_needs(needs: Needs, now: Sequence[str]) -> str:
    return rules.judged(rules.DEFAULT, needs.upstreams(now))


def _by_rule(step: StepEdges, now: Sequence[str]) -> str:
    return rules.judged(step.rule, "".join([now[number] for number in step.order]))


def _by_condition(needs: Needs, one: Condition, now: Sequence[str], value: Value) -> str:
    letter = _by_needs(needs, now)
    if letter != OPEN:
        return letter
    try:
        return OPEN if _holds(needs, one, now, value) else SKIPPED
    except TemplateError:
        return FAILED


def _holds(needs: Needs, one: Condition, now: Sequence[str], value: Value) -> bool:
    return condition.holds(one, {name: now[number] for name, number in needs.names.items()}, value)


def _why_not_by_rule(step: StepEdges, now: Sequence[str]) -> str:
    """A skip is the rule's own if the step would be skipped even if its skipped upstreams had succeeded."""
    s, k, b = counted("".join([now[number] for number in step.order]))
    return "rule" if rules.decide_join(step.rule, s + k, 0, b, len(step.order)) == SKIPPED else "upstream_skipped"


class _NoValue(Exception):
    pass


def _no_value(root: str) -> object:
    raise _NoValue


def _downstream(index: Edges, numbers: Iterable[int]) -> set[int]:
    return {below for number in numbers for below in index.downstream[number]}


def _may_cancel(index: Edges, number: int) -> bool:
    return index.steps[number].rule != rules.ALWAYS


def _has_failure(graph: Graph, letters: str) -> bool:
    if FAILED not in letters and CANCELLED not in letters:
        return False
    return any(
        letter in (FAILED, CANCELLED) and not step.may_fail for letter, step in zip(letters, graph.steps, strict=True)
    )
