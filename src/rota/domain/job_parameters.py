"""Whether arguments fit the parameters of a job, as its definition lists them: names, required ones, plain types.

The signature of a function knows more, but only where its code is loaded. A type with a name that only the code knows
fits every value.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from rota.domain import payload
from rota.domain.errors import ArgumentsError
from rota.domain.plain_types import of_annotation, of_value

Parameters = Mapping[str, Mapping[str, Any]]
Misfit = tuple[str, str]
"""The name of an argument, and what is wrong with it."""
_PLAIN: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}


def encode(job: str, given: Mapping[str, Any], parameters: Parameters, most_bytes: int) -> str:
    """The arguments as they are stored."""
    check(job, given, parameters)
    return payload.encode(dict(given), f"{job}(): the arguments", most_bytes)


def misfits(given: Mapping[str, Any], parameters: Parameters) -> list[Misfit]:
    """Everything that is wrong with the arguments."""
    return [*_unknown(given, parameters), *_missing(given, parameters), *_mistyped(given, parameters)]


def check(job: str, given: Mapping[str, Any], parameters: Parameters) -> None:
    """Raises ArgumentsError for the first thing that is wrong."""
    for _, words in misfits(given, parameters):
        raise ArgumentsError(f"{job}(): {words}")


def in_order(parameters: Parameters) -> list[tuple[str, Mapping[str, Any]]]:
    """The parameters in the order of the function's signature; by name in a definition that does not have it."""
    return sorted(parameters.items(), key=lambda parameter: parameter[1].get("place", 0))


def signature(parameters: Parameters) -> str:
    """Required ones first, with their types in Python; an optional one ends in `?`."""
    return _signature(parameters, lambda kind: kind)


def _in_words(parameters: Parameters) -> str:
    """The same with the types in words."""
    return _signature(parameters, lambda kind: kind if (parsed := _parsed(kind)) is None else of_annotation(parsed))


def _signature(parameters: Parameters, shown: Callable[[str], str]) -> str:
    required_first = sorted(in_order(parameters), key=lambda parameter: not parameter[1]["required"])
    return ", ".join("…" if about.get("others") else _one(name, about, shown) for name, about in required_first)


def _one(name: str, about: Mapping[str, Any], shown: Callable[[str], str]) -> str:
    kind = "" if about["type"] == "any" else f": {shown(about['type'])}"
    return f"{name}{'' if about['required'] else '?'}{kind}"


def _unknown(given: Mapping[str, Any], parameters: Parameters) -> list[Misfit]:
    if all(name in parameters for name in given) or any(about.get("others") for about in parameters.values()):
        return []
    found = []
    for name in given:
        if name not in parameters:
            near = get_close_matches(name, parameters, 1)
            hint = f", did you mean {near[0]!r}?" if near else ";"
            found.append((name, f"there is no argument {name!r}{hint} it takes ({_in_words(parameters)})"))
    return found


def _missing(given: Mapping[str, Any], parameters: Parameters) -> list[Misfit]:
    missing = [name for name, about in in_order(parameters) if about["required"] and name not in given]
    if not missing:
        return []
    listed = ", ".join(map(repr, missing))
    return [(missing[0], f"missing argument {listed}; it takes ({_in_words(parameters)})")]


def _mistyped(given: Mapping[str, Any], parameters: Parameters) -> list[Misfit]:
    found = []
    for name, value in given.items():
        kind = parameters[name]["type"] if name in parameters else "any"
        parsed = _parsed(kind)
        if parsed is not None and not _fits(value, parsed):
            words = f"expected {of_annotation(parsed)}, got {of_value(value)}"
            found.append((name, f"argument {name!r}: {words}"))
    return found


@lru_cache(maxsize=1000)
def _parsed(kind: str) -> ast.expr | None:
    try:
        return ast.parse(kind, mode="eval").body
    except (SyntaxError, ValueError):  # A type with a name that only the code knows.
        return None


def _fits(value: Any, kind: ast.expr) -> bool:
    match kind:
        case ast.BinOp(left=left, right=right):
            return _fits(value, left) or _fits(value, right)
        case ast.Subscript(value=ast.Name(id="list"), slice=item):
            return isinstance(value, list) and all(_fits(one, item) for one in value)
        case ast.Constant(value=None):
            return value is None
        case ast.Name(id=name) if name in _PLAIN:
            return isinstance(value, _PLAIN[name]) and isinstance(value, bool) <= (name == "bool")
    return True
