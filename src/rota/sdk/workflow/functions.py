"""The functions that a workflow's function uses on values: `first`, `default`, `all_of` and so on."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from string import Formatter
from typing import Any, Generic, TypeVar, cast

import msgspec

from rota.domain.workflow import schema
from rota.domain.workflow.schema import STRING
from rota.domain.workflow.types import OUTCOME
from rota.sdk.workflow import build as builds
from rota.sdk.workflow.blocks import condition_of
from rota.sdk.workflow.build import Build
from rota.sdk.workflow.order import flattened, step_name
from rota.sdk.workflow.templates import template_of
from rota.sdk.workflow.value import Condition, Symbol, Value, as_value, reference_of

T = TypeVar("T")
D = TypeVar("D")


class StepOutcome(msgspec.Struct, Generic[T], frozen=True):
    """How one item of a map ended. `result` is None unless `status` is `success`."""

    index: int
    status: str
    result: T | None = None
    error: str | None = None


def first(*values: T) -> T:
    """The value of the first of these steps, in this order, that succeeded."""
    build = builds.required("first(…)")
    symbols = [_symbolic(build, value, "first(…)") for value in values]
    choices = [one for symbol in symbols for one in _choices(build, symbol, "first(…)")]
    if not choices:
        build.refuse("first(…) takes the values of at least one step")
    return cast("T", Value(Symbol(build, {"$first": choices}, schema.any_of([one.schema for one in symbols]))))


def default(value: T, other: D) -> T | D:
    """The value of a step, or `other` if the step did not succeed."""
    build = builds.required("default(…)")
    symbol = _symbolic(build, value, "default(…)")
    choices = _choices(build, symbol, "default(…)")
    choice = choices[0] if len(choices) == 1 else {"$first": choices}
    template = {"$default": [choice, template_of(other, build, "default(…)")]}
    known = as_value(other)
    kind = schema.of_literal(template["$default"][1]) if known is None else known.__rota__.schema
    return cast("T | D", Value(Symbol(build, template, schema.any_of([symbol.schema, kind]))))


def outcomes(mapped: list[T]) -> list[StepOutcome[T]]:
    """Every item of a map, in the order of the list, with its status, result or error."""
    build = builds.required("outcomes(…)")
    value = as_value(mapped)
    found = None if value is None else reference_of(value)
    if found is None or found.path or found.root not in build.steps or not build.steps[found.root].is_map:
        build.refuse("outcomes(…) takes the value of job.map(…) itself")
    return cast("list[StepOutcome[T]]", Value(Symbol(build, {"$outcomes": found.root}, schema.list_of(OUTCOME))))


def text(pattern: str, /, **values: object) -> str:
    """A text with values in it: `text("report of {day}", day=x)`."""
    build = builds.required("text(…)")
    try:
        fields = [(name, form, how) for _, name, form, how in Formatter().parse(pattern) if name is not None]
    except ValueError as error:
        build.refuse(f"{pattern!r} is not a text with names in braces: {error}")
    if any(form or how for _, form, how in fields):
        build.refuse("a name in braces has no format here: do it in a job")
    if wrong := sorted({name for name, _, _ in fields} ^ values.keys()):
        build.refuse(f"names in braces and keywords must be the same; {wrong[0]!r} is only in one of them")
    template = {"$text": pattern, **{name: template_of(value, build, name) for name, value in values.items()}}
    return cast("str", Value(Symbol(build, template, STRING)))


def chain(*steps: object) -> None:
    """Runs steps one after another; a list of steps is run side by side: `chain(a, [b, c], d)`."""
    build = builds.required("chain(…)")
    groups = [[step_name(build, one, "chain(…)") for one in flattened([step])] for step in steps]
    for before, after in pairwise(groups):
        for one in before:
            for other in after:
                build.order(one, other)


def one_of(value: T, options: Iterable[T]) -> bool:
    """Whether the value is one of these: `in` for values that are not known yet."""
    build = builds.required("one_of(…)")
    listed = list(options) if as_value(options) is None else options
    return _condition(build, {"in": [template_of(one, build, "one_of(…)") for one in (value, listed)]})


def is_none(value: object) -> bool:
    """Whether the value is None."""
    build = builds.required("is_none(…)")
    return _condition(build, {"is_none": template_of(value, build, "is_none(…)")})


def all_of(*conditions: bool) -> bool:
    """`and` for conditions on values."""
    build = builds.required("all_of(…)")
    return _condition(build, {"all": _conditions(build, conditions, "all_of(…)")})


def any_of(*conditions: bool) -> bool:
    """`or` for conditions on values."""
    build = builds.required("any_of(…)")
    return _condition(build, {"any": _conditions(build, conditions, "any_of(…)")})


def not_(condition: bool) -> bool:
    """`not` for a condition on values."""
    build = builds.required("not_(…)")
    return _condition(build, {"not": condition_of(condition, build, "not_(…)")})


def succeeded(step: object) -> bool:
    """Whether the step succeeded. The condition waits for its end."""
    return _outcome("succeeded", step)


def failed(step: object) -> bool:
    """Whether the step failed, was cancelled, or did not run because a step before it failed."""
    return _outcome("failed", step)


def skipped(step: object) -> bool:
    """Whether the step was skipped."""
    return _outcome("skipped", step)


def _outcome(operator: str, step: object) -> bool:
    build = builds.required(f"{operator}(…)")
    return _condition(build, {operator: step_name(build, step, f"{operator}(…)")})


def _condition(build: Build, data: dict[str, Any]) -> bool:
    return cast("bool", Condition(build, data))


def _conditions(build: Build, conditions: tuple[bool, ...], what: str) -> list[dict[str, Any]]:
    if not conditions:
        build.refuse(f"{what} takes at least one condition")
    return [condition_of(one, build, what) for one in conditions]


def _symbolic(build: Build, value: object, what: str) -> Symbol:
    known = as_value(value)
    if known is None:
        build.refuse(f"{what} takes the values of steps, not {value!r}")
    template_of(known, build, what)  # Refuses a value of another build.
    return known.__rota__


def _choices(build: Build, symbol: Symbol, what: str) -> list[Any]:
    if list(symbol.template) == ["$"]:
        return [symbol.template]
    if "$first" not in symbol.template:
        build.refuse(f"{what} takes values of steps or parts of them, not the result of first(…) and the like")
    return list(symbol.template["$first"])
