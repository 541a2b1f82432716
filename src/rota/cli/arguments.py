"""A job's arguments as the command line gives them: `name=value` words or one JSON object.

A value is JSON if it parses as JSON, and otherwise the text itself: `count=3` is a number, `to=a@b.c` is text, and
`code='"007"'` is text too. If the annotation of the parameter is exactly `str`, then a number, true, false and null are
text as written: `version=1.10` is "1.10". If the app's code is loaded, the function's signature checks what the
registered parameters cannot (`domain/job_parameters.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rota.domain import payload
from rota.domain.errors import ArgumentsError


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
