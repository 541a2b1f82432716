"""Checks a value against a JSON schema: the keywords that describe arguments. Others are refused, not ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rota.domain.errors import DefinitionError

DEEPEST = 32
MOST_FOUND = 20
_NOTES = frozenset(("title", "description", "default", "examples", "format", "$defs", "$schema", "deprecated"))
"""Keywords that say nothing about which values fit."""
_TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_BOUNDS: dict[str, tuple[type | tuple[type, ...], Callable[[Any, Any], bool], str]] = {
    "minimum": ((int, float), lambda value, bound: value >= bound, "must be at least"),
    "maximum": ((int, float), lambda value, bound: value <= bound, "must be at most"),
    "exclusiveMinimum": ((int, float), lambda value, bound: value > bound, "must be more than"),
    "exclusiveMaximum": ((int, float), lambda value, bound: value < bound, "must be less than"),
    "minLength": (str, lambda value, bound: len(value) >= bound, "must have at least this many characters:"),
    "maxLength": (str, lambda value, bound: len(value) <= bound, "must have at most this many characters:"),
    "minItems": (list, lambda value, bound: len(value) >= bound, "must have at least this many items:"),
    "maxItems": (list, lambda value, bound: len(value) <= bound, "must have at most this many items:"),
}
_KEYWORDS = frozenset(
    ("type", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "$ref")
)
Schema = Mapping[str, Any]
Fault = tuple[str, str]
"""A JSON pointer to a value, and what is wrong with it."""


def check_schema(schema: Any, pointer: str = "", depth: int = 0) -> None:
    """Raises DefinitionError if it is not a schema, or has keywords that are not checked."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        raise DefinitionError(f"{pointer or 'the schema'} must be a schema, which is an object")
    for keyword, value in schema.items():
        if keyword not in _KEYWORDS and keyword not in _NOTES and keyword not in _BOUNDS:
            raise DefinitionError(f"{pointer}/{keyword}: this keyword is not checked here; leave it out")
        if not _is_well_formed(keyword, value):
            raise DefinitionError(f"{pointer}/{keyword}: has the wrong type")
    for where, part in _parts(schema):
        check_schema(part, f"{pointer}/{where}", depth + 1)


def faults(schema: Mapping[str, Any], value: Any) -> list[Fault]:
    """What does not fit, up to `MOST_FOUND` faults; empty if the value fits."""
    found: list[Fault] = []
    for fault in _faults(schema, value, "", schema, 0):
        found.append(fault)
        if len(found) >= MOST_FOUND:
            break
    return found


def _is_well_formed(keyword: str, value: Any) -> bool:
    match keyword:
        case "type":
            named = value if isinstance(value, list) else [value]
            return bool(named) and all(isinstance(one, str) and one in _TYPES for one in named)
        case "properties" | "$defs":
            return isinstance(value, dict)
        case "required":
            return isinstance(value, list) and all(isinstance(name, str) for name in value)
        case "enum" | "anyOf":
            return isinstance(value, list) and bool(value)
        case "additionalProperties":
            return isinstance(value, bool | dict)
        case "items":
            return isinstance(value, dict)
        case "$ref":
            return isinstance(value, str) and value.startswith("#/$defs/")
        case _:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return keyword not in _BOUNDS or is_number


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for keyword in ("properties", "$defs"):
        for name, part in schema.get(keyword, {}).items():
            yield f"{keyword}/{name}", part
    for place, part in enumerate(schema.get("anyOf", ())):
        yield f"anyOf/{place}", part
    if "items" in schema:
        yield "items", schema["items"]
    if isinstance(schema.get("additionalProperties"), dict):
        yield "additionalProperties", schema["additionalProperties"]


def _faults(schema: Schema, value: Any, pointer: str, root: Schema, depth: int) -> Iterator[Fault]:
    if depth > DEEPEST:
        yield pointer, "is nested too deeply"
        return
    if "$ref" in schema:
        target = root.get("$defs", {}).get(schema["$ref"].removeprefix("#/$defs/"), {})
        yield from _faults(target, value, pointer, root, depth + 1)
    named = schema.get("type", [])
    named = named if isinstance(named, list) else [named]
    if named and not any(_TYPES[one](value) for one in named):
        yield pointer, f"must be {' or '.join(named)}"
        return
    if "enum" in schema and not any(_same(value, one) for one in schema["enum"]):
        yield pointer, f"must be one of {', '.join(map(repr, schema['enum'][:10]))}"
    if "const" in schema and not _same(value, schema["const"]):
        yield pointer, f"must be {schema['const']!r}"
    if "anyOf" in schema and all(any(_faults(one, value, "", root, depth + 1)) for one in schema["anyOf"]):
        yield pointer, "fits none of the alternatives"
    yield from _bounds(schema, value, pointer)
    if isinstance(value, dict):
        yield from _members(schema, value, pointer, root, depth)
    elif isinstance(value, list) and "items" in schema:
        for place, item in enumerate(value):
            yield from _faults(schema["items"], item, f"{pointer}/{place}", root, depth + 1)


def _bounds(schema: Mapping[str, Any], value: Any, pointer: str) -> Iterator[Fault]:
    for keyword, (kind, holds, words) in _BOUNDS.items():
        is_kind = isinstance(value, kind) and not isinstance(value, bool)
        if keyword in schema and is_kind and not holds(value, schema[keyword]):
            yield pointer, f"{words} {schema[keyword]}"


def _members(
    schema: Mapping[str, Any], value: Mapping[str, Any], pointer: str, root: Mapping[str, Any], depth: int
) -> Iterator[Fault]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{pointer}/{name}", "is missing"
    for name, member in value.items():
        part = properties.get(name, others)
        if part is False:
            yield f"{pointer}/{name}", "is not known here"
        elif isinstance(part, dict):
            yield from _faults(part, member, f"{pointer}/{name}", root, depth + 1)


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
