"""Time zones, as spans of constant offset.

The time of a zone is a series of spans in which local time is UTC plus a constant. `zoneinfo` does not say where they
end, so the ends are searched for, once for each zone and year. A span also ends with its year.
"""

from __future__ import annotations

import difflib
import zoneinfo
from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import pairwise

import msgspec

from rota.domain.errors import DefinitionError
from rota.domain.instant import MICROSECONDS

DAY_S = 86_400
LAST_SECOND = int(datetime(9990, 1, 1, tzinfo=UTC).timestamp())
LONGEST_NAME = 100
_EPOCH = date(1970, 1, 1).toordinal()
_OF_THE_MACHINE = ("localtime", "posixrules", "posix/", "right/")


class Span(msgspec.Struct, frozen=True):
    """UTC seconds [start, end) in which the local clock is `offset` ahead; and the offsets around it."""

    start: int
    end: int
    offset: int
    before: int
    after: int


def zone(name: str) -> Zone:
    """The zone of that IANA name, or a DefinitionError that suggests a similar name."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise DefinitionError("tz: a zone is an IANA name such as 'Europe/Berlin'")
    return _zone(name)


@lru_cache(maxsize=1024)
def _zone(name: str) -> Zone:
    if name.startswith(_OF_THE_MACHINE):
        raise DefinitionError(
            f"tz: {name!r} is not the same on every machine; use an IANA name such as 'Europe/Berlin'"
        )
    try:
        return Zone(name, zoneinfo.ZoneInfo(name))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise DefinitionError(f"tz: there is no zone {name!r}{_instead(name)}") from None


def _instead(name: str) -> str:
    known = {other.lower(): other for other in zoneinfo.available_timezones() if other != "localtime"}
    near = known.get(name.lower()) or next(iter(difflib.get_close_matches(name, known.values(), n=1, cutoff=0.6)), None)
    return f"; did you mean {near!r}?" if near else "; use an IANA name such as 'Europe/Berlin'"


class Zone:
    """One zone, with a cache of its spans by year."""

    def __init__(self, name: str, info: zoneinfo.ZoneInfo) -> None:
        self.name = name
        self._info = info
        self._years: dict[int, tuple[Span, ...]] = {}

    def span(self, instant: int) -> Span:
        """The span that a UTC second is in."""
        year = datetime.fromtimestamp(instant, UTC).year
        spans = self._years.get(year)
        if spans is None:
            spans = self._years[year] = self._spans(year)
        for span in spans:
            if instant < span.end:
                return span
        raise AssertionError("the spans of a year reach its end")

    def offset(self, instant: int) -> int:
        """How far the local clock is ahead, in seconds."""
        ahead = datetime.fromtimestamp(instant, self._info).utcoffset()
        assert ahead is not None
        return ahead.days * DAY_S + ahead.seconds

    def _spans(self, year: int) -> tuple[Span, ...]:
        start, end = (int(datetime(each, 1, 1, tzinfo=UTC).timestamp()) for each in (year, year + 1))
        edges = [edge for day in range(start, end, DAY_S) for edge in self._edges(day, min(day + DAY_S, end))]
        return tuple(
            Span(first, following, self.offset(first), self.offset(first - 1), self.offset(following))
            for first, following in pairwise([start, *edges, end])
        )

    def _edges(self, low: int, high: int) -> list[int]:
        """The first second in (low, high] with another offset; empty if there is none."""
        before, after = self.offset(low), self.offset(high)
        if before == after:
            return []
        while high - low > 1:
            middle = (low + high) // 2
            if self.offset(middle) == before:
                low = middle
            else:
                high = middle
        return [high]


def day_of(name: str, at: int) -> date:
    """The local date of an instant in microseconds."""
    instant = at // MICROSECONDS
    return date.fromordinal(_EPOCH + (instant + zone(name).offset(instant)) // DAY_S)


def start_of_day(name: str, day: date) -> int:
    """The first instant of a local date in microseconds; also if a clock change leaves it out or begins it twice."""
    where = zone(name)
    local = (day.toordinal() - _EPOCH) * DAY_S
    first = local - DAY_S
    while (span := where.span(first)).end + span.offset <= local:
        first = span.end
    return max(span.start, local - span.offset) * MICROSECONDS
