"""Conditions of `when`: objects with one operator, over values (`{"gt": [{"$": "size.pages"}, 500]}`) or over outcomes
(`{"failed": "load"}`).
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

from rota.domain.errors import DefinitionError
from rota.domain.workflow import template
from rota.domain.workflow.graph import Condition
from rota.domain.workflow.letters import BAD, SKIPPED, SUCCESS
from rota.domain.workflow.reference import Reference
from rota.domain.workflow.template import TemplateError, Use, Value

_EQUALITY = {"eq": operator.eq, "ne": operator.ne}
_ORDER = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
_TWO = {*_EQUALITY, *_ORDER, "in"}
_ONE = {"is_none", "is_true"}
_OUTCOMES = {"succeeded": SUCCESS, "failed": BAD, "skipped": SKIPPED}
_SEVERAL = {"all": all, "any": any}
_TAKES = {
    **{name: f"{name} takes two values" for name in _TWO},
    **{name: f"{name} takes the name of a step" for name in _OUTCOMES},
    **{name: f"{name} takes a list of conditions" for name in _SEVERAL},
}


def references(condition: Condition) -> Iterator[Use]:
    """What the condition uses, in written order. A DefinitionError says what is malformed."""
    match _parts(condition):
        case name, [first, second] if name in _TWO:
            yield from template.references([first, second])
        case name, one if name in _ONE:
            yield from template.references(one)
        case name, str() as step if name in _OUTCOMES:
            yield Use("end", (Reference(step),))
        case name, [_, *_] as several if name in _SEVERAL:
            for inner in several:
                yield from references(inner)
        case "not", inner:
            yield from references(inner)
        case name, _:
            raise DefinitionError(_TAKES.get(name, f"{name!r} is not an operator of a condition"))


def holds(condition: Condition, letters: Mapping[str, str], value: Value) -> bool:
    """Whether the condition is true, by the letters of the steps it uses, all of which have ended.

    `all` and `any` are judged from left to right and stop as Python does. Raises a TemplateError if a path is missing
    or two types do not compare.
    """
    match _parts(condition):
        case name, [first, second] if name in _TWO:
            return compared(name, _valued(first, letters, value), _valued(second, letters, value))
        case "is_none", one:
            return _valued(one, letters, value) is None
        case "is_true", one:
            return _boolean(_valued(one, letters, value))
        case "not", inner:
            return not holds(inner, letters, value)
        case name, operand if name in _SEVERAL:
            return _SEVERAL[name](holds(inner, letters, value) for inner in operand)
        case name, step:
            return letters[step].lower() in _OUTCOMES[name]


def compared(name: str, first: Any, second: Any) -> bool:
    """Whether an operator holds for two values. Raises a TemplateError if the values cannot be compared."""
    if name in _EQUALITY:
        return bool(_EQUALITY[name](first, second))
    if name == "in":
        if not isinstance(second, list):
            raise TemplateError(f"the operator `in` needs a list on its right side, not {template.kind(second)}")
        return first in second
    kinds = {template.kind(first), template.kind(second)}
    if kinds not in ({"a number"}, {"a text"}):
        raise TemplateError(f"{name} cannot compare {template.kind(first)} with {template.kind(second)}")
    return bool(_ORDER[name](first, second))


def _parts(condition: Condition) -> tuple[str, Any]:
    if not isinstance(condition, dict) or len(condition) != 1:
        raise DefinitionError(f"a condition is an object with one operator, not {condition!r}")
    return next(iter(condition.items()))


def _valued(operand: Any, letters: Mapping[str, str], value: Value) -> Any:
    return template.resolve(template.lowered(operand, letters), value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TemplateError(f"a value that stands as a condition is true or false, not {template.kind(value)}")
    return value
