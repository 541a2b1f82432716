"""What all shapes have in common: camelCase names, times as aware datetimes, pauses, pages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any, Generic, Protocol, TypeVar, get_type_hints

import msgspec

from rota.domain.instant import MICROSECONDS, moment

T = TypeVar("T")


class Shape(msgspec.Struct, frozen=True, rename="camel"):
    """A shown value. Times are RFC 3339 in UTC in its JSON, durations are seconds."""


S = TypeVar("S", bound=Shape)


class Paused(Shape, frozen=True):
    """Since when something is paused, by whom, and why."""

    at: datetime
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
    """Some items of a list, and whether the list has more behind them."""

    items: list[T]
    has_more: bool


def page(items: Sequence[T], limit: int) -> Page[T]:
    """`items` were read with a limit of one more than asked for, to see whether there are more."""
    return Page(list(items[:limit]), len(items) > limit)


def shaped(kind: type[S], row: object, **members: Any) -> S:
    """Members that are not given have the value of the row's attribute of that name. Instants become datetimes."""
    for name in kind.__struct_fields__:
        if name not in members:
            members[name] = getattr(row, name)
        if name in _datetimes(kind):
            members[name] = moment_or_none(members[name])
    return kind(**members)


@cache
def _datetimes(kind: type[Shape]) -> frozenset[str]:
    hints = get_type_hints(kind)
    return frozenset(name for name, hint in hints.items() if hint in (datetime, datetime | None))


def moment_or_none(instant: int | None) -> datetime | None:
    return None if instant is None else moment(instant)


def rfc3339(at: datetime) -> str:
    """As the JSON of a shape has it: UTC, without a fraction if there is none."""
    return at.isoformat().replace("+00:00", "Z")


def seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / MICROSECONDS


def paused(row: Pausable) -> Paused | None:
    if row.paused_at is None:
        return None
    return Paused(at=moment(row.paused_at), by=row.paused_by, note=row.paused_note)
