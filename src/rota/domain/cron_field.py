"""One field of a cron expression: text in, a set of numbers out, kept as the bits of an integer."""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum

import msgspec

from rota.domain.errors import DefinitionError

LAST_OFFSET = 30
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_HASH = re.compile(r"H(?:\(([0-9]{1,9})-([0-9]{1,9})\))?", re.ASCII | re.IGNORECASE)
_FROM_LAST = re.compile(r"L(?:-([0-9]{1,9}))?(W?)", re.ASCII)
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_SHORTEST_NAME = 3


class Kind(StrEnum):
    """Which field it is, by the name that errors use."""

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
_NAMES = {
    Kind.MONTH: {name: number for number, name in enumerate(_MONTHS, start=1)},
    Kind.WEEKDAY: {name: number for number, name in enumerate(_DAYS)},
}


_EXPECTED_PART = dict.fromkeys(Kind, "a number") | {
    Kind.MONTH: "a number or a name such as JAN",
    Kind.WEEKDAY: "a number or a name such as MON",
}
_EXPECTED = _EXPECTED_PART | {
    Kind.DAY: "a number, L, L-3, LW, L-3W or 15W",
    Kind.WEEKDAY: "a number, a name such as MON, 5#2 or 5L",
}


class Field(msgspec.Struct, frozen=True):
    """What a field allows. Only a day of month or of week has more than `numbers`."""

    numbers: int
    starts_with_star: bool = False
    """As `*` or `*/2` do: then a day must fit both day fields, else either of them."""
    is_wild: bool = False
    """Whether it has a wildcard or a step, so that it follows real time when the clocks are changed."""
    from_last: frozenset[int] = frozenset()
    """`L` is 0, `L-3` is 3: so many days before the last of the month."""
    nearest: frozenset[int] = frozenset()
    """`15W`: the weekday, Monday to Friday, that is nearest to this day within the month."""
    nearest_from_last: frozenset[int] = frozenset()
    """The same counted from the end of the month: `LW` is 0, `L-3W` is 3."""
    nth: frozenset[tuple[int, int]] = frozenset()
    """`5#2`: the second Friday."""
    last: frozenset[int] = frozenset()
    """`5L`: the last Friday."""


class _Draft:
    """What has been read of a field so far."""

    def __init__(self) -> None:
        self.numbers = 0
        self.is_wild = False
        self.from_last: set[int] = set()
        self.nearest: set[int] = set()
        self.nearest_from_last: set[int] = set()
        self.nth: set[tuple[int, int]] = set()
        self.last: set[int] = set()


def parse(text: str, kind: Kind, seed: str) -> Field:
    """The field, or a DefinitionError that names it. `seed` decides what `H` stands for."""
    draft = _Draft()
    for item in text.split(","):
        if not item:
            raise _wrong(kind, f"{text!r} has an empty place between commas")
        if not (_special_day(item, draft) if kind is Kind.DAY else _special_weekday(item, kind, draft)):
            draft.numbers |= _numbers(item, kind, seed, draft)
    if kind is Kind.WEEKDAY and draft.numbers >> 7:
        draft.numbers = (draft.numbers | 1) & 0b1111111  # Sunday is 0 and 7.
    return Field(
        draft.numbers,
        text[0] in "*?",
        draft.is_wild,
        frozenset(draft.from_last),
        frozenset(draft.nearest),
        frozenset(draft.nearest_from_last),
        frozenset(draft.nth),
        frozenset(draft.last),
    )


def _numbers(item: str, kind: Kind, seed: str, draft: _Draft) -> int:
    base, slash, step_text = item.partition("/")
    low, high = _BOUNDS[kind]
    step = _step(step_text, kind, high - low + 1 - (kind is Kind.WEEKDAY)) if slash else 1
    draft.is_wild = draft.is_wild or bool(slash) or base in ("*", "?")
    if kind is Kind.WEEKDAY and base in ("*", "?"):
        high = 6
    if base == "*" or (base == "?" and kind in (Kind.DAY, Kind.WEEKDAY)):
        return _bits(low, high, step)
    if hashed := _HASH.fullmatch(base):
        return _hashed(hashed, kind, seed, step if slash else None)
    first, dash, last = base.partition("-")
    if not first or (dash and not last):
        raise _wrong(kind, f"a number is missing in {item[:40]!r}")
    start = _number(first, kind, is_part=bool(dash or slash))
    end = _number(last, kind, is_part=True) if dash else (high if slash else start)
    return _bits(start, end, step) if start <= end else _wrapped(item, kind, start, end, step)


