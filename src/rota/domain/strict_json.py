"""Checks JSON text from outside before it is decoded: what one reader of JSON accepts and another loses is refused.

Refused: duplicate names, NaN and infinities, numbers that no float holds, integers with too many digits, NUL
characters, lone surrogates, a byte order mark, bytes that are not UTF-8, deep nesting, and anything after the value. A
`BadJson` says where, as a JSON pointer, or as an offset if the text is no JSON at all.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

DEEPEST = 200
MOST_DIGITS = 4300
MOST_EXPONENT = 400
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)


class BadJson(ValueError):
    """`pointer` is the JSON pointer of the bad value; empty for the whole text."""

    def __init__(self, detail: str, pointer: str = "") -> None:
        super().__init__(detail)
        self.detail, self.pointer = detail, pointer


def check(data: bytes) -> None:
    """Raises BadJson unless `data` is one JSON value that every reader understands alike."""
    text = _text(data)
    if text.count("[") + text.count("{") > DEEPEST:
        _check_depth(text)
    try:
        try:
            value = _LOOSE.decode(text)
        except _Flaw:
            _find(text)
            raise AssertionError("the second pass finds the flaw of the first one") from None
    except json.JSONDecodeError as error:
        raise BadJson(f"it is not JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos}") from None
    if "\\u" in text and (flaw := _flaw_of_text(value, "")) is not None:
        raise BadJson(*flaw)


def _text(data: bytes) -> str:
    if data.startswith(b"\xef\xbb\xbf"):
        raise BadJson("it begins with a byte order mark: send UTF-8 without one")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadJson(f"it is not UTF-8: byte {error.start} is wrong") from None


def _check_depth(text: str) -> None:
    depth = 0
    for char in _STRING.sub("", text):
        if char in "[{":
            depth += 1
            if depth > DEEPEST:
                raise BadJson(f"it is nested deeper than {DEEPEST} levels")
        elif char in "]}":
            depth -= 1


class _Flaw(ValueError):
    """A value or a name that is refused."""


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, with duplicate names."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Flaw
    return found


def _flaw_of_number(digits: str) -> str | None:
    """Why a number is refused; its digits are as they were written."""
    plain, _, exponent = digits.lower().partition("e")
    if len(plain) > MOST_DIGITS + 1:
        return f"a number has more than {MOST_DIGITS:,} digits"
    if not exponent and "." not in plain:
        return None
    exponent = exponent.lstrip("+-0")
    if len(exponent) > 3 or int(exponent or 0) > MOST_EXPONENT or not math.isfinite(float(digits)):
        return f"no reader can hold the number {digits[:32]}"
    return None


def _number(digits: str) -> None:
    if _flaw_of_number(digits):
        raise _Flaw


def _constant(name: str) -> None:
    raise _Flaw


def _integer(digits: str) -> None:
    if len(digits) > MOST_DIGITS:
        _number(digits)


_LOOSE = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_number, parse_int=_integer, parse_constant=_constant)
_EXACT = json.JSONDecoder(
    object_pairs_hook=_Pairs,
    parse_float=lambda digits: _Digits(digits),
    parse_int=lambda digits: _Digits(digits),
    parse_constant=lambda name: _Digits(name),
)


class _Digits(str):
    """A number as it was written."""

    __slots__ = ()


def _find(text: str) -> None:
    """Decodes again, with everything that is refused, and raises a BadJson for the first flaw."""
    _walk(_EXACT.decode(text), "")


def _walk(value: Any, pointer: str) -> None:
    if isinstance(value, _Pairs):
        seen = set()
        for name, item in value:
            if name in seen:
                raise BadJson(f"the name {name[:64]!r} occurs twice in one object", _below(pointer, name))
            seen.add(name)
            _walk(item, _below(pointer, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _walk(item, f"{pointer}/{index}")
    elif isinstance(value, _Digits):
        if value in ("NaN", "Infinity", "-Infinity"):
            raise BadJson(f"JSON has no {value}", pointer)
        if flaw := _flaw_of_number(value):
            raise BadJson(flaw, pointer)


def _flaw_of_text(value: Any, pointer: str) -> tuple[str, str] | None:
    """The first NUL character or lone surrogate, and where it is."""
    if isinstance(value, str):
        if "\x00" in value:
            return "a text has a NUL character, which databases cannot store", pointer
        try:
            value.encode()
        except UnicodeEncodeError:
            return "a text has a lone surrogate, which is not a character", pointer
        return None
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        where = _below(pointer, key) if isinstance(key, str) else f"{pointer}/{key}"
        found = (_flaw_of_text(key, pointer) if isinstance(key, str) else None) or _flaw_of_text(item, where)
        if found is not None:
            return found
    return None


def _below(pointer: str, name: str) -> str:
    shown = name[:64].encode("utf-8", "replace").decode().replace("\x00", "␀")
    return f"{pointer}/{shown.replace('~', '~0').replace('/', '~1')}"
