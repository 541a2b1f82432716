"""The base of all shapes: times, durations and their JSON, pauses, pages.

The SDK returns shapes, the commands print them as JSON. `msgspec.json.decode(text, type=…, strict=False)` reads that
JSON back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Generic, Protocol, TypeVar, get_type_hints

import msgspec

from rota.domain.instant import MICROSECONDS, moment

T = TypeVar("T")


class Shape(msgspec.Struct, frozen=True, rename="camel"):
    """A shown value. Times are aware datetimes in UTC and durations timedeltas; in its JSON RFC 3339 and seconds."""


S = TypeVar("S", bound=Shape)


class Paused(Shape, frozen=True):
    """Since when something is paused, by whom, and why."""

    at: datetime
    """Since when it is paused."""
    by: str | None
    note: str | None


class Pausable(Protocol):
    """A row of the store that says whether it is paused."""

    @property
    def paused_at(self) -> int | None: ...
    @property
    def paused_by(self) -> str | None: ...
    @property
    def paused_note(self) -> str | None: ...


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Some items of a list, and whether the list has more behind them.

    `scanned_to` is the key of the last row that was looked at, if the page ended because it had looked at enough.
    """

    items: list[T]
    has_more: bool
    scanned_to: str | None = None


def page(items: Sequence[T], limit: int, scanned_to: str | None = None) -> Page[T]:
    """`items` were read with a limit of one more than asked for, to see whether there are more."""
    if len(items) > limit:
        return Page(list(items[:limit]), True)
    return Page(list(items), scanned_to is not None, scanned_to)


def shaped(kind: type[S], row: object, **members: Any) -> S:
    """Members that are not given have the value of the row's attribute of that name.

    Instants become datetimes, and seconds timedeltas, where the shape has these.
    """
    conversions = _conversions(kind)
    for name in kind.__struct_fields__:
        if name not in members:
            members[name] = getattr(row, name)
        if name in conversions and members[name] is not None:
            members[name] = conversions[name](members[name])
    return kind(**members)


@cache
def _conversions(kind: type[Shape]) -> dict[str, Callable[[Any], Any]]:
    known: dict[Any, Callable[[Any], Any]] = {datetime: moment, datetime | None: moment}
    known |= {timedelta: length, timedelta | None: length}
    return {name: known[hint] for name, hint in get_type_hints(kind).items() if hint in known}


def to_json(value: Any, indent: int | None = None) -> str:
    """The JSON of a shape, of a list of shapes or of plain values."""
    # msgspec alone would write a timedelta as text, such as "PT30S".
    plain = msgspec.to_builtins(value, builtin_types=(timedelta,))
    return json.dumps(plain, default=timedelta.total_seconds, ensure_ascii=False, indent=indent)


def length(seconds: float) -> timedelta:
    """Seconds of the store as a timedelta; the longest one if there are too many."""
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        return timedelta.min if seconds < 0 else timedelta.max


def rfc3339(at: datetime) -> str:
    """As the JSON of a shape has it: UTC, without a fraction if there is none."""
    return at.isoformat().replace("+00:00", "Z")


def seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / MICROSECONDS


def paused(row: Pausable) -> Paused | None:
    if row.paused_at is None:
        return None
    return Paused(at=moment(row.paused_at), by=row.paused_by, note=row.paused_note)
