"""What changes of the local clock do to a cron expression: times that do not exist, and times that come twice."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from zoneinfo import ZoneInfo

import msgspec

from rota.domain import ticks, trigger
from rota.domain.ticks import Gap
from rota.domain.trigger import Cron

MOST_WARNINGS = 3
YEAR_S = 366 * 86_400
"""All clock changes of a zone occur within a year."""
_TIMES = {"first": "once, the first time", "second": "once, the second time", "both": "both times"}


class ScheduleWarning(msgspec.Struct, frozen=True):
    """Something about a schedule that its owner may not expect. `code` is stable."""

    code: str
    text: str


def warnings(wanted: Cron, after: int, until: int) -> list[ScheduleWarning]:
    """The effects in (after, until], in the order of time; both are seconds since 1970."""
    parts = trigger.parts(wanted)
    left_out = [tick.at for tick in islice(ticks.gaps(*parts, after, until), MOST_WARNINGS)]
    twice = list(islice(ticks.repeats(*parts, after, until), MOST_WARNINGS))
    instead = "it is left out" if wanted.gap is Gap.SKIP else "it runs once, right after the gap"
    found = [
        (at, "dst_gap", f"its time does not exist on {ticks.missing_day(*parts, at)}: {instead}") for at in left_out
    ]
    runs = f"it runs {_TIMES[wanted.repeat]}"
    found += [(at, "dst_repeat", f"its time comes twice on {_day(at, wanted.tz)}: {runs}") for at in twice]
    return [ScheduleWarning(code, text) for _, code, text in sorted(found)[:MOST_WARNINGS]]


def _day(at: int, tz: str) -> str:
    return datetime.fromtimestamp(at, ZoneInfo(tz)).date().isoformat()
