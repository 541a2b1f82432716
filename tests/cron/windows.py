"""Where product and oracle are compared: around every change of a clock, and expressions to compare them with."""

from __future__ import annotations

import random
import zoneinfo
from datetime import UTC, datetime, timedelta
from functools import cache

import msgspec

FIRST_YEAR, LAST_YEAR = 2000, 2040
DAY_S = 86_400
SECOND = timedelta(seconds=1)
STEP_S = DAY_S // 4
BEFORE_S, AFTER_S = 36 * 3600, 40 * 3600

PLAIN = """
* * * * *; */5 * * * *; 0 * * * *; 30 * * * *; 15,45 * * * *; */7 * * * *; 0 */2 * * *; 30 1-4 * * *; 0 0 * * *
30 0 * * *; 30 1 * * *; 0 2 * * *; 30 2 * * *; 59 2 * * *; 0 3 * * *; 30 3 * * *; 0,30 2 * * *; 15,45 1,2,3 * * *
0 0-6 * * *; 10-20 2 * * *; */20 2 * * *; 5 1-3/2 * * *; 30 23 * * *; 59 23 * * *; 0 12 * * *; 0 0 * * 0; 30 2 * * SUN
0 2 * * 7; 30 2 * * 6,0; 30 1 * * 1-5; 30 2 L * *; 30 2 LW * *; 0 2 L-1 * *; 30 2 15W * *; 30 2 1W * *; 0 2 31W * *
30 2 * * 0L; 30 2 * * SUN#2; 30 1 * * SUN#1; 30 2 * * 7#4; 0 0 1 * *; 30 2 29 2 *; 0 0 31 * *; 30 2 8-14 * 0
30 2 25-31 3,10 *
30 2 */2 * *; 30 2 */2 * SUN; 30 2 1-7 * SUN; 0 2 ? MAR SUN; 30 2 * MAR,NOV *; 45 1 * 4-10 *
0 0 1 1 *; 30 2 13 * FRI
30 22-2 * * *; 0 22-2/2 * * *; 50-10 2 * * *; 30 2 * * FRI-MON; 30 2 * * SAT-SUN; 30 2 * * 7-2; 30 2 * * FRI-TUE/2
30 2 28-3 * *; 30 2 * OCT-MAR *; 30 2 * NOV-APR/2 *; 30 2 L-3W * *; 30 2 * * MON#L
30 2 * september sunday; 0 2 * * thurs
"""
WITH_SECONDS = """
0 30 2 * * *; 15 30 2 * * *; 0,30 59 1 * * *; */30 0 2 * * *; 59 59 1 * * *; 0 0 2 * * SUN; 30 30 */3 * * *
0 */30 * * * *
"""


def _split(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.replace("\n", ";").split(";") if item.strip())


EXPRESSIONS = _split(PLAIN) + _split(WITH_SECONDS)


class Window(msgspec.Struct, frozen=True):
    """A zone, and UTC seconds [start, end)."""

    zone: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.zone} around {datetime.fromtimestamp((self.start + self.end) // 2, UTC):%Y-%m-%d}"


class Change(msgspec.Struct, frozen=True):
    """The first second at which a local clock is `offset` ahead, and no longer `before`."""

    at: int
    before: int
    offset: int


@cache
def changes(zone: str) -> tuple[Change, ...]:
    """Every change of the local clock that was or will be."""
    info = zoneinfo.ZoneInfo(zone)
    low, high = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (FIRST_YEAR, LAST_YEAR))
    found, before = [], _ahead(info, low)
    for instant in range(low, high, STEP_S):
        now = _ahead(info, instant)
        if now != before:
            found.append(Change(_edge(info, instant - STEP_S, instant), before, now))
        before = now
    return tuple(found)


def _edge(info: zoneinfo.ZoneInfo, low: int, high: int) -> int:
    before = _ahead(info, low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _ahead(info, middle) == before else (low, middle)
    return high


def _ahead(info: zoneinfo.ZoneInfo, instant: int) -> int:
    ahead = datetime.fromtimestamp(instant, info).utcoffset()
    assert ahead is not None
    return ahead // SECOND


def zones() -> list[str]:
    """One of each kind: names whose clocks always show the same time are the same zone."""
    kinds: dict[tuple[object, ...], str] = {}
    for name in sorted(zoneinfo.available_timezones()):
        if name.startswith(("posix", "right")) or name in ("localtime", "Factory"):
            continue
        shown = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC).astimezone(zoneinfo.ZoneInfo(name)).utcoffset()
        kinds.setdefault((shown, *changes(name)), name)
    return list(kinds.values())


def windows(zone: str) -> list[Window]:
    return [Window(zone, change.at - BEFORE_S, change.at + AFTER_S) for change in changes(zone)]


MINUTES = ["*", "0", "30", "*/15", "*/7", "5-25", "0,30,59"]
HOURS = ["*", "2", "1-3", "*/3", "0,2,23", "0-5/2", "22-3", "23-4/2", "1,2,3,4"]
DAYS = ["*", "*", "*", "?", "*/2", "L", "LW", "1-15", "25-31", "L-2", "L-4W", "28-2"]
MONTHS = ["*", "*", "*", "3,4,9-11", "*/2", "MAR-NOV", "SEP-APR"]
WEEKDAYS = ["*", "*", "*", "?", "SUN", "0-6", "6,7", "0L", "SUN#2", "FRI#3", "*/2", "FRI-MON", "SUN#L"]


def invented(entropy: random.Random) -> str:
    """An expression of five fields that is right and fires often."""
    minute = entropy.choice([*MINUTES, str(entropy.randrange(60))])
    hour = entropy.choice([*HOURS, str(entropy.randrange(24))])
    day = entropy.choice([*DAYS, f"{entropy.randint(1, 28)}W"])
    return f"{minute} {hour} {day} {entropy.choice(MONTHS)} {entropy.choice(WEEKDAYS)}"
