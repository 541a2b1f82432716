"""The parameters of a function as a JSON schema, for forms."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from rota.domain.job_parameters import in_order

Schema = dict[str, Any]
_PLAIN = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}
_FORMATS = {"datetime": "date-time", "date": "date", "UUID": "uuid"}


def schema(parameters: Mapping[str, Mapping[str, Any]]) -> Schema:
    """The schema of the parameters in a job's definition. A type that only the code knows fits every value.

    Its properties are in the order of the function's signature, which is the order of the fields of a form.
    """
    named = {name: about for name, about in in_order(parameters) if not about.get("others")}
    return {
        "type": "object",
        "properties": {name: of_type(str(about.get("type", "any"))) for name, about in named.items()},
        "required": [name for name, about in named.items() if about.get("required")],
        "additionalProperties": len(named) < len(parameters),
    }


def of_type(text: str) -> Schema:
    try:
        return _schema(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError):
        return {}


def _schema(kind: ast.expr) -> Schema:
    match kind:
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return {"anyOf": [*_choices(left), *_choices(right)]}
        case ast.Subscript(value=ast.Name(id="list"), slice=item):
            return {"type": "array", "items": _schema(item)}
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[_, value])):
            return {"type": "object", "additionalProperties": _schema(value)}
        case ast.Constant(value=None):
            return {"type": "null"}
        case ast.Name(id=name) if name in _PLAIN:
            return {"type": _PLAIN[name]}
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _FORMATS:
            return {"type": "string", "format": _FORMATS[name]}
    return {}


def _choices(kind: ast.expr) -> list[Schema]:
    found = _schema(kind)
    choices: list[Schema] = found.get("anyOf", [found])
    return choices
