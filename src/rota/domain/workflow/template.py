"""Templates: JSON in which objects with a `$` key stand for values that are known later.

    {"$": "extract.files[0]"}                      the value of a step, of `input` or of `run`
    {"$first": [{"$": "a"}, {"$": "b"}]}           the value of the first, in this order, that succeeded
    {"$default": [{"$": "a"}, 0]}                  the value, or the other if the step did not succeed
    {"$outcomes": "transform"}                     every item of a map, with its status
    {"$text": "empty {day}", "day": {"$": "…"}}    text with values; `{{` is a brace
    {"$literal": {"$": "not a reference"}}         quotes an object that has such keys

`references` says which steps a template uses, and refuses a malformed one. `lowered` settles `$first` and `$default`
when the steps have ended. `resolve` puts the values in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from rota.domain.errors import ArgumentsError, DefinitionError
from rota.domain.workflow.graph import Template
from rota.domain.workflow.letters import SUCCESS, status_of
from rota.domain.workflow.reference import Key, Reference, parse

Value = Callable[[str], Any]
"""The value of a root: the result of a step that succeeded, `input` or `run`."""

_FORMS = {"$", "$first", "$default", "$outcomes", "$text", "$literal"}
_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


class TemplateError(ArgumentsError):
    """A template whose values are missing, or are of another type than it needs."""


class Use(msgspec.Struct, frozen=True):
    """How a template uses other steps: it needs a `value`, or only the `end`, or the `first` value of several."""

    kind: Literal["value", "end", "first"]
    references: tuple[Reference, ...]


def references(template: Template) -> Iterator[Use]:
    """What the template uses, in written order. A DefinitionError says what is malformed."""
    match _form(template):
        case "$":
            yield Use("value", (parse(template["$"]),))
        case "$first":
            yield Use("first", _choices(template))
        case "$default":
            choice, other = _pair(template)
            yield from (Use("end", (one,)) for one in _choices(choice))
            yield from references(other)
        case "$outcomes":
            yield Use("end", (_whole(template),))
        case "$text" | "":
            for part in _parts(template):
                yield from references(part)
        case _:
            pass


def roots(template: Template) -> set[str]:
    """What the template refers to: names of steps, `input` and `run`."""
    return {reference.root for use in references(template) for reference in use.references}


def is_literal(template: Template) -> bool:
    return next(references(template), None) is None


def lowered(template: Template, letters: Mapping[str, str]) -> Template:
    """The template with every `$first` and `$default` settled by the letters of the steps, all of which have ended.

    What remains are `$`, only to steps that succeeded, `$outcomes`, `$text` and `$literal`.
    """
    match _form(template):
        case "$":
            _require(parse(template["$"]), letters)
            return template
        case "$first":
            chosen = _chosen(template, letters)
            if chosen is None:
                raise TemplateError(f"none of {', '.join(map(str, _choices(template)))} has a value")
            return chosen
        case "$default":
            choice, other = _pair(template)
            return _chosen(choice, letters) or lowered(other, letters)
        case "$text" | "":
            return _rebuilt(template, lambda part: lowered(part, letters))
        case _:
            return template


def resolve(template: Template, value: Value, outcomes: Value | None = None) -> Any:
    """The value of a lowered template. `outcomes` gives the items of a map, for `$outcomes`."""
    match _form(template):
        case "$":
            return _followed(parse(template["$"]), value)
        case "$outcomes":
            if outcomes is None:
                raise TemplateError(f"the outcomes of {_whole(template)} are known to the arguments of a step only")
            return outcomes(_whole(template).root)
        case "$text":
            return _text(template, lambda part: resolve(part, value, outcomes))
        case "$literal":
            return template["$literal"]
        case "":
            return _rebuilt(template, lambda part: resolve(part, value, outcomes))
        case form:
            raise AssertionError(f"{form} is settled by lowered()")


def kind(value: object) -> str:
    """The JSON type of a value, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"


# --- Forms ----------------------------------------------------------------------------------------


