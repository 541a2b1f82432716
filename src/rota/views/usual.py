"""The usual value: the median of the same hour of the last weeks, from the rows of hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from msgspec.structs import replace

from rota.domain import statistics
from rota.domain.instant import MICROSECONDS
from rota.domain.statistics import HOUR_S, Count, Window
from rota.store.port import View
from rota.views.statistics import Asked, Series, Statistics, Value, read

WEEKS, LEAST_WEEKS = 4, 2
WEEK = 7 * 24 * HOUR_S * MICROSECONDS
_COUNTS = frozenset(one.value for one in Count)
Key = tuple[str, tuple[tuple[str, str], ...]]


def with_usual(view: View, namespace: str, asked: Asked, found: Statistics) -> Statistics:
    weeks = [week for number in range(1, WEEKS + 1) if (week := _week(view, namespace, asked, number))]
    return replace(found, series=[_with_usual(one, asked.window, weeks) for one in found.series])


def _week(view: View, namespace: str, asked: Asked, number: int) -> Mapping[Key, Sequence[Value]]:
    """The values of each series `number` weeks before, by hours or by the same longer steps; empty if there are
    none."""
    earlier = read(view, namespace, replace(asked, window=_hours(asked.window, number)))
    values = {_key(one): [value for _, value in one.points] for one in earlier.series}
    return values if any(value for several in values.values() for value in several) else {}


def _hours(window: Window, number: int) -> Window:
    step_s = window.step_s if window.step_s % HOUR_S == 0 else HOUR_S
    step, start = step_s * MICROSECONDS, statistics.begin_of(window.start, step_s)
    stop = -(-window.stop // step) * step
    return Window(start - number * WEEK, stop - number * WEEK, step_s)


def _with_usual(one: Series, window: Window, weeks: Sequence[Mapping[Key, Sequence[Value]]]) -> Series:
    hours = _hours(window, 0)
    scale = window.step_s / hours.step_s if one.metric in _COUNTS else 1.0
    usual: list[Value] = []
    for number in range(window.points):
        place = hours.point(window.start + number * window.step)
        usual.append(_median([_value(one, week, place) for week in weeks], scale))
    return replace(one, usual=usual)


def _value(one: Series, week: Mapping[Key, Sequence[Value]], place: int) -> Value:
    values = week.get(_key(one))
    if values is None:
        return 0 if one.metric in _COUNTS else None
    return values[place]


def _median(values: Sequence[Value], scale: float) -> Value:
    known = [value for value in values if value is not None]
    return round(median(known) * scale, 4) if len(known) >= LEAST_WEEKS else None


def _key(one: Series) -> Key:
    return one.metric, tuple(sorted(one.labels.items()))
