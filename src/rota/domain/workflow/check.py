"""Checks on a graph, for traced functions and for data alike.

Each problem has a JSON pointer to its place in the data form; the tracer turns the number of its step into a file and
a line. What a step runs is checked where it is known: its parameters and its result are JSON schemas (`Callee`).
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from typing import Any

import msgspec

from rota.domain import event, event_filter, names, rank, retry
from rota.domain.duration import positive_seconds, seconds
from rota.domain.errors import DefinitionError
from rota.domain.headers import checked_headers
from rota.domain.unique import check_key
from rota.domain.workflow import condition as conditions
from rota.domain.workflow import edges, reference, schema, template
from rota.domain.workflow import wait as waits
from rota.domain.workflow.branches import Branches
from rota.domain.workflow.graph import FORM, MOST_STEPS, Graph, Step
from rota.domain.workflow.reference import RESERVED
from rota.domain.workflow.rules import RULES
from rota.domain.workflow.schema import Schema
from rota.domain.workflow.template import Use
from rota.domain.workflow.types import RESULTS, Types, escaped
from rota.domain.workflow.wait import Approve, AwaitEvent, Sleep, Wait

WIDEST = 1_000_000
DEEPEST = 1_000
_KINDS = ("job", "workflow", *waits.FIELDS)
_JOB_FIELDS = ("arguments", "positional", "queue", "priority", "delay", "timeout", "retry", "tags", "headers", "map")
"""The fields of a step that a wait cannot have."""
_NAMES_IN_DATA = {"arguments": "with"}
"""The fields whose name in the data form differs."""
_SHARE = re.compile(r"(100|[0-9]{1,2})(\.[0-9]+)?%", re.ASCII)


class Callee(msgspec.Struct, frozen=True, kw_only=True):
    """What a step runs: the schema of each parameter and of the result."""

    parameters: dict[str, Schema] = {}
    required: frozenset[str] = frozenset()
    takes_others: bool = False
    """Whether arguments of any other name are accepted."""
    result: Schema = {}
    first: str | None = None
    """The name of its first parameter. If the job undoes a step, this parameter takes the result of the step."""


class Problem(msgspec.Struct, frozen=True):
    pointer: str
    message: str
    step: int | None = None


def check(
    graph: Graph, jobs: Mapping[str, Callee] | None = None, workflows: Mapping[str, Callee] | None = None
) -> list[Problem]:
    """Every problem of the graph. Without `jobs` and `workflows` the targets of the steps are not checked."""
    found = [*_about_graph(graph), *_about_names(graph)]
    for number, step in enumerate(graph.steps):
        found += _about_step(graph, number, step)
    found += _uses_of_result(graph)
    if found:
        return found
    try:
        order = topological(graph)
    except CycleError as error:
        return [_cycle(graph, error.args[1])]
    return [*_about_callees(graph, jobs, workflows), *_about_branches(graph, order), *_about_useless_waits(graph)]


def topological(graph: Graph) -> list[int]:
    """The numbers of the steps, each after those that it waits for. Raises a CycleError."""
    numbers = {number: {graph.numbers[name] for name in upstreams(step)} for number, step in enumerate(graph.steps)}
    return list(TopologicalSorter(numbers).static_order())


def upstreams(step: Step) -> set[str]:
    """The names of the steps that a step waits for."""
    uses = [*template.references(step.values)]
    uses += [use for condition in step.when for use in conditions.references(condition)]
    return {*step.after, *(one.root for use in uses for one in use.references if one.root not in RESERVED)}


# --- Each part by itself --------------------------------------------------------------------------


def _about_graph(graph: Graph) -> Iterator[Problem]:
    if graph.rota != FORM:
        yield Problem("/rota", f"the form is {FORM!r}, not {graph.rota!r}")
    if len(graph.steps) > MOST_STEPS:
        yield Problem(
            "/steps", f"a workflow has at most {MOST_STEPS:,} steps, not {len(graph.steps):,}: map over a list"
        )
    if not graph.steps:
        yield Problem("/steps", "the workflow has no steps")
    if len(set(graph.undo_on)) < len(graph.undo_on):
        yield Problem("/undo_on", "undo_on lists the same end twice")
    if graph.timeout is not None and not graph.timeout > 0:
        yield Problem("/timeout", f"timeout must be longer than zero, not {graph.timeout}")
    for name, value, most in (("max_nesting", graph.max_nesting, DEEPEST), ("max_width", graph.max_width, WIDEST)):
        if not 1 <= value <= most:
            yield Problem(f"/{name}", f"{name} must be between 1 and {most:,}, not {value}")
    try:
        names.check(graph.name, "a workflow's name")
    except DefinitionError as error:
        yield Problem("/name", str(error))
    for name, one in graph.parameters.items():
        if not name.isidentifier() or keyword.iskeyword(name):
            yield Problem(f"/parameters/{escaped(name)}", f"a parameter has a name such as 'day', not {name[:64]!r}")
        if wrong := schema.problem(one):
            yield Problem(f"/parameters/{escaped(name)}", f"parameter {name!r} is no JSON schema: {wrong}")
    for name in graph.required:
        if name not in graph.parameters:
            yield Problem("/required", f"there is no parameter {name!r}{_near(name, graph.parameters)}")


def _about_names(graph: Graph) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for number, step in enumerate(graph.steps):
        pointer = f"/steps/{number}/id"
        if not reference.is_name(step.id):
            yield Problem(pointer, f"a step's name has letters, digits, _ and -, not {step.id[:64]!r}", number)
        elif step.id in RESERVED:
            yield Problem(pointer, f"no step can be called {step.id!r}, which means the {_meaning(step.id)}", number)
        elif step.id in seen:
            yield Problem(pointer, f"there are two steps {step.id!r}: give one of them another name", number)
        seen.setdefault(step.id, number)


def _about_step(graph: Graph, number: int, step: Step) -> Iterator[Problem]:
    def problem(place: str, message: str) -> Problem:
        return Problem(f"/steps/{number}{place}", f"step {step.id!r}: {message}", number)

    if sum(getattr(step, name) is not None for name in _KINDS) != 1:
        yield problem("", "it must have exactly one of job, workflow, sleep, approve and event")
        return
    if step.wait is not None:
        yield from _about_wait(step, step.wait, problem)
    if step.rule not in RULES:
        yield problem("/rule", f"there is no rule {step.rule!r}{_near(step.rule, RULES) or ': ' + ', '.join(RULES)}")
    if step.undo is not None and step.workflow is not None:
        yield problem("/undo", "a sub-workflow is undone by the undo of its own steps")
    if step.undo_failed and step.undo is None:
        yield problem("/undo_failed", "undo_failed needs undo, the job that undoes the step")
    yield from _about_map(step, problem)
    yield from _about_options(step, problem)
    for place, name in enumerate(step.after):
        if name not in graph.numbers:
            yield problem(f"/after/{place}", f"there is no step {name!r}{_near(name, graph.numbers)}")
    for name, argument in step.arguments.items():
        if name.startswith("$"):
            yield problem("/with", f"the arguments are given by name, and no name begins with $: {name!r}")
        yield from _unknown(graph, template.references(argument), f"/with/{escaped(name)}", problem)
    yield from _unknown(graph, template.references(step.map), "/map", problem)
    for pointer, value in _templates(step):
        yield from _unknown(graph, template.references(value), pointer, problem)
    for place, condition in enumerate(step.when):
        yield from _unknown(graph, conditions.references(condition), f"/when/{place}", problem)


def _about_wait(step: Step, wait: Wait, problem: Callable[[str, str], Problem]) -> Iterator[Problem]:
    kind = waits.kind_of(wait)
    for field in _JOB_FIELDS:
        if getattr(step, field) not in (None, (), {}):
            name = _NAMES_IN_DATA.get(field, field)
            yield problem(f"/{name}", f"{name} is for a step that runs a job, not for {kind.function}")
    lengths = {"": wait.duration} if isinstance(wait, Sleep) else {"/timeout": wait.timeout}
    if isinstance(wait, AwaitEvent) and wait.lookback is not None:
        lengths["/lookback"] = wait.lookback
    for place, length in lengths.items():
        try:
            positive_seconds(length, place.removeprefix("/") or kind.function)
        except DefinitionError as error:
            yield problem(f"/{kind.field}{place}", str(error))
    if isinstance(wait, Approve):
        for number, one in enumerate(wait.who):
            if not one.strip():
                yield problem(f"/approve/who/{number}", "who lists names or roles of persons, and this one is empty")
    if isinstance(wait, AwaitEvent):
        if not wait.names:
            yield problem("/event/names", "names is empty: it must name at least one event")
        for number, one in enumerate(wait.names):
            try:
                event.check_name(one)
            except DefinitionError as error:
                yield problem(f"/event/names/{number}", str(error))
        try:
            event_filter.check(wait.where or {}, "event", with_templates=True)
        except DefinitionError as error:
            yield problem("/event/where", str(error).removeprefix("event: "))


def _templates(step: Step) -> Iterator[tuple[str, Any]]:
    """The templates of a wait, each with its place below the step as a JSON pointer."""
    if step.approve is not None:
        yield "/approve/text", step.approve.text
    if step.event is not None:
        yield "/event/subject", step.event.subject
        yield "/event/where", step.event.where


def _about_options(step: Step, problem: Callable[[str, str], Problem]) -> Iterator[Problem]:
    """The options that a step shares with an enqueue."""
    checks: dict[str, Callable[[Any], object]] = {
        "queue": lambda value: names.check(value, "a queue's name"),
        "priority": rank.level,
        "delay": lambda value: seconds(value, "delay"),
        "timeout": lambda value: positive_seconds(value, "timeout"),
        "tags": lambda value: [check_key(tag, "a tag") for tag in value],
        "headers": checked_headers,
        "retry": retry.described,
    }
    for name, checked in checks.items():
        value = getattr(step, name)
        try:
            if value not in (None, (), {}):
                checked(value)
        except (DefinitionError, KeyError, TypeError) as error:
            yield problem(f"/{name}", str(error) if isinstance(error, DefinitionError) else f"{name} is malformed")


def _about_map(step: Step, problem: Callable[[str, str], Problem]) -> Iterator[Problem]:
    if not step.is_map:
        for name, value in (("at_once", step.at_once), ("tolerate", step.tolerate), ("as", step.item)):
            if value is not None:
                yield problem(f"/{name}", f"{name} is for a step with a map")
        return
    if step.at_once is not None and step.at_once < 1:
        yield problem("/at_once", f"at_once is the number of items that may run at once, not {step.at_once}")
    if isinstance(step.tolerate, str) and not _SHARE.fullmatch(step.tolerate):
        yield problem("/tolerate", f"tolerate is a whole number or a percentage such as '5%', not {step.tolerate!r}")
    if isinstance(step.tolerate, int) and step.tolerate < 0:
        yield problem("/tolerate", f"tolerate is a whole number or a percentage such as '5%', not {step.tolerate}")
    if step.item is not None and step.item in step.arguments:
        yield problem(f"/with/{escaped(step.item)}", f"{step.item!r} takes the item of the map")
    if step.item is None and step.arguments:
        yield problem("/with", "each item is a whole call, so the items share no arguments: name the parameter by `as`")


def _uses_of_result(graph: Graph) -> Iterator[Problem]:
    return _unknown(graph, template.references(graph.result), "", lambda _, text: Problem("/result", text))


def _unknown(
    graph: Graph, uses: Iterable[Use], place: str, problem: Callable[[str, str], Problem]
) -> Iterator[Problem]:
    """Yields malformed parts, and references to steps that the graph does not have."""
    try:
        for one in (one for use in uses for one in use.references):
            if one.root not in graph.numbers and one.root not in RESERVED:
                yield problem(place, f"there is no step {one.root!r}{_near(one.root, graph.numbers)}")
    except DefinitionError as error:
        yield problem(place, str(error))


# --- The parts together ---------------------------------------------------------------------------


def _cycle(graph: Graph, numbers: list[int]) -> Problem:
    path = " → ".join(graph.steps[number].id for number in numbers)
    last = max(numbers)
    return Problem(f"/steps/{last}", f"the steps wait for each other in a cycle: {path}", last)


def _about_branches(graph: Graph, order: list[int]) -> Iterator[Problem]:
    branches = Branches(graph, order)
    for name, (one, other) in branches.never().items():
        number = graph.numbers[name]
        yield Problem(
            f"/steps/{number}",
            f"step {name!r} can never run: it needs {one} and {other}, which exclude each other; "
            'use first(a, b), or after(…, rule="none_failed")',
            number,
        )
    for use in () if branches.never() else branches.missing(graph.result):
        named = ", ".join(str(one) for one in use.references)
        yield Problem(
            "/result",
            f"the result can be missing: {named} may have no value in a run that succeeds; use default(…) or first(…)",
        )


def _about_useless_waits(graph: Graph) -> Iterator[Problem]:
    """A sleep that no step comes after, and an approval whose answer has no effect."""
    downstream = edges.of(graph).downstream
    uses = [use for step in graph.steps for use in template.references(step.values)]
    uses += [use for step in graph.steps for one in step.when for use in conditions.references(one)]
    uses += template.references(graph.result)
    used = {one.root for use in uses for one in use.references if one.path or use.kind != "end"}
    for number, step in enumerate(graph.steps):
        if step.sleep is not None and not downstream[number]:
            yield Problem(
                f"/steps/{number}", f"no step comes after {step.id!r}: write job.after(sleep(…)).step(…)", number
            )
        if step.approve is not None and not step.approve.required and step.id not in used:
            yield Problem(
                f"/steps/{number}/approve",
                f"step {step.id!r}: no step or condition uses the answer, so a rejection would have no effect; "
                "use `with when(answer.approved):`, or required=True",
                number,
            )


def _about_callees(
    graph: Graph, jobs: Mapping[str, Callee] | None, workflows: Mapping[str, Callee] | None
) -> Iterator[Problem]:
    found: dict[str, Callee] = {}
    for number, step in enumerate(graph.steps):
        if step.wait is not None:
            continue
        known, field = (jobs, "job") if step.job is not None else (workflows, "workflow")
        if known is None:
            continue
        if step.runs not in known:
            message = f"step {step.id!r}: the app has no {field} {step.runs!r}{_near(step.runs, known)}"
            yield Problem(f"/steps/{number}/{field}", message, number)
        else:
            found[step.id] = known[step.runs]
            for place, message in _about_arguments(step, known[step.runs]):
                yield Problem(f"/steps/{number}{place}", f"step {step.id!r}: {message}", number)
        if step.undo is not None and jobs is not None and step.job in jobs:
            for message in _about_undo(step, step.undo, jobs):
                yield Problem(f"/steps/{number}/undo", f"step {step.id!r}: {message}", number)
    results = {step.id: RESULTS[type(step.wait)] for step in graph.steps if step.wait is not None}
    types = Types(graph, results | {name: callee.result for name, callee in found.items()})
    for number, step in enumerate(graph.steps):
        callee = found.get(step.id)
        for place, message in types.about(step, callee.parameters if callee else {}):
            yield Problem(f"/steps/{number}{place}", f"step {step.id!r}: {message}", number)
    for message in types.missing(graph.result):
        yield Problem("/result", f"the result: {message}")


def _about_undo(step: Step, name: str, jobs: Mapping[str, Callee]) -> Iterator[str]:
    if name not in jobs:
        yield f"the app has no job {name!r} for its undo{_near(name, jobs)}"
        return
    callee, result = jobs[name], jobs[step.runs].result
    if callee.first is None:
        yield f"{name}(), which undoes it, needs a parameter for its result"
    elif missing := sorted(callee.required - {callee.first}):
        yield f"{name}(), which undoes it, gets only its result: the parameter {missing[0]!r} needs a default"
    elif not schema.fits(result, wanted := callee.parameters.get(callee.first, {})):
        taken, given = schema.words(wanted), schema.words(result)
        yield f"argument {callee.first!r} of {name}(), which undoes it, takes {taken}, but its result is {given}"
    elif step.undo_failed and not schema.fits(schema.of_literal(None), wanted):
        yield (
            f"with undo_failed, {name}() gets null if the step did not succeed, but its argument "
            f"{callee.first!r} takes {schema.words(wanted)}"
        )


def _about_arguments(step: Step, callee: Callee) -> Iterator[tuple[str, str]]:
    if step.is_map and step.item is None:
        return
    given = {**step.arguments, **({step.item: None} if step.item is not None else {})}
    if missing := sorted(callee.required - given.keys()):
        yield "/with", f"{step.runs}() needs the argument {missing[0]!r}"
    if not callee.takes_others:
        for name in (name for name in given if name not in callee.parameters):
            place = "/as" if name == step.item else f"/with/{escaped(name)}"
            yield place, f"{step.runs}() has no argument {name!r}{_near(name, callee.parameters)}"


def _near(name: str, known: Iterable[Any]) -> str:
    near = get_close_matches(name, [str(one) for one in known], 1)
    return f": did you mean {near[0]!r}?" if near else ""


def _meaning(root: str) -> str:
    return "arguments of the run" if root == reference.INPUT else "run itself"
