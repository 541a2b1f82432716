"""What templates and conditions refer to, with the place of each as a JSON pointer, and what is malformed in them.

A reference needs its step's success (`value`), only its end (`end`: `$default`, `$outcomes`, `succeeded` …), or the
success of one step of a group (`group`: `$first`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from string import Formatter
from typing import Any, Literal

import msgspec

from rota.domain.errors import DefinitionError
from rota.domain.workflow import reference
from rota.domain.workflow.graph import Condition, Step, Template
from rota.domain.workflow.reference import RESERVED, Reference

Need = Literal["value", "end", "group"]
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "in")
OUTCOMES = ("succeeded", "failed", "skipped")
OPERATORS = (*COMPARISONS, "is_none", "is_true", "all", "any", "not", *OUTCOMES)
TEMPLATES = ("$", "$literal", "$text", "$first", "$default", "$outcomes")


class Use(msgspec.Struct, frozen=True):
    """One reference in a template or condition."""

    reference: Reference
    need: Need
    pointer: str
    group: str = ""
    """The pointer of the `$first` that the reference belongs to."""

    @property
    def step(self) -> str | None:
        return None if self.reference.root in RESERVED else self.reference.root


class Malformed(msgspec.Struct, frozen=True):
    """A place that cannot be read."""

    pointer: str
    message: str


Found = Use | Malformed


def of_step(step: Step, pointer: str = "") -> Iterator[Found]:
    """Everything that a step's arguments, its list of items and its conditions refer to. Not its `after`."""
    for name, template in step.arguments.items():
        yield from of_template(template, f"{pointer}/with/{escaped(name)}")
    if step.map is not None:
        yield from of_template(step.map, f"{pointer}/map")
    for number, condition in enumerate(step.when):
        yield from of_condition(condition, f"{pointer}/when/{number}")


def of_template(template: Template, pointer: str) -> Iterator[Found]:
    if isinstance(template, list | tuple):
        for number, item in enumerate(template):
            yield from of_template(item, f"{pointer}/{number}")
    elif isinstance(template, dict):
        special = [name for name in template if isinstance(name, str) and name.startswith("$")]
        if special:
            yield from _special(template, special[0], pointer)
        else:
            for name, item in template.items():
                yield from of_template(item, f"{pointer}/{escaped(name)}")


def of_condition(condition: Condition, pointer: str) -> Iterator[Found]:
    if not isinstance(condition, dict) or len(condition) != 1:
        yield Malformed(pointer, f"a condition is an object with one operator: {', '.join(OPERATORS)}")
        return
    ((operator, operand),) = condition.items()
    inner = f"{pointer}/{escaped(operator)}"
    if operator in COMPARISONS:
        yield from _pair(operand, inner, operator)
    elif operator in ("is_none", "is_true"):
        yield from of_template(operand, inner)
    elif operator in ("all", "any"):
        yield from _each(operand, inner, operator)
    elif operator == "not":
        yield from of_condition(operand, inner)
    elif operator in OUTCOMES:
        yield _step_use(operand, inner)
    else:
        yield Malformed(inner, f"there is no operator {operator!r}: it is one of {', '.join(OPERATORS)}")


def escaped(name: Any) -> str:
    """A name as a part of a JSON pointer."""
    return str(name).replace("~", "~0").replace("/", "~1")


def _special(template: dict[str, Any], operator: str, pointer: str) -> Iterator[Found]:
    makers: dict[str, Callable[[Any, str], Iterator[Found]]] = {
        "$": _reference,
        "$literal": lambda *_: iter(()),
        "$first": _first,
        "$default": _default,
        "$outcomes": lambda operand, inner: iter([_step_use(operand, inner)]),
    }
    if operator == "$text":
        yield from _text(template, pointer)
    elif operator not in makers:
        yield Malformed(
            pointer, f"there is no {operator!r}: it is one of {', '.join(TEMPLATES)}; $literal quotes an object"
        )
    elif len(template) > 1:
        yield Malformed(pointer, f"an object with {operator!r} has no other key; $literal quotes an object")
    else:
        yield from makers[operator](template[operator], f"{pointer}/{operator}")


def _reference(text: Any, pointer: str) -> Iterator[Found]:
    try:
        yield Use(reference.parse(text), "value", pointer)
    except DefinitionError as error:
        yield Malformed(pointer, str(error))


def _first(operands: Any, pointer: str) -> Iterator[Found]:
    if not isinstance(operands, list | tuple) or not operands:
        yield Malformed(pointer, "$first takes a list of references")
        return
    for number, operand in enumerate(operands):
        for found in _one_reference(operand, f"{pointer}/{number}", "$first"):
            yield msgspec.structs.replace(found, need="group", group=pointer) if isinstance(found, Use) else found


def _default(operands: Any, pointer: str) -> Iterator[Found]:
    if not isinstance(operands, list | tuple) or len(operands) != 2:
        yield Malformed(pointer, "$default takes a list of two: a reference, and the value to use without it")
        return
    for found in _one_reference(operands[0], f"{pointer}/0", "$default"):
        yield msgspec.structs.replace(found, need="end") if isinstance(found, Use) else found
    yield from of_template(operands[1], f"{pointer}/1")


def _one_reference(operand: Any, pointer: str, operator: str) -> Iterator[Found]:
    if not isinstance(operand, dict) or list(operand) != ["$"]:
        yield Malformed(pointer, f'{operator} takes references, such as {{"$": "step.member"}}')
    else:
        yield from _reference(operand["$"], f"{pointer}/$")


def _text(template: dict[str, Any], pointer: str) -> Iterator[Found]:
    pattern = template["$text"]
    try:
        names = {name for _, name, form, _ in Formatter().parse(pattern) if name is not None and not form}
        is_plain = all(not form and not how for _, _, form, how in Formatter().parse(pattern))
    except (TypeError, ValueError) as error:
        yield Malformed(f"{pointer}/$text", f"$text is a text with names in braces, such as 'day {{day}}': {error}")
        return
    given = template.keys() - {"$text"}
    if not is_plain or names != given:
        wrong = ", ".join(sorted(names ^ given)) or "a format"
        yield Malformed(
            f"{pointer}/$text", f"every {{name}} in $text is a key beside it, and takes no format; wrong: {wrong}"
        )
    for name in template:
        if name != "$text":
            yield from of_template(template[name], f"{pointer}/{escaped(name)}")


def _step_use(name: Any, pointer: str) -> Found:
    if not reference.is_name(name) or name in RESERVED:
        return Malformed(pointer, f"this is the id of a step, not {name!r}")
    return Use(Reference(name), "end", pointer)


def _pair(operands: Any, pointer: str, operator: str) -> Iterator[Found]:
    if not isinstance(operands, list | tuple) or len(operands) != 2:
        yield Malformed(pointer, f"{operator} compares a list of two values")
        return
    for number, operand in enumerate(operands):
        yield from of_template(operand, f"{pointer}/{number}")


def _each(operands: Any, pointer: str, operator: str) -> Iterator[Found]:
    if not isinstance(operands, list | tuple) or not operands:
        yield Malformed(pointer, f"{operator} takes a list of conditions")
        return
    for number, operand in enumerate(operands):
        yield from of_condition(operand, f"{pointer}/{number}")