def _wrapped(item: str, kind: Kind, start: int, end: int, step: int) -> int:
    """A range that passes the end of the field, such as `FRI-MON` or `22-2`. Its steps count on past the end."""
    low, high = _BOUNDS[kind]
    size = 7 if kind is Kind.WEEKDAY else high - low + 1
    found = [low + (number - low) % size for number in range(start, end + size + 1, step)]
    if kind is Kind.DAY and step > 1:
        # Months differ in length, so the number of days between the last step and the first is not fixed.
        listed = ",".join(map(str, found))
        raise _wrong(kind, f"{item[:40]!r} steps past the end of the month: write the days as a list, such as {listed}")
    return sum(1 << number for number in set(found))


def _hashed(found: re.Match[str], kind: Kind, seed: str, step: int | None) -> int:
    """Somewhere in the range, or every `step` from somewhere: always the same for the same seed."""
    low, high = _BOUNDS[kind]
    high = {Kind.DAY: 28, Kind.WEEKDAY: 6}.get(kind, high)
    if found[1] is not None:
        low, high = _number(found[1], kind), _number(found[2], kind)
        if high < low:
            raise _wrong(kind, f"{found[0]!r} goes backwards")
    digest = hashlib.sha256(f"{seed}\n{kind.value}".encode()).digest()
    spread = int.from_bytes(digest[:8])
    if step is None:
        return 1 << (low + spread % (high - low + 1))
    return _bits(low + spread % min(step, high - low + 1), high, step)


def _special_day(item: str, draft: _Draft) -> bool:
    """`L`, `L-3`, `LW`, `L-3W` and `15W`."""
    text = item.upper()
    if found := _FROM_LAST.fullmatch(text):
        offset = int(found[1] or 0)
        if offset > LAST_OFFSET:
            raise _wrong(Kind.DAY, f"{item!r} is more than {LAST_OFFSET} days before the last of the month")
        (draft.nearest_from_last if found[2] else draft.from_last).add(offset)
    elif text.endswith("W") and _NUMBER.fullmatch(text[:-1]):
        draft.nearest.add(_number(text[:-1], Kind.DAY))
    else:
        return False
    return True


def _special_weekday(item: str, kind: Kind, draft: _Draft) -> bool:
    """`5#2`, `5L` and `5#L`, also with names."""
    if kind is not Kind.WEEKDAY:
        return False
    day, mark, place = item.partition("#")
    if mark and place in ("L", "l"):
        draft.last.add(_number(day, kind) % 7)
        return True
    if mark:
        if place not in ("1", "2", "3", "4", "5"):
            raise _wrong(kind, f"{item!r}: after # comes which one of the month it is, 1 to 5, or L for the last")
        draft.nth.add((_number(day, kind) % 7, int(place)))
        return True
    if item[-1] in "lL":
        if len(item) == 1:
            raise _wrong(kind, "'L' needs the day whose last one is meant, such as 5L for the last Friday")
        draft.last.add(_number(item[:-1], kind) % 7)
        return True
    return False


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
    if len(text) < _SHORTEST_NAME:
        return None
    return next((number for name, number in _NAMES.get(kind, {}).items() if name.startswith(text)), None)


def _step(text: str, kind: Kind, span: int) -> int:
    if not _NUMBER.fullmatch(text):
        raise _wrong(kind, f"the step {text[:40]!r} is not a number")
    step = int(text)
    if not 1 <= step <= span:
        raise _wrong(kind, f"a step of {step} is not between 1 and {span}")
    return step


def _bits(low: int, high: int, step: int) -> int:
    return sum(1 << number for number in range(low, high + 1, step))


def _wrong(kind: Kind, what: str) -> DefinitionError:
    return DefinitionError(f"{kind.value}: {what}")
