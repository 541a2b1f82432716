"""A job's arguments as the command line gives them: `name=value` words or one JSON object.

A value is JSON if it parses as JSON, and otherwise the text itself: `count=3` is a number, `to=a@b.c` is text, and
`code='"007"'` is text too. What the job's registered parameters tell (names, which are required, plain types) is
checked here; with the app's code at hand, its signature checks the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from rota.cli.text import signature
from rota.domain import payload
from rota.domain.errors import ArgumentsError

_PLAIN: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}


def parse(words: Sequence[str], as_json: str | None) -> dict[str, Any]:
    """The arguments by name."""
    if as_json is None:
        return _from_words(words)
    if words:
        raise ArgumentsError(f"give arguments as name=value or as --json, not both ({words[0]!r})")
    value = payload.decode(sys.stdin.read() if as_json == "-" else as_json, "--json")
    if not isinstance(value, dict):
        raise ArgumentsError('--json takes an object of arguments by name, such as {"to": "a@b.c"}')
    return value


def encode(job: str, given: Mapping[str, Any], parameters: dict[str, dict[str, Any]], most_bytes: int) -> str:
    """The arguments as they are stored."""
    _check_names(job, given, parameters)
    for name, value in given.items():
        if name in parameters:
            _check_type(job, name, value, parameters[name]["type"])
    return payload.encode(dict(given), f"{job}(): the arguments", most_bytes)


def _from_words(words: Sequence[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise ArgumentsError(f"an argument is name=value, not {word!r}")
        if name in given:
            raise ArgumentsError(f"the argument {name!r} is given twice")
        given[name] = _value(value)
    return given


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return text


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
    if _fits(value, kind):
        return
    hint = f"; for the text write {name}='\"{value}\"'" if kind == "str" and isinstance(value, int | float) else ""
    raise ArgumentsError(f"{job}(): argument {name!r}: expected {kind}, got {type(value).__name__}{hint}")


def _fits(value: Any, kind: str) -> bool:
    """Whether a value is of a type as it is registered; of one that only the code knows, it may be."""
    options = _options(kind)
    return any(_fits(value, one) for one in options) if len(options) > 1 else _fits_one(value, kind)


def _fits_one(value: Any, kind: str) -> bool:
    if kind in _PLAIN:
        return isinstance(value, _PLAIN[kind]) and isinstance(value, bool) <= (kind == "bool")
    if kind == "None":
        return value is None
    if kind.startswith("list[") and kind.endswith("]"):
        return isinstance(value, list) and all(_fits(item, kind[5:-1]) for item in value)
    return True


def _options(kind: str) -> list[str]:
    """The types of a union, `int | list[int | str]`, without looking into brackets."""
    found, depth = [""], 0
    for part in kind.split(" | "):
        found[-1] += f" | {part}" if depth else part
        depth += part.count("[") - part.count("]")
        if depth == 0:
            found.append("")
    return found[:-1] if found[-1] == "" else found
