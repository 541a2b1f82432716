"""The parameters of a URL as a struct. Unknown, repeated and malformed ones are refused, all of them at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Protocol, TypeVar, Union, get_args, get_origin
from urllib.parse import parse_qsl

import msgspec
from msgspec.structs import FieldInfo

from rota.api.body import fields_of
from rota.api.problem import Flaw, Problem
from rota.domain import duration, plain_types
from rota.domain.errors import DefinitionError
from rota.domain.instant import MICROSECONDS

T = TypeVar("T", bound=msgspec.Struct)
_WHOLE = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?([Zz]|[+-]\d{2}:\d{2})?", re.ASCII)
_BOOLEANS = {"true": True, "false": False}

LONGEST_PAGE = 1_000
Limit = Annotated[int, msgspec.Meta(ge=1, le=LONGEST_PAGE, description="How many items a page has at most.")]


class Paged(Protocol):
    """A query with the parameters that every list has."""

    @property
    def limit(self) -> int: ...
    @property
    def cursor(self) -> str | None: ...
    @property
    def order(self) -> str: ...
    @property
    def fields(self) -> str | None: ...


class Page(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The parameters that every list has."""

    limit: Limit = 50
    cursor: str | None = None
    order: Annotated[str, msgspec.Meta(pattern="^(asc|desc)$")] = "desc"
    fields: str | None = None


def parse(kind: type[T], raw: bytes, now: int) -> T:
    """`raw` is the part of the URL after the question mark. `now` is for durations such as `from=2h`."""
    usual: T | None = None if raw else _usual(kind)
    if usual is not None:
        return usual
    try:
        text = raw.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), errors="strict", max_num_fields=300)
    except (ValueError, UnicodeError):
        raise Problem(
            "bad_parameter", "the part of the URL after ? is malformed: write name=value&name=value"
        ) from None
    fields = fields_of(kind)
    flaws: list[Flaw] = []
    values: dict[str, Any] = {}
    for name in dict.fromkeys(name for name, _ in pairs):
        if name not in fields:
            flaws.append(_unknown(name, list(fields)))
            continue
        texts = [value for other, value in pairs if other == name]
        try:
            values[fields[name].name] = _value(fields[name], texts, now)
        except _Refused as refused:
            flaws.append(Flaw("bad_parameter", f"{refused}{_bounds(fields[name].type)}", parameter=name))
    for field in fields.values():
        if (
            field.required
            and field.name not in values
            and not any(flaw.parameter == field.encode_name for flaw in flaws)
        ):
            flaws.append(
                Flaw("bad_parameter", f"the parameter {field.encode_name} is missing", parameter=field.encode_name)
            )
    if flaws:
        code = "unknown_parameter" if flaws[0].code == "unknown_parameter" else "bad_parameter"
        raise Problem(code, flaws[0].detail, flaws=flaws)
    return kind(**values)


@cache
def _usual(kind: type[T]) -> T | None:
    """The query of a URL without parameters; None if it needs some."""
    return None if any(field.required for field in fields_of(kind).values()) else kind()


def moment(text: str, now: int) -> datetime:
    """RFC 3339 with an offset, or a duration: so long ago."""
    if not _MOMENT.fullmatch(text):
        if " " in text and _MOMENT.fullmatch(text.replace(" ", "+")):
            raise _Refused("a + in a URL means a space: write %2B, or use Z")
        try:
            ago = duration.seconds(text, "a time")
        except DefinitionError:
            raise _Refused(f"{text[:64]!r} is no time: write 2026-01-31T08:00:00Z, or 2h for two hours ago") from None
        return _at(now - round(ago * MICROSECONDS))
    if text[-1] not in "Zz" and text[-6] not in "+-":
        raise _Refused(f"{text[:64]!r} has no zone: add Z, or an offset such as %2B02:00")
    try:
        return msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        raise _Refused(f"{text[:64]!r} is no time that exists between the years 1 and 9999") from None


class _Refused(ValueError):
    """The text says what is wrong with one parameter."""


def _at(instant: int) -> datetime:
    try:
        return datetime.fromisoformat("1970-01-01T00:00:00+00:00") + timedelta(microseconds=instant)
    except OverflowError:
        raise _Refused("the time is before the year 1") from None


def _unknown(name: str, known: Sequence[str]) -> Flaw:
    near = get_close_matches(name, known, 1)
    detail = f"there is no parameter {name[:64]!r}"
    detail += f": did you mean {near[0]}?" if near else f"; there are {', '.join(known)}" if known else " here"
    return Flaw("unknown_parameter", detail, parameter=name[:64])


def _value(field: FieldInfo, texts: Sequence[str], now: int) -> Any:
    kind, many = _kind(field.type)
    if not many and len(texts) > 1:
        raise _Refused(f"{field.encode_name} is given {len(texts)} times: give it once")
    found = [_converted(kind, text, now) for text in texts]
    try:
        return msgspec.convert(found if many else found[0], field.type, strict=False)
    except msgspec.ValidationError as error:
        raise _Refused(f"{field.encode_name}: {_words(str(error), kind)}") from None


def _converted(kind: Any, text: str, now: int) -> Any:
    if "\x00" in text:
        raise _Refused("a NUL character cannot be in a parameter")
    if kind is int:
        if not _WHOLE.fullmatch(text):
            raise _Refused(f"{text[:64]!r} is no whole number")
        return int(text)
    if kind is bool:
        if text not in _BOOLEANS:
            raise _Refused(f"{text[:64]!r} is neither true nor false")
        return _BOOLEANS[text]
    if kind is datetime:
        return moment(text, now)
    return text


@cache
def _kind(annotation: Any) -> tuple[Any, bool]:
    """The type of one value of a parameter, and whether it may be repeated."""
    if get_origin(annotation) is Annotated:
        return _kind(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return _kind(next(one for one in get_args(annotation) if one is not NoneType))
    if get_origin(annotation) in (list, tuple):
        return _kind(get_args(annotation)[0])[0], True
    return annotation, False


@cache
def _bounds(annotation: Any) -> str:
    """The bounds of a number, for a refusal; nothing without both."""
    for meta in getattr(annotation, "__metadata__", ()):
        if meta.ge is not None and meta.le is not None:
            return f"; it is a whole number from {meta.ge:,} to {meta.le:,}"
    return ""


def _words(message: str, kind: Any) -> str:
    """msgspec's message without its path, and with the choices if there are some."""
    message = plain_types.in_message(message.partition(" - at `$")[0])
    if hasattr(kind, "__members__"):
        return f"it must be one of {', '.join(member.value for member in kind)}"
    return message[:1].lower() + message[1:]
