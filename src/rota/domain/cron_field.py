"""One field of a cron expression: text in, the numbers that it allows out."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec

from rota.domain.errors import DefinitionError

LAST_OFFSET = 30
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_HASH = re.compile(r"H(?:\(([0-9]{1,9})-([0-9]{1,9})\))?", re.ASCII | re.IGNORECASE)
_FROM_LAST = re.compile(r"L(?:-([0-9]{1,9}))?(W?)", re.ASCII)
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_SHORTEST_NAME = 3


class Kind(StrEnum):
    """The fields, in order, by the names that errors use."""

    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day of month"
    MONTH = "month"
    WEEKDAY = "day of week"


_BOUNDS = {
    Kind.SECOND: (0, 59),
    Kind.MINUTE: (0, 59),
    Kind.HOUR: (0, 23),
    Kind.DAY: (1, 31),
    Kind.MONTH: (1, 12),
    Kind.WEEKDAY: (0, 7),
}
_NAMES = {Kind.MONTH: ("", *MONTHS), Kind.WEEKDAY: DAYS}
_EXPECTED_PART = dict.fromkeys(Kind, "a number") | {
    Kind.MONTH: "a number or a name such as JAN",
    Kind.WEEKDAY: "a number or a name such as MON",
}
_EXPECTED = _EXPECTED_PART | {
    Kind.DAY: "a number, L, L-3, LW, L-3W or 15W",
    Kind.WEEKDAY: "a number, a name such as MON, 5#2 or 5L",
}


class Field(msgspec.Struct, frozen=True, cache_hash=True):
    """The values that a field allows. Only a day of month or of week has more than `numbers`."""

    numbers: tuple[int, ...]
    """In order; Sunday is 0."""
    starts_with_star: bool = False
    """As `*` or `*/2` do. If one of the two day fields does, a day must match both; otherwise one is enough."""
    is_wild: bool = False
    """Whether it has a wildcard or a step, so that it follows real time when the clocks are changed."""
    from_last: frozenset[int] = frozenset()
    """Days before the last day of the month: `L` is 0, `L-3` is 3."""
    nearest: frozenset[int] = frozenset()
    """`15W`: the weekday, Monday to Friday, that is nearest to this day within the month."""
    nearest_from_last: frozenset[int] = frozenset()
    """The same counted from the end of the month: `LW` is 0, `L-3W` is 3."""
    nth: frozenset[tuple[int, int]] = frozenset()
    """`5#2`: the second Friday."""
    last: frozenset[int] = frozenset()
    """`5L`: the last Friday."""


def parse(text: str, kind: Kind, seed: str) -> Field:
    """The field, or a DefinitionError that names it. `seed` decides what `H` stands for."""
    numbers: set[int] = set()
    special: dict[str, set[Any]] = defaultdict(set)
    read_special = {Kind.DAY: _special_day, Kind.WEEKDAY: _special_weekday}.get(kind)
    for item in text.split(","):
        if not item:
            raise _wrong(kind, f"{text!r} has an empty place between commas")
        if read_special and (found := read_special(item)):
            attribute, value = found
            special[attribute].add(value)
        else:
            numbers.update(_numbers(item, kind, seed))
    if kind is Kind.WEEKDAY:
        numbers = {number % 7 for number in numbers}  # Sunday is 0 and 7.
    return Field(
        tuple(sorted(numbers)),
        starts_with_star=text[0] in "*?",
        is_wild=any(mark in text for mark in "*?/"),
        **{name: frozenset(values) for name, values in special.items()},
    )


def _special_day(item: str) -> tuple[str, Any] | None:
    """`L`, `L-3`, `LW`, `L-3W` and `15W`: the attribute of `Field`, and what to add to it."""
    text = item.upper()
    if found := _FROM_LAST.fullmatch(text):
        offset = int(found[1] or 0)
        if offset > LAST_OFFSET:
            raise _wrong(Kind.DAY, f"{item!r} is more than {LAST_OFFSET} days before the last of the month")
        return ("nearest_from_last" if found[2] else "from_last"), offset
    if text.endswith("W") and _NUMBER.fullmatch(text[:-1]):
        return "nearest", _number(text[:-1], Kind.DAY)
    return None


def _special_weekday(item: str) -> tuple[str, Any] | None:
    """`5#2`, `5L` and `5#L`, also with names: the attribute of `Field`, and what to add to it."""
    day, mark, place = item.partition("#")
    if not mark and item[-1] in "lL":
        if len(item) == 1:
            raise _wrong(Kind.WEEKDAY, "'L' needs a day of the week, such as 5L for the last Friday")
        day, mark, place = item[:-1], "#", "L"
    if not mark:
        return None
    if place in ("L", "l"):
        return "last", _number(day, Kind.WEEKDAY) % 7
    if place not in ("1", "2", "3", "4", "5"):
        raise _wrong(Kind.WEEKDAY, f"{item!r}: after # comes which one of the month it is, 1 to 5, or L for the last")
    return "nth", (_number(day, Kind.WEEKDAY) % 7, int(place))


def _numbers(item: str, kind: Kind, seed: str) -> Iterable[int]:
    base, slash, step_text = item.partition("/")
    low, high = _BOUNDS[kind]
    size = 7 if kind is Kind.WEEKDAY else high - low + 1
    step = _step(step_text, kind, size) if slash else 1
    if hashed := _HASH.fullmatch(base):
        return _hashed(hashed, kind, seed, step if slash else None)
    if base == "*" or (base == "?" and kind in (Kind.DAY, Kind.WEEKDAY)):
        start, end = low, high
    else:
        first, dash, last = base.partition("-")
        if not first or (dash and not last):
            raise _wrong(kind, f"a number is missing in {item[:40]!r}")
        start = _number(first, kind, is_part=bool(dash or slash))
        end = _number(last, kind, is_part=True) if dash else (high if slash else start)
    # A range may pass the end of the field, such as `FRI-MON` or `22-2`. Its steps count on past the end.
    past_end = size if start > end else 0
    found = [low + (number - low) % size for number in range(start, end + past_end + 1, step)]
    if past_end and kind is Kind.DAY and step > 1:
        # Months differ in length, so the number of days between the last step and the first is not fixed.
        listed = ",".join(map(str, found))
        raise _wrong(kind, f"{item[:40]!r} steps past the end of the month: write the days as a list, such as {listed}")
    return found


def _hashed(found: re.Match[str], kind: Kind, seed: str, step: int | None) -> Iterable[int]:
    """Somewhere in the range, or every `step` from somewhere: always the same for the same seed."""
    low, high = _BOUNDS[kind]
    high = {Kind.DAY: 28, Kind.WEEKDAY: 6}.get(kind, high)
    if found[1] is not None:
        low, high = _number(found[1], kind), _number(found[2], kind)
        if high < low:
            raise _wrong(kind, f"the range {found[0]!r} goes backwards")
    spread = int.from_bytes(hashlib.sha256(f"{seed}\n{kind.value}".encode()).digest()[:8])
    size = high - low + 1
    return [low + spread % size] if step is None else range(low + spread % min(step, size), high + 1, step)


def _number(text: str, kind: Kind, *, is_part: bool = False) -> int:
    """A number or a name. `is_part`: it is part of a range or has a step, where `L`, `W` and `#` are not allowed."""
    low, high = _BOUNDS[kind]
    if (named := _named(text.lower(), kind)) is not None:
        return named
    if not _NUMBER.fullmatch(text):
        if is_part and text.upper() in ("L", "LW", "H"):
            raise _wrong(kind, f"{text!r} cannot be part of a range or have a step: write it as an item of its own")
        raise _wrong(kind, f"{text[:40]!r} is not {_EXPECTED_PART[kind] if is_part else _EXPECTED[kind]}")
    if not low <= int(text) <= high:
        raise _wrong(kind, f"{int(text)} is not between {low} and {high}")
    return int(text)


def _named(text: str, kind: Kind) -> int | None:
    """A name or any start of it from three letters on: `fri`, `friday`, `thurs`, `sept`."""
    names = _NAMES.get(kind, ()) if len(text) >= _SHORTEST_NAME else ()
    return next((number for number, name in enumerate(names) if name.lower().startswith(text)), None)


def _step(text: str, kind: Kind, size: int) -> int:
    if not _NUMBER.fullmatch(text):
        raise _wrong(kind, f"the step {text[:40]!r} is not a number")
    step = int(text)
    if not 1 <= step <= size:
        raise _wrong(kind, f"a step of {step} is not between 1 and {size}")
    return step


def _wrong(kind: Kind, what: str) -> DefinitionError:
    return DefinitionError(f"{kind.value}: {what}")