def _form(template: Template) -> str:
    """The `$` key of a special object; empty for plain JSON."""
    if not isinstance(template, dict):
        return ""
    special: list[str] = [key for key in template if key.startswith("$")]
    if not special:
        return ""
    form = special[0]
    if len(special) > 1 or form not in _FORMS or (len(template) > 1 and form != "$text"):
        keys = ", ".join(template)
        raise DefinitionError(f"an object with the keys {keys} is not a template: quote it with $literal")
    return form


def _choices(template: Template) -> tuple[Reference, ...]:
    """The references of a `$` or `$first`, in written order."""
    match _form(template):
        case "$":
            return (parse(template["$"]),)
        case "$first" if template["$first"] and isinstance(template["$first"], list | tuple):
            return tuple(one for choice in template["$first"] for one in _choices(choice))
        case _:
            raise DefinitionError(f"{template!r} is not a reference to a value, nor a $first of at least one")


def _pair(template: Template) -> tuple[Template, Template]:
    match template["$default"]:
        case [choice, other]:
            return choice, other
        case _:
            raise DefinitionError("$default takes a list of two: a reference, and the value that replaces it")


def _whole(template: Template) -> Reference:
    reference = parse(template["$outcomes"])
    if reference.path:
        raise DefinitionError(f"$outcomes takes the name of a step, not the path {reference}")
    return reference


def _parts(template: Template) -> Iterator[Template]:
    """The templates inside of plain JSON or of a `$text`."""
    if isinstance(template, list | tuple):
        yield from template
    elif isinstance(template, dict):
        if "$text" in template:
            _check_fields(template["$text"], template)
        yield from (part for key, part in template.items() if key != "$text")


def _check_fields(text: Any, given: dict[str, Any]) -> None:
    if not isinstance(text, str):
        raise DefinitionError(f"$text takes a text, not {kind(text)}")
    fields = {found[1] for found in _FIELD.finditer(text) if found[1] is not None}
    if missing := sorted(fields - given.keys()):
        raise DefinitionError(f"the text {text!r} has no value for {', '.join(map(repr, missing))}")


def _rebuilt(template: Template, change: Callable[[Template], Any]) -> Any:
    if isinstance(template, dict):
        return {key: part if key == "$text" else change(part) for key, part in template.items()}
    return [change(part) for part in template] if isinstance(template, list | tuple) else template


# --- Values ---------------------------------------------------------------------------------------


def _chosen(choice: Template, letters: Mapping[str, str]) -> Template | None:
    succeeded = (one for one in _choices(choice) if letters.get(one.root, SUCCESS).lower() == SUCCESS)
    chosen = next(succeeded, None)
    return None if chosen is None else {"$": str(chosen)}


def _require(reference: Reference, letters: Mapping[str, str]) -> None:
    """A root that is not a step, `input` or `run`, always has a value."""
    letter = letters.get(reference.root, SUCCESS)
    if letter.lower() != SUCCESS:
        raise TemplateError(f"{reference} has no value: {reference.root} is {status_of(letter) or 'open'}")


def _followed(reference: Reference, value: Value) -> Any:
    found = value(reference.root)
    for depth, key in enumerate(reference.path):
        holder: Any = found if isinstance(found, list if isinstance(key, int) else dict) else {}
        try:
            found = holder[key]
        except LookupError:
            here = Reference(reference.root, reference.path[:depth])
            raise TemplateError(f"{reference} has no value: {here} {_lacks(found, key)}") from None
    return found


def _lacks(found: Any, key: Key) -> str:
    match key, found:
        case int(), list():
            return f"has {len(found)} items"
        case str(), dict():
            return f"has no member {key!r}"
        case _:
            return f"is {kind(found)}, which has no {'items' if isinstance(key, int) else 'members'}"


def _text(template: Template, resolved: Callable[[Template], Any]) -> str:
    """Texts as they are, other values as JSON."""

    def shown(field: re.Match[str]) -> str:
        if field[1] is None:
            return field[0][0]
        value = resolved(template[field[1]])
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()

    return _FIELD.sub(shown, template["$text"])
