"""The one validator in front of every database: it refuses JSON that cannot be stored, and cleans text.

Arguments and results are refused if they hold what a database or a reader of JSON cannot carry faithfully: NaN and
infinities, NUL characters, lone surrogates, values that are not JSON, or too many bytes. Text that Rota writes by
itself (errors, tracebacks, notes) is cleaned instead, because the write that ends an execution must not fail.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

import msgspec

from rota.domain.errors import ArgumentsError
from rota.domain.outcome import Error, Excerpt

MOST_BYTES = 1024 * 1024
DEEPEST = 200
MOST_EXPONENT = 400
MOST_PLACE = 200
MOST_MESSAGE = 8 * 1024
MOST_TRACEBACK = 32 * 1024
MOST_LINE = 200
"""Of a line of source."""
MOST_NOTE = 500
"""Of the note of a pause."""
_ROOM_FOR_NOTE = 60
_LARGE_EXPONENT = re.compile(r"[eE][+-]?0*[1-9][0-9]{2}")

_FLAT = frozenset({int, float, bool, str, type(None)})

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()
_REFUSED = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)


def encode(value: Any, what: str, most_bytes: int = MOST_BYTES, *, is_read_next: bool = False) -> str:
    """`value` as JSON text, or an ArgumentsError that says what cannot be stored and where.

    A msgspec.Raw is copied into the text unchecked, so the text is decoded once to prove that it is JSON, unless the
    caller is going to decode it anyway (`is_read_next`).
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
    if "null" in text or _may_be_flawed(text):
        try:
            plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_decoder.decode)
        except _REFUSED as error:
            raise ArgumentsError(f"{what} cannot be stored as JSON: {_plain(error)}") from None
        _check(plain, what)
    if not _is_flat(value):  # This test costs a third of the search.
        _check_exponents(text, what)
    return text


def encode_flat(values: Sequence[dict[str, Any]], most_bytes: int) -> str | None:
    """The values as lines of JSON; None if one of them needs the closer look of `encode`.

    One look at all lines together costs a fraction of a look at each.
    """
    kinds = set(map(type, chain.from_iterable(map(dict.values, values))))
    if not kinds <= _FLAT:
        return None
    try:
        lines = _encoder.encode_lines(values)[:-1].decode()
    except _REFUSED:
        return None
    # The encoder writes NaN as null and NUL as an escape. A character has at most four bytes.
    is_flawed = (float in kinds and "null" in lines) or "\\u0000" in lines
    is_long = 4 * len(lines) > most_bytes and 4 * max(map(len, lines.split("\n"))) > most_bytes
    return None if is_flawed or is_long else lines


def decode(text: str | bytes, what: str) -> Any:
    """JSON text from outside as a value; bad JSON of every kind is an ArgumentsError."""
    try:
        value = _decoder.decode(text)
        if _may_be_flawed(text if isinstance(text, str) else text.decode()):
            _check(value, what)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ArgumentsError(f"{what} is not valid JSON: {_plain(error)}") from None
    return value


def digest(text: str) -> str:
    """A hash of the canonical form, the same whether Python or the database made it.

    The canonical form writes exponents out as zeros and may be fifty times as long as the text, so it is hashed piece
    by piece and never kept.
    """
    hashed = hashlib.sha256()
    write_canonical(text, lambda piece: hashed.update(piece.encode()))
    return hashed.hexdigest()


def write_canonical(text: str, add: Callable[[str], object]) -> None:
    """JSON as PostgreSQL writes a `jsonb`: the same for the same value, in whatever order and form it was given."""
    _write(json.loads(text, parse_float=_Number, parse_int=_Number), add)


def clean(text: str, most: int = MOST_MESSAGE) -> str:
    """`text` without characters that no database stores, and at most `most` characters long; keeps both ends."""
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
    """`clean` of each text. Usually none needs it, and one test of all texts together shows that."""
    together = "\n".join(texts)
    is_short = len(together) <= most or max(map(len, texts)) <= most
    if is_short and "\x00" not in together and (together.isascii() or is_unicode(together)):
        return texts
    return [clean(text, most) for text in texts]


def error(kind: str, message: str, traceback: str = "", source: Sequence[Excerpt] = ()) -> Error:
    """An `Error` that can be stored whatever it was made from. Traceback and source share one limit."""
    trace = clean(traceback, MOST_TRACEBACK)
    kept = _within(source, MOST_TRACEBACK - len(trace))
    return Error(clean(kind, 200), clean(message), trace, kept or msgspec.UNSET)


