"""JSON schemas of parameters and results: which members a value has, and whether it fits a parameter.

A schema carries its own `$defs`. The empty schema means that nothing is known; everything fits it. A check fails only
if no value could pass: `int | None` fits `int`, because most values do.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from rota.domain.workflow.reference import Key

Schema = dict[str, Any]
BOOLEAN: Schema = {"type": "boolean"}
STRING: Schema = {"type": "string"}
LIST: Schema = {"type": "array"}
_DEEPEST = 16
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_KEYWORDS: dict[str, Any] = {
    "$ref": str,
    "type": str | list,
    "format": str,
    "title": str,
    "enum": list,
    "required": list,
    "minItems": int,
    "maxItems": int,
    "items": dict | bool,
    "additionalProperties": dict | bool,
    **dict.fromkeys(("properties", "$defs"), dict),
    **dict.fromkeys(("anyOf", "oneOf", "prefixItems"), list),
}


class NoMember(Exception):
    """The value has no such member; the message says what it has."""


def problem(schema: Any, depth: int = 0) -> str:
    """Why a value is not a usable schema; empty if it is. Keywords that are not used may have any value."""
    if not isinstance(schema, dict) or depth > 2 * _DEEPEST:
        return "it must be an object" if depth <= 2 * _DEEPEST else "it is nested too deeply"
    for keyword, kind in _KEYWORDS.items():
        if keyword in schema and not isinstance(schema[keyword], kind):
            return f"{keyword!r} has the wrong type"
    several = [schema.get(keyword, {}) for keyword in ("properties", "$defs")]
    parts = [one for named in several for one in named.values()]
    parts += [one for keyword in ("anyOf", "oneOf", "prefixItems") for one in schema.get(keyword, ())]
    parts += [schema[keyword] for keyword in ("items", "additionalProperties") if isinstance(schema.get(keyword), dict)]
    return next((wrong for part in parts if (wrong := problem(part, depth + 1))), "")


def list_of(item: Schema) -> Schema:
    plain = {name: value for name, value in item.items() if name != "$defs"}
    return {"type": "array", "items": plain} | ({"$defs": item["$defs"]} if "$defs" in item else {})


def tuple_of(items: list[Schema]) -> Schema:
    """The schema of a list with exactly these items, each of which keeps its own definitions."""
    return {**LIST, "prefixItems": items, "minItems": len(items), "maxItems": len(items)}


def item(schema: Schema) -> Schema:
    """The schema of the items of a list."""
    nodes = [node for node in _alternatives(schema) if _type(node) in ("array", None)]
    found = [_within(node, one) for node in nodes for one in (node.get("prefixItems") or [node.get("items", {})])]
    return any_of(found) if found else {}


def any_of(schemas: list[Schema]) -> Schema:
    """The schema of a value that is one of these."""
    if len(schemas) == 1 or not all(schemas):
        return schemas[0] if len(schemas) == 1 else {}
    definitions = {name: one for schema in schemas for name, one in schema.get("$defs", {}).items()}
    plain = [{name: value for name, value in schema.items() if name != "$defs"} for schema in schemas]
    return {"anyOf": plain} | ({"$defs": definitions} if definitions else {})


def of_literal(value: Any) -> Schema:
    """The schema that only this value fits."""
    if isinstance(value, list | tuple):
        return {
            **LIST,
            "prefixItems": [of_literal(one) for one in value],
            "minItems": len(value),
            "maxItems": len(value),
        }
    if isinstance(value, dict):
        properties = {name: of_literal(one) for name, one in value.items()}
        return {"type": "object", "properties": properties, "required": list(value)}
    return {"enum": [value]}


def member(schema: Schema, key: Key) -> Schema:
    """The schema of `value.key` or `value[key]`; raises NoMember."""
    found: list[Schema] = []
    problem = NoMember("it is null")
    for node in _alternatives(schema):
        if _type(node) == "null":
            continue
        try:
            found.append(_member(node, key))
        except NoMember as error:
            problem = error
    if not found:
        raise problem
    return any_of(found)


def fixed_length(schema: Schema) -> int | None:
    """The number of items of a tuple; None for everything else."""
    nodes = _alternatives(schema)
    if len(nodes) != 1 or "prefixItems" not in nodes[0] or nodes[0].get("items", False) is not False:
        return None
    return len(nodes[0]["prefixItems"])


def fits(source: Schema, target: Schema, depth: int = 0) -> bool:
    """False if no value of `source` could be given where `target` is wanted."""
    if depth > _DEEPEST:
        return True
    return any(_fits(one, other, depth) for one in _alternatives(source) for other in _alternatives(target))


def words(schema: Schema, depth: int = 0) -> str:
    """The type for an error message: `integer`, `list of string`, `Order or null`."""
    return " or ".join(dict.fromkeys(_words(node, depth) for node in _alternatives(schema)))


def type_of(value: Any) -> str:
    return _TYPES.get(type(value), "object" if isinstance(value, dict) else "array")


def _alternatives(schema: Schema, depth: int = 0) -> list[Schema]:
    """The alternative schemas of a value, without references and unions."""
    definitions = schema.get("$defs", {})
    reference = schema.get("$ref")
    if depth > _DEEPEST:
        return [{}]
    if isinstance(reference, str):
        found = definitions.get(reference.rpartition("/")[2], {})
        return _alternatives({**found, "$defs": definitions}, depth + 1)
    parts = schema.get("anyOf") or schema.get("oneOf")
    if parts is None and isinstance(schema.get("type"), list):
        parts = [{**schema, "type": kind} for kind in schema["type"]]
    if parts is None:
        return [schema]
    return [one for part in parts for one in _alternatives(_within(schema, part), depth + 1)]


def _within(schema: Schema, part: Any) -> Schema:
    """A part of a schema, with the definitions that it may refer to."""
    if not isinstance(part, dict):
        return {}
    return {"$defs": schema["$defs"], **part} if "$defs" in schema else part


def _type(node: Schema) -> str | None:
    if "enum" in node:
        kinds = {type_of(value) for value in node["enum"]}
        return kinds.pop() if len(kinds) == 1 else None
    kind = node.get("type")
    return kind if isinstance(kind, str) else None


def _member(node: Schema, key: Key) -> Schema:
    kind = _type(node)
    if kind is None:
        return {}
    if kind == "object" and isinstance(key, str):
        return _property(node, key)
    if kind == "array" and isinstance(key, int):
        return _item(node, key)
    if kind == "array":
        raise NoMember("it is a list, which has only items, such as [0]")
    raise NoMember(f"it is {_article(words(node))}, which has no {'items' if isinstance(key, int) else 'members'}")


def _property(node: Schema, key: str) -> Schema:
    known = node.get("properties")
    if known is not None and key in known:
        return _within(node, known[key])
    others = node.get("additionalProperties", known is None)
    if others is not False:
        return _within(node, others)
    near = get_close_matches(key, known or (), 1)
    has = f"it has {', '.join(known)}" if known else "it has none"
    raise NoMember(f"there is no {key!r}: " + (f"did you mean {near[0]!r}?" if near else has))


def _item(node: Schema, index: int) -> Schema:
    prefix = node.get("prefixItems", [])
    if index < 0 and prefix and node.get("items", False) is False:
        index += len(prefix)
    if 0 <= index < len(prefix):
        return _within(node, prefix[index])
    if prefix and node.get("items", False) is False:
        raise NoMember(f"it has {len(prefix)} items")
    return _within(node, node.get("items", {})) if index >= 0 or not prefix else {}


def _fits(one: Schema, other: Schema, depth: int) -> bool:
    if "enum" in one and "enum" in other:
        return any(value in other["enum"] for value in one["enum"])
    kinds, wanted = _types(one), _types(other)
    if not kinds or not wanted:
        return True
    if not kinds & wanted and not ("integer" in kinds and "number" in wanted):
        return False
    if len(kinds) > 1 or len(wanted) > 1:
        return True
    if one.get("format", other.get("format")) != other.get("format", one.get("format")):
        return False
    if kinds == {"array"}:
        return _list_fits(one, other, depth)
    return kinds != {"object"} or _object_fits(one, other, depth)


def _types(node: Schema) -> set[str]:
    if "enum" in node:
        return {type_of(value) for value in node["enum"]}
    kind = node.get("type")
    return {kind} if isinstance(kind, str) else set()


def _list_fits(one: Schema, other: Schema, depth: int) -> bool:
    least, most = one.get("minItems", 0), one.get("maxItems")
    if least > other.get("maxItems", least) or (most is not None and most < other.get("minItems", 0)):
        return False
    count = max(len(one.get("prefixItems", ())), len(other.get("prefixItems", ())))
    pairs = [(_item_or_any(one, index), _item_or_any(other, index)) for index in range(count)]
    if one.get("items") and other.get("items"):
        pairs.append((_within(one, one["items"]), _within(other, other["items"])))
    return all(fits(source, target, depth + 1) for source, target in pairs)


def _item_or_any(node: Schema, index: int) -> Schema:
    try:
        return _item(node, index)
    except NoMember:
        return {}


def _object_fits(one: Schema, other: Schema, depth: int) -> bool:
    has, wanted = one.get("properties"), other.get("properties", {})
    if has is None:
        return True
    is_closed = one.get("additionalProperties", False) is False
    if is_closed and not set(other.get("required", ())) <= has.keys():
        return False
    if isinstance(other.get("additionalProperties"), dict):
        wanted = {**dict.fromkeys(has, other["additionalProperties"]), **wanted}
    return all(
        fits(_within(one, has[name]), _within(other, schema), depth + 1)
        for name, schema in wanted.items()
        if name in has
    )


def _words(node: Schema, depth: int) -> str:
    if "enum" in node:
        return " or ".join(repr(value) for value in node["enum"][:3]) + (" …" if len(node["enum"]) > 3 else "")
    kind = node.get("type")
    if kind == "array" and depth < 3 and isinstance(node.get("items"), dict) and node["items"]:
        return f"list of {words(_within(node, node['items']), depth + 1)}"
    if kind == "array":
        return "list"
    return str(node.get("title") or node.get("format") or kind or "anything")


def _article(text: str) -> str:
    return f"{'an' if text[:1].lower() in 'aeiou' else 'a'} {text}"
