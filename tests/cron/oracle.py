"""A second opinion on cron: slow, and without a line of the product.

Follows real time by asking `zoneinfo` for the local time of every second or minute there is, and compares it field by
field. Times of day are looked for the other way round: every nominal local time is turned into an instant, and what
that instant shows on the local clock tells whether the time exists once, twice or not at all.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


class Oracle:
    """What one expression means, for expressions that are right."""

    def __init__(self, expression: str) -> None:
        fields = expression.upper().split()
        self.has_seconds = len(fields) == 6
        if not self.has_seconds:
            fields = ["0", *fields]
        self.second, self.minute, self.hour, self.day, self.month, self.weekday = fields
        times = (self.minute, self.hour)
        self.follows_real_time = any("*" in field or "/" in field for field in times)

    def instants(self, zone: str, start: int, end: int, gap: str = "next", overlap: str = "first") -> list[int]:
        """Every tick in [start, end), in seconds since 1970 UTC."""
        found = self._real(ZoneInfo(zone), start, end) if self.follows_real_time else None
        if found is None:
            found = self._nominal(ZoneInfo(zone), start, end, gap, overlap)
        return sorted({instant for instant in found if start <= instant < end})

    def _real(self, zone: ZoneInfo, start: int, end: int) -> Iterator[int]:
        step = 1 if self.has_seconds else 60
        for instant in range(start - start % step, end, step):
            local = datetime.fromtimestamp(instant, zone)
            # Some local clocks are off by seconds or minutes; then a minute of UTC does not begin with a local one.
            if step == 60 and local.second:
                yield from self._real_seconds(zone, instant, instant + 60)
            elif self._fits_time(local) and self._fits_day(local.date()):
                yield instant

    def _real_seconds(self, zone: ZoneInfo, start: int, end: int) -> Iterator[int]:
        for instant in range(start, end):
            local = datetime.fromtimestamp(instant, zone)
            if self._fits_time(local) and self._fits_day(local.date()):
                yield instant

    def _nominal(self, zone: ZoneInfo, start: int, end: int, gap: str, overlap: str) -> Iterator[int]:
        day = datetime.fromtimestamp(start, zone).date() - timedelta(days=2)
        last = datetime.fromtimestamp(end, zone).date() + timedelta(days=2)
        times = [
            (hour, minute, second)
            for hour in range(24)
            if _fits(self.hour, hour, 0, 23)
            for minute in range(60)
            if _fits(self.minute, minute, 0, 59)
            for second in range(60)
            if _fits(self.second, second, 0, 59)
        ]
        while day <= last:
            if self._fits_day(day):
                for time in times:
                    nominal = datetime(day.year, day.month, day.day, *time)  # noqa: DTZ001
                    yield from self._resolve(nominal, zone, gap, overlap)
            day += timedelta(days=1)

    @staticmethod
    def _resolve(nominal: datetime, zone: ZoneInfo, gap: str, overlap: str) -> Iterator[int]:
        once, twice = (int(nominal.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1))
        exists = datetime.fromtimestamp(once, zone).replace(tzinfo=None) == nominal
        if not exists:
            if gap == "next":
                yield _end_of_gap(nominal, zone, min(once, twice), max(once, twice))
        elif once == twice:
            yield once
        else:
            if overlap in ("first", "both"):
                yield min(once, twice)
            if overlap in ("second", "both"):
                yield max(once, twice)

    def _fits_time(self, local: datetime) -> bool:
        return (
            _fits(self.second, local.second, 0, 59)
            and _fits(self.minute, local.minute, 0, 59)
            and _fits(self.hour, local.hour, 0, 23)
        )

    def _fits_day(self, day: date) -> bool:
        if not _fits(self.month, day.month, 1, 12, MONTHS):
            return False
        by_day, by_weekday = self._fits_day_of_month(day), self._fits_weekday(day)
        if self.day[0] in "*?" or self.weekday[0] in "*?":
            return by_day and by_weekday
        return by_day or by_weekday

    def _fits_day_of_month(self, day: date) -> bool:
        last = calendar.monthrange(day.year, day.month)[1]
        for item in self.day.split(","):
            if item == "L":
                fits = day.day == last
            elif item.startswith("L") and item.endswith("W"):
                wanted = last - int(item[2:-1] or 0)
                fits = wanted > 0 and day == _weekday_near(date(day.year, day.month, wanted))
            elif item.startswith("L-"):
                fits = day.day == last - int(item[2:])
            elif item.endswith("W"):
                wanted = int(item[:-1])
                fits = wanted <= last and day == _weekday_near(date(day.year, day.month, wanted))
            else:
                fits = _fits(item, day.day, 1, 31)
            if fits:
                return True
        return False

    def _fits_weekday(self, day: date) -> bool:
        number = (day.weekday() + 1) % 7
        last = calendar.monthrange(day.year, day.month)[1]
        for item in self.weekday.split(","):
            if item.endswith("#L"):
                fits = _value(item[:-2], WEEKDAYS) % 7 == number and day.day > last - 7
            elif "#" in item:
                name, place = item.split("#")
                fits = _value(name, WEEKDAYS) % 7 == number and (day.day - 1) // 7 + 1 == int(place)
            elif item.endswith("L"):
                fits = _value(item[:-1], WEEKDAYS) % 7 == number and day.day > last - 7
            else:
                first, _, end = item.partition("/")[0].partition("-")
                if end and _value(first, WEEKDAYS) > _value(end, WEEKDAYS):
                    fits = _fits(item, number, 0, 6, WEEKDAYS)
                else:
                    fits = _fits(item, number, 0, 7, WEEKDAYS) or (number == 0 and _fits(item, 7, 0, 7, WEEKDAYS))
                if item.startswith(("*", "?")):
                    fits = _fits(item, number, 0, 6)
            if fits:
                return True
        return False


def _fits(field: str, value: int, low: int, high: int, names: list[str] | None = None) -> bool:
    for item in field.split(","):
        base, _, step = item.partition("/")
        if base in ("*", "?"):
            first, last = low, high
        elif "-" in base:
            first, last = (_value(part, names) for part in base.split("-"))
        else:
            first = _value(base, names)
            last = high if step else first
        if first > last:
            size = high - low + 1
            last += size
            value += size if value < first else 0
        if first <= value <= last and (value - first) % int(step or 1) == 0:
            return True
    return False


def _value(text: str, names: list[str] | None) -> int:
    if names and text[:3] in names:
        return names.index(text[:3]) + (1 if names is MONTHS else 0)
    return int(text)


def _weekday_near(day: date) -> date:
    """The nearest of Monday to Friday in the same month."""
    near = [day + timedelta(days=days) for days in (0, -1, 1, -2, 2)]
    return next(other for other in near if other.month == day.month and other.weekday() < 5)


def _end_of_gap(nominal: datetime, zone: ZoneInfo, low: int, high: int) -> int:
    """The first instant whose local time is later than one that does not exist."""
    low, high = low - 2 * 86400, high + 2 * 86400
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).replace(tzinfo=None) < nominal:
            low = middle
        else:
            high = middle
    return high


def utc(year: int, month: int = 1, day: int = 1) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp())