def _within(source: Sequence[Excerpt], most: int) -> list[Excerpt]:
    """As many of the excerpts as have this many characters together."""
    kept = []
    for one in source:
        lines = [clean(line, MOST_LINE) for line in one.lines]
        most -= len(one.file) + sum(map(len, lines))
        if most < 0:
            break
        kept.append(Excerpt(clean(one.file), one.line, one.first, lines))
    return kept


def is_unicode(text: str) -> bool:
    """Whether the text has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _may_be_flawed(text: str) -> bool:
    """A cheap test of JSON text: False if no value in it is nested too deeply or holds a NUL character."""
    is_deep = len(text) > DEEPEST and text.count("[") + text.count("{") > DEEPEST
    return is_deep or "\\u0000" in text


def _check(value: Any, what: str) -> None:
    if flaw := _flaw(value, 0):
        words, steps = flaw
        place = "".join(reversed(steps))
        place = place if len(place) <= MOST_PLACE else f"{place[:MOST_PLACE]}…"
        raise ArgumentsError(f"{what} cannot be stored: {words.format(place=place or 'the top')}")


def _flaw(value: Any, depth: int) -> tuple[str, list[str]] | None:
    """A message about the first value that cannot be stored, and the path to it, innermost step first.

    The path is built only once a flaw is found. Building it for every value would cost the length of a name times the
    number of values below it.
    """
    if depth > DEEPEST:
        return f"nested deeper than {DEEPEST} levels at {{place}}", []
    if isinstance(value, float):
        return None if math.isfinite(value) else (f"{value!r} at {{place}}, which JSON cannot carry", [])
    if isinstance(value, str):
        return ("a NUL character at {place}", []) if "\x00" in value else None
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    for key, item in items:
        found = (_flaw(key, depth + 1) if isinstance(key, str) else None) or _flaw(item, depth + 1)
        if found is not None:
            found[1].append(f".{key[:MOST_PLACE]}" if isinstance(key, str) else f"[{key}]")
            return found
    return None


def _is_flat(value: Any) -> bool:
    """Whether it holds no ready-made JSON: a plain value, or a dict of plain values."""
    kind = type(value)
    return kind in _FLAT or (kind is dict and _FLAT.issuperset(map(type, value.values())))


def _check_exponents(text: str, what: str) -> None:
    """Refuses numbers such as 1e-15999 in ready-made JSON: no float holds them, and written out they are very long."""
    if not _LARGE_EXPONENT.search(text):
        return

    def check(digits: str) -> None:
        exponent = digits.lower().partition("e")[2].lstrip("+-0")
        if len(exponent) > 3 or int(exponent or 0) > MOST_EXPONENT:
            raise ArgumentsError(f"a number in {what} has an exponent beyond {MOST_EXPONENT}: {digits[:64]}")

    json.loads(text, parse_float=check, parse_int=str)


class _Number(str):
    """A number kept as its digits, because a float would lose some."""

    __slots__ = ()

    def written(self) -> str:
        """As a `numeric` of PostgreSQL is written: no exponent and no negative zero."""
        if self.lstrip("-").isdigit():
            return "0" if self == "-0" else str(self)
        number = Decimal(self)
        if abs(number.adjusted()) > MOST_EXPONENT:
            return str(self)  # `encode` refuses such a number, so this form is never compared with PostgreSQL's.
        return format(number if number else abs(number), "f")


def _write(value: Any, add: Callable[[str], object]) -> None:
    match value:
        case _Number():
            add(value.written())
        case dict():
            # By the length of a name first, in bytes.
            mark = "{"
            for name in sorted(value, key=lambda name: (len(name.encode()), name.encode())):
                add(f"{mark}{_quoted(name)}: ")
                _write(value[name], add)
                mark = ", "
            add("}" if value else "{}")
        case list():
            mark = "["
            for item in value:
                add(mark)
                _write(item, add)
                mark = ", "
            add("]" if value else "[]")
        case _:
            add(_quoted(value))


def _quoted(value: str | bool | None) -> str:
    return json.dumps(value, ensure_ascii=False)


def _plain(error: BaseException) -> str:
    if isinstance(error, UnicodeError):
        return "it holds a lone surrogate or bytes that are not UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deeply or refers to itself"
    return str(error)
