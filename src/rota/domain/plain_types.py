"""Types in words that callers from any language know, for messages: text, number, list, object."""

from __future__ import annotations

import ast
import re
from typing import Any

_WORDS = {
    "str": "text",
    "int": "whole number",
    "float": "number",
    "bool": "true or false",
    "None": "null",
    "NoneType": "null",
    "list": "list",
    "array": "list",
    "tuple": "list",
    "dict": "object",
    "Raw": "any",
    "bytes": "text",
    "datetime": "time",
}
_QUOTED = re.compile(r"`([^`]+)`")


def of_value(value: Any) -> str:
    """The type of a JSON value."""
    return _word(type(value).__name__)


def of_annotation(kind: ast.expr) -> str:
    """The words for a type in an annotation. The name of a class of the user is kept."""
    match kind:
        case ast.BinOp(left=left, right=right):
            return f"{of_annotation(left)} or {of_annotation(right)}"
        case ast.Subscript(value=ast.Name(id="list"), slice=item):
            return f"list of {of_annotation(item)}"
        case ast.Subscript(value=ast.Name(id=name)) | ast.Name(id=name):
            return _word(name)
        case ast.Constant(value=None):
            return "null"
        case _:
            return ast.unparse(kind)


def in_message(message: str) -> str:
    """A message of msgspec, with the types in words. msgspec puts them in back-ticks."""
    return _QUOTED.sub(lambda found: " or ".join(_word(name) for name in found[1].split(" | ")), message)


def _word(name: str) -> str:
    return _WORDS.get(name, name)
