"""The JSON Schemas of bodies, answers and parameters, as the OpenAPI document has them.

msgspec makes them from the types. What it cannot know is added here: durations are numbers of seconds, an answer has
every member that its type has, and null in a body is the same as an absent member.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import inspect

from rota.api import member_words

_REF = "#/components/schemas/"


def schemas(
    kinds: Sequence[Any], bodies: Sequence[Any], parameters: Iterable[Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of each type by its `repr`, and those that they refer to by name.

    Of `bodies`, members with a default may be left out, or null. The schemas of `parameters` are only under their
    `repr`.
    """
    structs = list(_structs(kinds))
    found, named = msgspec.json.schema_components([*kinds, *structs], schema_hook=_hook, ref_template=_REF + "{name}")
    for kind, schema in zip(structs, found[len(kinds) :], strict=True):
        _describe(named[_name(schema)], member_words.words(kind))
    by_kind = dict(zip([repr(kind) for kind in kinds], found, strict=False))
    alone = {_name(by_kind[repr(kind)]) for kind in parameters}
    by_kind |= {repr(kind): named[_name(by_kind[repr(kind)])] for kind in parameters}
    complete = {
        kind.__name__ for kind in _structs(kinds) - _structs(bodies) if not kind.__struct_config__.omit_defaults
    }
    answers = _structs(kind for kind in kinds if kind not in bodies)
    sent = {kind.__name__ for kind in _structs(bodies) - answers}
    components = {
        _short(name): _with_members(
            _or_null(_finished(schema)) if name.rpartition(".")[2] in sent else _finished(schema),
            is_complete=name.rpartition(".")[2] in complete,
        )
        for name, schema in sorted(named.items())
        if name not in alone
    }
    return {name: _finished(schema) for name, schema in by_kind.items()}, components


def parameter(schema: Any) -> Any:
    """The schema of one parameter: one that may be left out has no other way to be null."""
    if "anyOf" not in schema:
        return schema
    others = [one for one in schema["anyOf"] if one != {"type": "null"}]
    rest = {name: value for name, value in schema.items() if name != "anyOf" and (name, value) != ("default", None)}
    return {**rest, **others[0]} if len(others) == 1 else {**rest, "anyOf": others}


def choose_members(answers: Iterable[dict[str, Any]], components: dict[str, Any]) -> None:
    """Of these answers `fields` may choose some members: adds the schemas of such parts, and allows them in lists."""
    for answer in answers:
        items = components[_name(answer)]["properties"].get("items")
        if items is None:
            _add_part(_name(answer), components)
        elif "$ref" in items["items"]:
            _add_part(_name(items["items"]), components)
            items["items"] = {"anyOf": [items["items"], part_of(items["items"])]}


def part_of(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a part of a thing, which `choose_members` has added."""
    return {"$ref": f"{schema['$ref']}Part"}


def _add_part(name: str, components: dict[str, Any]) -> None:
    part = {key: value for key, value in components[name].items() if key not in ("required", "title")}
    words = f"{name} with only the members that the parameter `fields` names."
    components[f"{name}Part"] = {"title": f"{name}Part", **part, "description": words}


def _hook(kind: type) -> dict[str, Any]:
    """Types that msgspec has no schema for."""
    if kind is msgspec.Raw:
        return {}
    raise NotImplementedError(f"there is no schema for {kind}")


def _describe(schema: dict[str, Any], words: Mapping[str, str]) -> None:
    for name, member in schema.get("properties", {}).items():
        if name in words:
            member.setdefault("description", words[name])


def _finished(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_finished(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "duration":
        return {"type": "number", "description": schema.get("description", "seconds")}
    if schema.get("type") == "object" and not {"properties", "additionalProperties"} & schema.keys():
        return {**schema, "additionalProperties": True}
    finished = {name: _finished(value) for name, value in schema.items()}
    if isinstance(finished.get("$ref"), str):
        finished["$ref"] = _REF + _short(_name(finished))
    if isinstance(finished.get("description"), str):
        finished["description"] = re.sub(r"\s*\n\s*", " ", finished["description"])
    return finished


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Members with a default may be null. In a PATCH msgspec knows of no default."""
    properties = {}
    for name, about in schema.get("properties", {}).items():
        words = {key: value for key, value in about.items() if key in ("description", "default")}
        rest = {key: value for key, value in about.items() if key not in words}
        choices = rest.get("anyOf", [rest])
        is_strict = "default" in about and rest and {"type": "null"} not in choices
        properties[name] = {**words, "anyOf": [*choices, {"type": "null"}]} if is_strict else about
    return {**schema, "properties": properties} if properties else schema


def _with_members(schema: dict[str, Any], *, is_complete: bool) -> dict[str, Any]:
    """Generators of clients take a member with a default as one that is always there. In an answer it is."""
    if "properties" not in schema:
        return schema
    properties, required = {}, set(schema.get("required", ()))
    for name, about in schema["properties"].items():
        rest = {key: value for key, value in about.items() if key != "default"}
        if is_complete and "default" in about:
            required.add(name)
        elif about.get("default") is not None:
            words = f"{about.get('description', '')} Default: {json.dumps(about['default'])}."
            rest["description"] = words.strip()
        properties[name] = rest
    ordered = [name for name in properties if name in required]
    return {**schema, "properties": properties, **({"required": ordered} if ordered else {})}


def _structs(kinds: Iterable[Any]) -> set[type[msgspec.Struct]]:
    """The structs that these types are made of."""
    found: set[type[msgspec.Struct]] = set()

    def add(value: Any) -> None:
        if isinstance(value, inspect.StructType):
            if value.cls in found:
                return
            found.add(value.cls)
        if isinstance(value, tuple | list):
            for one in value:
                add(one)
        elif isinstance(value, inspect.Type | inspect.Field):
            for name in value.__struct_fields__:
                add(getattr(value, name))

    add(inspect.multi_type_info(list(kinds)))
    return found


def _name(schema: dict[str, Any]) -> str:
    return str(schema["$ref"]).removeprefix(_REF)


def _short(name: str) -> str:
    """msgspec puts the module before names that several types have; its last part is enough."""
    *_, module, own = ("", *name.rsplit(".", 2)[-2:]) if "." in name else ("", "", name)
    return module.replace("_", " ").title().replace(" ", "") + own
