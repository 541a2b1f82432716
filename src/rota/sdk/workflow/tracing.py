"""Runs the function of a workflow twice with symbolic values, and makes a graph of what it did.

The second run must do the same: otherwise the graph would depend on the clock, on chance or on the process.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import zip_longest
from types import CodeType
from typing import Any, NamedTuple

import msgspec

from rota.domain.errors import WorkflowError
from rota.domain.workflow.graph import Step, Template
from rota.domain.workflow.reference import INPUT
from rota.domain.workflow.schema import Schema
from rota.executors.signature import Signature
from rota.sdk.workflow import place
from rota.sdk.workflow.build import Build, building
from rota.sdk.workflow.place import Place
from rota.sdk.workflow.scan import result_place, scan
from rota.sdk.workflow.templates import template_of
from rota.sdk.workflow.value import Condition, Symbol, Value

_INSTEAD = "pass it in as a parameter, or use `this_run`"


class Trace(NamedTuple):
    """The record of one run of the function."""

    steps: tuple[Step, ...]
    result: Template
    places: dict[str, Place]


class Subject(NamedTuple):
    """The function to trace."""

    app: str
    name: str
    function: Callable[..., Any]
    signature: Signature
    parameters: dict[str, Schema]

    @property
    def code(self) -> CodeType | None:
        return getattr(inspect.unwrap(self.function), "__code__", None)

    def end(self) -> Place:
        return result_place(inspect.unwrap(self.function)) or self.start()

    def start(self) -> Place:
        code = self.code
        return Place("?", 0, "") if code is None else Place(code.co_filename, code.co_firstlineno, "")


def problems(subject: Subject) -> list[WorkflowError]:
    """The problems that the source shows, before the function runs."""
    function = inspect.unwrap(subject.function)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return [_whole(subject, "the function of a workflow runs while it is built: write `def`, not `async def`")]
    if inspect.isgeneratorfunction(function):
        return [_whole(subject, "the function of a workflow has no `yield`: return once, at the end")]
    if subject.signature.context_parameter is not None:
        return [_whole(subject, "a workflow has no context: use `this_run`, or the context of its jobs")]
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    if any(one.kind in variable for one in inspect.signature(function).parameters.values()):
        return [_whole(subject, "a workflow has no * or ** parameters: pass a list or a dict")]
    return scan(function, subject.name)


def traced(subject: Subject) -> Trace | list[WorkflowError]:
    """The trace; or what the function does that cannot be in a graph, in the order in which it did so."""
    one = _run(subject)
    other = _run(subject) if isinstance(one, Trace) else one
    if not isinstance(one, Trace) or not isinstance(other, Trace):
        return other if isinstance(one, Trace) else one
    for step, difference in _differences(one, other):
        at = one.places.get(step) or other.places.get(step) or subject.end()
        message = f"the function gave something else when it ran again: {difference}; {_INSTEAD}"
        return [at.error(subject.name, message)]
    return one


def _run(subject: Subject) -> Trace | list[WorkflowError]:
    build = Build(subject.app, subject.name, subject.code)
    values = {
        name: Value(Symbol(build, {"$": f"{INPUT}.{name}"}, schema)) for name, schema in subject.parameters.items()
    }
    with building(build):
        try:
            returned = subject.function(**values)
        except WorkflowError as error:
            return build.problems or [error]
        except Exception as error:
            failure = place.raised_at(error.__traceback__, subject.code).error(subject.name, _in_words(error))
            failure.__cause__ = error
            return [*build.problems, failure]
        build.check_end()
        found = list(build.problems)
        try:
            result = template_of(returned, build, "the result")
        except WorkflowError as error:
            message = str(error).rpartition(f"`{error.expression}`: ")[2]
            return [*found, subject.end().error(subject.name, message)]
    return found or Trace(tuple(build.steps.values()), result, build.places)


def _in_words(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}"
    if Value.__name__ in str(error) or Condition.__name__ in str(error):
        return f"{text}; a value of a later step is not known yet: do it in a job"
    return text


def _differences(one: Trace, other: Trace) -> Iterator[tuple[str, str]]:
    """The steps that differ, and how."""
    for step, again in zip_longest(one.steps, other.steps):
        if step is None or again is None:
            known = step or again
            yield known.id, f"step {known.id!r} is only in one of two runs"
        elif step != again:
            yield step.id, f"step {step.id!r}, {_difference(msgspec.to_builtins(step), msgspec.to_builtins(again))}"
    if one.result != other.result:
        yield "", f"the result: {one.result!r}, then {other.result!r}"


def _difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    for field in one.keys() | other.keys():
        before, after = one.get(field), other.get(field)
        if before == after:
            continue
        if field == "with":
            for name in {**(before or {}), **(after or {})}:
                if (before or {}).get(name) != (after or {}).get(name):
                    return f"argument {name!r}: {(before or {}).get(name)!r}, then {(after or {}).get(name)!r}"
        return f"{field}: {before!r}, then {after!r}"
    return "the order of its fields"


def _whole(subject: Subject, message: str) -> WorkflowError:
    at = subject.start()
    return at._replace(expression=f"def {subject.function.__name__}").error(subject.name, message)
