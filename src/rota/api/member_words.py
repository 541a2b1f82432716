"""What the members of a struct mean: the docstring beside a field, or the words for its name in `views/members.py`."""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from itertools import pairwise

import msgspec

from rota.views.members import MEMBERS


def words(kind: type[msgspec.Struct]) -> dict[str, str]:
    """By the name that a member has in JSON. A member without words is not in it."""
    found: dict[str, str] = {}
    for base in reversed(getattr(kind, "patches", kind).__mro__):
        found |= _of_class(base)
    return {
        encoded: text
        for name, encoded in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
        if (text := found.get(name, MEMBERS.get(name)))
    }


def _of_class(kind: type) -> dict[str, str]:
    return _of_module(kind.__module__).get(kind.__name__, {})


@cache
def _of_module(name: str) -> dict[str, dict[str, str]]:
    """The docstrings of fields, by class. Types that are made at run time have none."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[name]))
    except (OSError, TypeError):
        return {}
    return {node.name: _of_fields(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _of_fields(node: ast.ClassDef) -> dict[str, str]:
    found = {}
    for field, following in pairwise(node.body):
        match field, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
            case _:
                pass
    return found
