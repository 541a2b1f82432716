"""Cron expressions: which local days and times they mean. Zones and changed clocks are for `ticks`.

Five fields, or six with seconds first; names, ranges (also past the end, such as `22-2`), steps, lists, `L`, `W`, `#`,
`?`, `H` and aliases. If a day of month and a day of week are both given, either of them will do, as in Vixie's cron.
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache

import msgspec

from rota.domain.cron_field import Field, Kind
from rota.domain.cron_field import parse as parse_field
from rota.domain.errors import DefinitionError

LONGEST = 512
DAY_S, HOUR_S, MINUTE_S = 86_400, 3_600, 60
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
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FARTHEST_MONTHS = 12 * 41  # The 29th of February falls on each day of the week within 40 years.


class Cron(msgspec.Struct, frozen=True):
    """An expression that was understood, and fires."""

    text: str
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
        ordinal, time = divmod(start, DAY_S)
        found = self._in_day(ordinal, time)
        if found is None:
            found = self._in_later_day(ordinal + 1, end)
        return found if found is not None and found < end else None

    def last(self, start: int, end: int) -> int | None:
        """The last matching local time in [start, end)."""
        day, time = divmod(end, DAY_S)
        found = self._time_before(time) if self._has_day(day) else None
        if found is not None:
            return self._if_not_before(start, day * DAY_S + found)
        latest = self._time_before(DAY_S)
        assert latest is not None
        local = date.fromordinal(_EPOCH + day)
        year, month, end_day = local.year, local.month, local.day
        while (date(year, month, 1).toordinal() - _EPOCH + 31) * DAY_S >= start:
            if self.month.numbers >> month & 1:
                days = self._days(year, month) & ((1 << end_day) - 1)
                if days:
                    found_day = date(year, month, days.bit_length() - 1).toordinal() - _EPOCH
                    return self._if_not_before(start, found_day * DAY_S + latest)
            end_day, month = 32, month - 1
            if month < 1:
                year, month = year - 1, 12
        return None

    def count(self, start: int, end: int) -> int:
        """How many local times match in [start, end): by the month, not one by one."""
        return self._count_before(end) - self._count_before(start) + self._count_days(start // DAY_S, end // DAY_S)

    def _count_before(self, local: int) -> int:
        """Matches in the day of `local` that are earlier than it."""
        day, time = divmod(local, DAY_S)
        if not self._has_day(day):
            return 0
        hour, rest = divmod(time, HOUR_S)
        minute, second = divmod(rest, MINUTE_S)
        hours, minutes, seconds = self.hour.numbers, self.minute.numbers, self.second.numbers
        found = _below(hours, hour) * minutes.bit_count() * seconds.bit_count()
        if hours >> hour & 1:
            found += _below(minutes, minute) * seconds.bit_count()
            if minutes >> minute & 1:
                found += _below(seconds, second)
        return found

    def _count_days(self, start: int, end: int) -> int:
        """Matches in the whole days [start, end)."""
        a_day = self.hour.numbers.bit_count() * self.minute.numbers.bit_count() * self.second.numbers.bit_count()
        days = 0
        while start < end:
            local = date.fromordinal(_EPOCH + start)
            length = _length(local.year, local.month)
            last = min(length, local.day + end - start - 1)
            if self.month.numbers >> local.month & 1:
                within = (1 << last + 1) - (1 << local.day)
                days += (self._days(local.year, local.month) & within).bit_count()
            start += last - local.day + 1
        return days * a_day

    @staticmethod
    def _if_not_before(start: int, found: int) -> int | None:
        return found if found >= start else None

    def _has_day(self, day: int) -> bool:
        local = date.fromordinal(_EPOCH + day)
        return bool(self.month.numbers >> local.month & 1 and self._days(local.year, local.month) >> local.day & 1)

    def _in_day(self, day: int, time: int) -> int | None:
        of_day = self._time(time) if self._has_day(day) else None
        return None if of_day is None else day * DAY_S + of_day

    def _in_later_day(self, day: int, end: int) -> int | None:
        local = date.fromordinal(_EPOCH + day)
        year, month, first_day = local.year, local.month, local.day
        earliest = self._time(0)
        assert earliest is not None
        for _ in range(_FARTHEST_MONTHS):
            if self.month.numbers >> month & 1:
                days = self._days(year, month) >> first_day
                if days:
                    found = date(year, month, first_day + _lowest(days)).toordinal() - _EPOCH
                    return found * DAY_S + earliest
            first_day, month = 1, month + 1
            if month > 12:
                year, month = year + 1, 1
            if (date(year, month, 1).toordinal() - _EPOCH) * DAY_S >= end:
                return None
        return None

    def _days(self, year: int, month: int) -> int:
        first = date(year, month, 1)
        return _days_of(self.day, self.weekday, first.isoweekday() % 7, _length(year, month))

    def _time(self, start: int) -> int | None:
        """The first matching time of day from `start` on, in seconds."""
        hour, rest = divmod(start, HOUR_S)
        minute, second = divmod(rest, MINUTE_S)
        hours, minutes, seconds = self.hour.numbers, self.minute.numbers, self.second.numbers
        if hours >> hour & 1:
            if minutes >> minute & 1 and seconds >> second:
                return hour * HOUR_S + minute * MINUTE_S + second + _lowest(seconds >> second)
            if minutes >> minute + 1:
                minute += 1 + _lowest(minutes >> minute + 1)
                return hour * HOUR_S + minute * MINUTE_S + _lowest(seconds)
        if hours >> hour + 1:
            hour += 1 + _lowest(hours >> hour + 1)
            return hour * HOUR_S + _lowest(minutes) * MINUTE_S + _lowest(seconds)
        return None

    def _time_before(self, end: int) -> int | None:
        """The last matching time of day before `end`, in seconds."""
        hour, rest = divmod(end - 1, HOUR_S) if end else (-1, 0)
        if hour < 0:
            return None
        minute, second = divmod(rest, MINUTE_S)
        hours, minutes, seconds = (field.numbers for field in (self.hour, self.minute, self.second))
        if hours >> hour & 1:
            if minutes >> minute & 1 and (left := _up_to(seconds, second)):
                return hour * HOUR_S + minute * MINUTE_S + left.bit_length() - 1
            if minute and (left := _up_to(minutes, minute - 1)):
                return hour * HOUR_S + (left.bit_length() - 1) * MINUTE_S + seconds.bit_length() - 1
        if hour and (left := _up_to(hours, hour - 1)):
            latest = (minutes.bit_length() - 1) * MINUTE_S + seconds.bit_length() - 1
            return (left.bit_length() - 1) * HOUR_S + latest
        return None


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
    fields = [parse_field(word, kind, seed) for word, kind in zip(words, Kind, strict=True)]
    cron = Cron(" ".join(text.split()), *fields)
    if not _fires(cron):
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


def _fires(cron: Cron) -> bool:
    """Every month has begun and will begin on each day of the week, with each length that it can have."""
    return any(
        _days_of(cron.day, cron.weekday, first, length)
        for month in range(1, 13)
        if cron.month.numbers >> month & 1
        for length in ((28, 29) if month == 2 else (_LENGTHS[month - 1],))
        for first in range(7)
    )


@lru_cache(maxsize=4096)
def _days_of(day: Field, weekday: Field, first: int, length: int) -> int:
    """The matching days of a month that begins on weekday `first` and has `length` days, as bits."""
    all_days = (1 << length + 1) - 2
    by_day = _by_day(day, first, length) & all_days
    by_weekday = _by_weekday(weekday, first, length) & all_days
    if day.starts_with_star or weekday.starts_with_star:
        return by_day & by_weekday
    return by_day | by_weekday


def _by_day(day: Field, first: int, length: int) -> int:
    days = day.numbers
    for offset in day.from_last:
        if offset < length:
            days |= 1 << length - offset
    for target in day.nearest:
        if target <= length:
            days |= 1 << _nearest_weekday(target, first, length)
    for offset in day.nearest_from_last:
        if offset < length:
            days |= 1 << _nearest_weekday(length - offset, first, length)
    return days


def _nearest_weekday(day: int, first: int, length: int) -> int:
    """Saturday moves to Friday and Sunday to Monday, unless that is in another month."""
    match (first + day - 1) % 7:
        case 6:
            return day - 1 if day > 1 else day + 2
        case 0:
            return day + 1 if day < length else day - 2
        case _:
            return day


def _by_weekday(weekday: Field, first: int, length: int) -> int:
    days = 0
    for day in range(1, length + 1):
        name = (first + day - 1) % 7
        is_last = day + 7 > length and name in weekday.last
        if weekday.numbers >> name & 1 or is_last or (name, (day + 6) // 7) in weekday.nth:
            days |= 1 << day
    return days


def _length(year: int, month: int) -> int:
    is_leap = month == 2 and (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
    return _LENGTHS[month - 1] + is_leap


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _up_to(bits: int, number: int) -> int:
    return bits & ((1 << number + 1) - 1)


def _below(bits: int, number: int) -> int:
    return (bits & ((1 << number) - 1)).bit_count()
