"""Cron expressions: which local days and times they match. `ticks` handles zones and clock changes.

Five fields, or six with seconds first; names, ranges (also past the end, such as `22-2`), steps, lists, `L`, `W`, `#`,
`?`, `H` and aliases. If a day of month and a day of week are both given, one of them must match, as in Vixie's cron.

The matching times of a month are the combinations of its matching days with the hours, minutes and seconds. In order of
time they are numbered like the digits of a clock, so the number of a time, and the time of a number, can be computed.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from calendar import monthrange
from datetime import date
from functools import lru_cache

import msgspec

from rota.domain.cron_field import Field, Kind
from rota.domain.cron_field import parse as parse_field
from rota.domain.errors import DefinitionError

LONGEST = 512
DAY_S = 86_400
ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EPOCH = date(1970, 1, 1).toordinal()
_ALL_CALENDARS_S = 28 * 1461 // 4 * DAY_S
"""Within 28 years every month has begun on each day of the week, with each length that it can have."""


class _Month(msgspec.Struct, frozen=True):
    """The matching local times of one month."""

    day_zero: int
    """The local second at which the day before the first begins."""
    days: tuple[int, ...]
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]
    size: int
    """How many times there are."""

    def before(self, local: int) -> int:
        """How many of the times are earlier than `local`, which may be in another month."""
        day, rest = divmod(local - self.day_zero, DAY_S)
        days, hours, minutes, seconds = self.days, self.hours, self.minutes, self.seconds
        place = bisect_left(days, day) * len(hours)
        if day not in days:
            return place * len(minutes) * len(seconds)
        hour, rest = divmod(rest, 3_600)
        place = (place + bisect_left(hours, hour)) * len(minutes)
        if hour not in hours:
            return place * len(seconds)
        minute, second = divmod(rest, 60)
        place = (place + bisect_left(minutes, minute)) * len(seconds)
        return place + bisect_left(seconds, second) if minute in minutes else place

    def at(self, place: int) -> int:
        """The time before which there are `place` others."""
        place, second = divmod(place, len(self.seconds))
        place, minute = divmod(place, len(self.minutes))
        day, hour = divmod(place, len(self.hours))
        of_day = self.hours[hour] * 3_600 + self.minutes[minute] * 60 + self.seconds[second]
        return self.day_zero + self.days[day] * DAY_S + of_day


class Cron(msgspec.Struct, frozen=True, cache_hash=True):
    """An expression that was parsed, and that fires."""

    second: Field
    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field

    @property
    def is_fixed(self) -> bool:
        """Whether it names times of day: without a wildcard or step in the hour and the minute."""
        return not self.hour.is_wild and not self.minute.is_wild

    def first(self, start: int, end: int) -> int | None:
        """The first matching local time in [start, end), both in seconds since 1970 on the local clock."""
        for number in _months(start, end):
            month = _month(self, number)
            if (place := month.before(start)) < month.size:
                found = month.at(place)
                return found if found < end else None
        return None

    def last(self, start: int, end: int) -> int | None:
        """The last matching local time in [start, end)."""
        for number in reversed(_months(start, end)):
            month = _month(self, number)
            if place := month.before(end):
                found = month.at(place - 1)
                return found if found >= start else None
        return None

    def count(self, start: int, end: int) -> int:
        """How many local times match in [start, end): by the month, not one by one."""
        months = (_month(self, number) for number in _months(start, end))
        return sum(month.before(end) - month.before(start) for month in months)


def parse(text: str, seed: str = "") -> Cron:
    """The expression, or a DefinitionError that names the field. `seed` decides what `H` stands for."""
    if not isinstance(text, str) or len(text) > LONGEST:
        raise DefinitionError(f"a cron expression is a text of at most {LONGEST} characters")
    words = text.split()
    _refuse_other_dialects(words)
    if len(words) == 1 and words[0].startswith("@"):
        if words[0].lower() not in ALIASES:
            raise DefinitionError(f"cron: {words[0][:40]!r} is none of {', '.join(ALIASES)}")
        words = ALIASES[words[0].lower()].split()
    if len(words) not in (5, 6):
        raise DefinitionError(
            "a cron expression has 5 fields (minute, hour, day of month, month, day of week), or 6 with seconds first; "
            f"{text[:80]!r} has {len(words)}"
        )
    if len(words) == 5:
        words = ["0", *words]
    cron = Cron(*(parse_field(word, kind, seed) for word, kind in zip(words, Kind, strict=True)))
    if cron.first(0, _ALL_CALENDARS_S) is None:
        raise DefinitionError(f"day of month: {text!r} never fires, no such day comes in its months")
    return cron


def _refuse_other_dialects(words: list[str]) -> None:
    """Other schedulers write an interval or a zone into the expression; here each has an option of its own."""
    if not words:
        return
    if words[0].lower() == "@every":
        length = " ".join(words[1:])[:40] or "5m"
        raise DefinitionError(f"cron: '@every' is an interval, not a cron expression: write every={length!r} instead")
    name, equals, value = words[0].partition("=")
    if equals and name.upper() in ("CRON_TZ", "TZ"):
        example = value[:40] or "Europe/Berlin"
        raise DefinitionError(f"cron: the zone is an option: leave out {name}= and write tz={example!r} beside it")


def _months(start: int, end: int) -> range:
    """The months of the local times from `start` to `end`, counted from the year 0."""
    first, last = (date.fromordinal(_EPOCH + local // DAY_S) for local in (start, end))
    return range(first.year * 12 + first.month - 1, last.year * 12 + last.month)


@lru_cache(maxsize=4096)
def _month(cron: Cron, number: int) -> _Month:
    """The month of this number, counted from the year 0; without any times if the expression leaves it out."""
    year, index = divmod(number, 12)
    is_allowed = index + 1 in cron.month.numbers
    days = _days(cron.day, cron.weekday, *monthrange(year, index + 1)) if is_allowed else ()
    times = (cron.hour.numbers, cron.minute.numbers, cron.second.numbers)
    day_zero = (date(year, index + 1, 1).toordinal() - _EPOCH - 1) * DAY_S
    return _Month(day_zero, days, *times, len(days) * math.prod(map(len, times)))


@lru_cache(maxsize=4096)
def _days(day: Field, weekday: Field, first: int, length: int) -> tuple[int, ...]:
    """The matching days of a month that begins on weekday `first` (0 is Monday) and has `length` days."""
    weekdays = {number: (first + number) % 7 for number in range(1, length + 1)}  # 0 is Sunday, as in cron.
    by_day = _by_day(day, weekdays)
    by_weekday = {
        number
        for number, name in weekdays.items()
        if name in weekday.numbers
        or (name, (number + 6) // 7) in weekday.nth
        or (name in weekday.last and number + 7 > length)
    }
    must_fit_both = day.starts_with_star or weekday.starts_with_star
    return tuple(sorted(by_day & by_weekday if must_fit_both else by_day | by_weekday))


def _by_day(day: Field, weekdays: dict[int, int]) -> set[int]:
    length = len(weekdays)
    found = {*day.numbers, *(length - offset for offset in day.from_last)}
    for target in (*day.nearest, *(length - offset for offset in day.nearest_from_last)):
        match weekdays.get(target):
            case None:
                continue  # The month has no such day.
            case 6:  # Saturday moves to Friday and Sunday to Monday, unless that is in another month.
                found.add(target - 1 if target > 1 else target + 2)
            case 0:
                found.add(target + 1 if target < length else target - 2)
            case _:
                found.add(target)
    return found & weekdays.keys()
