"""The one validator in front of every database: what may be stored as JSON, and how text is made safe.

Arguments and results are refused if they hold what a database or a reader of JSON cannot carry faithfully: NaN and
infinities, NUL characters, lone surrogates, values that are not JSON, or too many bytes. Text that Rota writes by
itself (errors, tracebacks, notes) is cleaned instead, because the write that ends an execution must not fail.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import msgspec

from rota.domain.errors import ArgumentsError
from rota.domain.outcome import Error

MOST_BYTES = 1024 * 1024
DEEPEST = 200
MOST_DIGITS = 16_000
MOST_MESSAGE = 8 * 1024
MOST_TRACEBACK = 32 * 1024
_ROOM_FOR_NOTE = 60

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()
_REFUSED = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)


def encode(value: Any, what: str, most_bytes: int = MOST_BYTES, *, is_read_next: bool = False) -> str:
    """`value` as JSON text, or an ArgumentsError that says what cannot be stored and where.

    A msgspec.Raw goes into the text as it is, so what was written may be anything: it must also be readable, and that
    is tried unless the caller is going to.
    """
    try:
        data = _encoder.encode(value)
        text = data.decode()
        if not is_read_next:
            _decoder.decode(data)
    except _REFUSED as error:
        raise ArgumentsError(f"{what} cannot be stored as JSON: {_plain(error)}") from None
    if len(data) > most_bytes:
        raise ArgumentsError(
            f"{what} would take {len(data):,} bytes of JSON; at most {most_bytes:,} are stored. "
            "Keep large data elsewhere and pass a reference."
        )
    # The encoder writes NaN as null and NUL as an escape: only then, or where many brackets allow a deep nesting, is a
    # look at every value needed.
    is_deep = len(text) > DEEPEST and text.count("[") + text.count("{") > DEEPEST
    if is_deep or "null" in text or "\\u0000" in text:
        _check(msgspec.to_builtins(value, str_keys=True, enc_hook=_decoder.decode), what, "", 0)
    return text


def decode(text: str | bytes, what: str) -> Any:
    """JSON text from outside as a value; bad JSON of every kind is an ArgumentsError."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ArgumentsError(f"{what} is not valid JSON: {_plain(error)}") from None
    _check(value, what, "", 0)
    return value


def canonical(text: str) -> str:
    """JSON as PostgreSQL writes a `jsonb`: the same for the same value, in whatever order and form it was given.

    So that a digest of arguments is the same whether Python or the database made it.
    """
    return _written(json.loads(text, parse_float=_decimal, parse_int=_whole))


def clean(text: str, most: int = MOST_MESSAGE) -> str:
    """`text` without what no database stores, and not longer than `most` characters; keeps both ends."""
    if "\x00" in text:
        text = text.replace("\x00", "␀")
    if type(text) is not str or not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    if len(text) <= most:
        return text
    half = (most - _ROOM_FOR_NOTE) // 2
    if half <= 0:
        return text[:most]
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"


def clean_all(texts: list[str], most: int) -> list[str]:
    """`clean` of each. Mostly there is nothing to do, which is seen at a glance at all of them."""
    together = "\n".join(texts)
    is_short = len(together) <= most or max(map(len, texts)) <= most
    if is_short and "\x00" not in together and (together.isascii() or _is_unicode(together)):
        return texts
    return [clean(text, most) for text in texts]


def error(kind: str, message: str, traceback: str = "") -> Error:
    """An `Error` that can be stored whatever it was made from."""
    return Error(clean(kind, 200), clean(message), clean(traceback, MOST_TRACEBACK))


def _is_unicode(text: str) -> bool:
    """Whether there is no lone surrogate in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check(value: Any, what: str, path: str, depth: int) -> None:
    if depth > DEEPEST:
        raise ArgumentsError(f"{what} is nested deeper than {DEEPEST} levels at {path or 'the top'}")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ArgumentsError(f"{what} holds {value!r} at {path or 'the top'}, which JSON cannot carry")
    elif isinstance(value, str):
        if "\x00" in value:
            raise ArgumentsError(f"{what} holds a NUL character at {path or 'the top'}")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check(key, what, f"{path}.{key}", depth + 1)
            _check(item, what, f"{path}.{key}", depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check(item, what, f"{path}[{index}]", depth + 1)


class _Number(str):
    """A number by its digits, which a float could not keep."""

    __slots__ = ()


def _whole(digits: str) -> _Number:
    return _Number("0" if digits == "-0" else digits)


def _decimal(digits: str) -> _Number:
    number = Decimal(digits)
    if abs(number.adjusted()) > MOST_DIGITS:
        return _Number(digits)  # Beyond what a `numeric` holds: no database writes it in another way.
    return _Number(format(number if number else abs(number), "f"))


def _written(value: Any) -> str:
    match value:
        case _Number():
            return str(value)
        case dict():
            # By the length of a name first, in bytes.
            names = sorted(value, key=lambda name: (len(name.encode()), name.encode()))
            return "".join(("{", ", ".join(f"{_quoted(name)}: {_written(value[name])}" for name in names), "}"))
        case list():
            return "".join(("[", ", ".join(map(_written, value)), "]"))
        case _:
            return _quoted(value)


def _quoted(value: str | bool | None) -> str:
    return json.dumps(value, ensure_ascii=False)


def _plain(error: BaseException) -> str:
    if isinstance(error, UnicodeError):
        return "it holds a lone surrogate or bytes that are not UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deeply or refers to itself"
    return str(error)
