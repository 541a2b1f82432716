"""`where=`: which payloads of an event a subscriber wants.

A filter is a dict whose keys are paths into the payload: `{"order.total": {"gt": 100}, "kind": "new"}`. Every path must
match. A path is written like a reference in a workflow: `order.total`, `files[0].name`, `headers["X-Id"]`. The value of
a path is either a dict of operators, all of which must hold, or a plain value, which must be equal. The operators are
the comparisons of `when`, and two more: `exists` (true or false: whether the payload has the path) and `prefix` (of a
text). A path that the payload does not have, and a value that cannot be compared, do not match.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from rota.domain import payload
from rota.domain.errors import ArgumentsError, DefinitionError
from rota.domain.workflow import condition, reference
from rota.domain.workflow.reference import Key
from rota.domain.workflow.template import TemplateError

Filter = Mapping[str, Any]
MOST_PATHS = 20
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "in")
_OPERATORS = (*_COMPARISONS, "exists", "prefix")
_MISSING = object()


def check(where: Any, what: str, *, with_templates: bool = False) -> Filter:
    """Raises a DefinitionError if the filter is malformed. `what` names the owner of the filter in the message.

    `with_templates`: the filter is part of a workflow's graph, where operands may be templates, whose values are not
    known yet.
    """
    if not isinstance(where, Mapping):
        raise DefinitionError(f"{what}: where must be a dict by path, such as {{'kind': 'new'}}, not {where!r}")
    if len(where) > MOST_PATHS:
        raise DefinitionError(f"{what}: where has at most {MOST_PATHS} paths, not {len(where)}")
    for path, wanted in where.items():
        try:
            reference.parse(path)
        except DefinitionError:
            raise DefinitionError(
                f"{what}: where: {path!r} is not a path into a payload, such as 'order.total' or 'files[0].name'"
            ) from None
        if with_templates and _is_template(wanted):
            continue
        if not _operators(wanted):
            raise DefinitionError(
                f"{what}: where: {path}: {{}} has no operator; to compare with an empty object, write {{'eq': {{}}}}"
            )
        for name, operand in _operators(wanted).items():
            is_known = not (with_templates and _is_template(operand))
            if is_known and (problem := _problem(name, operand)):
                raise DefinitionError(f"{what}: where: {path}: {problem}")
    try:
        payload.encode(dict(where), f"{what}: where")
    except ArgumentsError as error:
        raise DefinitionError(str(error)) from None
    return dict(where)


def with_explicit_eq(where: Filter) -> Filter:
    """The filter with `{"eq": template}` in place of each plain template.

    Otherwise, if the value of the template is an object, its members would be read as operators.
    """
    return {path: {"eq": wanted} if _is_template(wanted) else wanted for path, wanted in where.items()}


def matches(where: Filter, value: Any) -> bool:
    """Whether a decoded payload passes the filter."""
    return all(
        _holds(name, operand, _found(value, _path(path)))
        for path, wanted in where.items()
        for name, operand in _operators(wanted).items()
    )


def _operators(wanted: Any) -> Mapping[str, Any]:
    return wanted if isinstance(wanted, Mapping) else {"eq": wanted}


def _is_template(value: Any) -> bool:
    return isinstance(value, Mapping) and any(str(key).startswith("$") for key in value)


def _problem(name: Any, operand: Any) -> str | None:
    """What is wrong with an operator and its operand; None if nothing is."""
    match name:
        case "exists" if not isinstance(operand, bool):
            return f"exists takes True or False, not {operand!r}"
        case "prefix" if not isinstance(operand, str):
            return f"prefix takes a text, not {operand!r}"
        case "in" if not isinstance(operand, list):
            return f"in takes a list, not {operand!r}"
        case "lt" | "le" | "gt" | "ge" if isinstance(operand, bool) or not isinstance(operand, int | float | str):
            return f"{name} takes a number or a text, not {operand!r}"
        case _ if name not in _OPERATORS:
            known = ", ".join(_OPERATORS)
            return f"there is no operator {name!r}: use {known}; to compare with an object, write {{'eq': {{…}}}}"
        case _:
            return None


def _holds(name: str, operand: Any, found: Any) -> bool:
    if name == "exists":
        return (found is not _MISSING) is operand
    if found is _MISSING:
        return False
    # The operand may be the value of a step, which `check` did not know, so its type is checked here.
    if name == "prefix":
        return isinstance(found, str) and isinstance(operand, str) and found.startswith(operand)
    try:
        return name in _COMPARISONS and condition.compared(name, found, operand)
    except TemplateError:
        return False


@lru_cache(maxsize=1000)
def _path(text: str) -> tuple[Key, ...]:
    parsed = reference.parse(text)
    return (parsed.root, *parsed.path)


def _found(value: Any, path: tuple[Key, ...]) -> Any:
    for key in path:
        match value:
            case dict() if isinstance(key, str) and key in value:
                value = value[key]
            case list() if isinstance(key, int) and -len(value) <= key < len(value):
                value = value[key]
            case _:
                return _MISSING
    return value
