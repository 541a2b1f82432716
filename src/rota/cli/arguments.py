"""A job's arguments as the command line gives them: `name=value` words or one JSON object.

A value is JSON if it parses as JSON, and otherwise the text itself: `count=3` is a number, `to=a@b.c` is text, and
`code='"007"'` is text too. For a parameter that is exactly `str`, a number, true, false and null are text as written:
`version=1.10` is "1.10". The arguments are checked against the job's registered parameters: names, which of them are
required, plain types. If the app's code is loaded, the function's signature checks the rest.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from rota.cli.text import signature
from rota.domain import payload
from rota.domain.errors import ArgumentsError

_PLAIN: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}


def parse(
    words: Sequence[str], given: str | None, parameters: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """The arguments by name. `parameters` are those of the job, if it is known."""
    if given is None:
        return _from_words(words, parameters or {})
    if words:
        raise ArgumentsError(f"give arguments as name=value or as --args, not both ({words[0]!r})")
    value = payload.decode(sys.stdin.buffer.read() if given == "-" else given, "--args")
    if not isinstance(value, dict):
        raise ArgumentsError('--args takes an object of arguments by name, such as {"to": "a@b.c"}')
    return value


def encode(job: str, given: Mapping[str, Any], parameters: dict[str, dict[str, Any]], most_bytes: int) -> str:
    """The arguments as they are stored."""
    _check_names(job, given, parameters)
    for name, value in given.items():
        if name in parameters:
            _check_type(job, name, value, parameters[name]["type"])
    return payload.encode(dict(given), f"{job}(): the arguments", most_bytes)


def _from_words(words: Sequence[str], parameters: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise ArgumentsError(f"an argument is name=value, not {word!r}")
        if name in given:
            raise ArgumentsError(f"the argument {name!r} is given twice")
        given[name] = _value(value, is_text=parameters.get(name, {}).get("type") == "str")
    return given


def _value(text: str, *, is_text: bool) -> Any:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return text
    return text if is_text and (value is None or isinstance(value, int | float)) else value


def _check_names(job: str, given: Mapping[str, Any], parameters: dict[str, dict[str, Any]]) -> None:
    takes = f"it takes ({signature(parameters)})"
    takes_others = any(about.get("others") for about in parameters.values())
    for name in given:
        if name not in parameters and not takes_others:
            near = get_close_matches(name, parameters, 1)
            hint = f", did you mean {near[0]!r}?" if near else ";"
            raise ArgumentsError(f"{job}(): there is no argument {name!r}{hint} {takes}")
    missing = [name for name, about in parameters.items() if about["required"] and name not in given]
    if missing:
        raise ArgumentsError(f"{job}(): missing argument {', '.join(map(repr, missing))}; {takes}")


def _check_type(job: str, name: str, value: Any, kind: str) -> None:
    try:
        if _fits(value, ast.parse(kind, mode="eval").body):
            return
    except (SyntaxError, ValueError):  # A type with a name that only the code knows.
        return
    raise ArgumentsError(f"{job}(): argument {name!r}: expected {kind}, got {type(value).__name__}")


def _fits(value: Any, kind: ast.expr) -> bool:
    """Whether a value is of a registered type. A type that only the code knows fits every value."""
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
