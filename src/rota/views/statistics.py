"""How many executions were created and ended, how long they took, and how full the queues were, over time.

Counts and times are read from `stat` and from the deltas that are not folded into it yet; the read is one snapshot, so
a delta is in exactly one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from rota.domain import requirement, statistics
from rota.domain.instant import MICROSECONDS, moment
from rota.domain.statistics import (
    PERCENTILES,
    TIMES,
    BadWindow,
    Count,
    Gauge,
    Label,
    Labels,
    Metric,
    Tally,
    Time,
    Window,
)
from rota.store.port import View
from rota.views.shape import Shape

OTHER = "other"
_COUNTS, _GAUGES = frozenset(one.value for one in Count), frozenset(one.value for one in Gauge)
Value = float | int | None


class Series(Shape, frozen=True):
    """One metric of one group. A point is the time at which its interval begins, and the value.

    Counts are 0 where nothing happened. Times are seconds; without any, and without a sample, the value is null.
    `usual` has a value for each point, if it was asked for: the median of the same hour of the last four weeks, or null
    if fewer than two of these weeks are known.
    """

    metric: str
    """The name of the metric."""
    labels: dict[str, str]
    """What the series is for, such as the job."""
    points: list[tuple[datetime, Value]]
    """Pairs of a time and a value."""
    usual: list[Value] | None = None
    """The usual value at each point, from the same hour of the last four weeks; null unless asked for."""


class Statistics(Shape, frozen=True):
    """`step` is the length of an interval in seconds."""

    from_: datetime = msgspec.field(name="from")
    to: datetime
    step: int
    """The seconds that one point stands for."""
    series: list[Series]
    """The series, the largest first."""


class Asked(msgspec.Struct, frozen=True):
    """Which metrics of which groups. `only` has the values of labels to which it is limited."""

    metrics: Sequence[Metric]
    by: Sequence[Label]
    window: Window
    only: Mapping[Label, Sequence[str]] = {}


class _Lane(msgspec.Struct, frozen=True, array_like=True):
    id: int
    app: str
    job: str
    queue: str
    requirements: str

    def label(self, by: Label) -> str:
        match by:
            case Label.APP:
                return self.app
            case Label.JOB:
                return self.job
            case Label.QUEUE:
                return self.queue
            case Label.POOL:
                return requirement.decode(self.requirements).pool


Cells = dict[tuple[int, int], Any]
"""By the number of a series and of a point."""


def read(view: View, namespace: str, asked: Asked) -> Statistics:
    """Raises `BadWindow` if a metric cannot be grouped so."""
    most = statistics.series_per_metric(asked.metrics)
    sampled = [metric for metric in asked.metrics if metric.value in _GAUGES]
    counted = [metric for metric in asked.metrics if metric.value not in _GAUGES]
    if sampled and (len(asked.by) > 1 or not set(asked.by) <= {Label.QUEUE, Label.POOL}):
        raise BadWindow("by", f"{sampled[0]} is sampled by queue and by pool: ask for it with one of these or none")
    if sampled and asked.only and (set(asked.only) != {Label.QUEUE} or Label.POOL in asked.by):
        other = next(
            label for label in (*asked.only, Label.QUEUE) if label is not Label.QUEUE or Label.POOL in asked.by
        )
        raise BadWindow(other, f"{sampled[0]} is sampled by queue and by pool: limit it to queues or not at all")
    parts = dict[Metric, tuple[list[Labels | None], Cells]]()
    if counted:
        parts |= dict.fromkeys(counted, _counted(view, namespace, asked, counted, most))
    if sampled:
        parts |= dict.fromkeys(sampled, _sampled(view, namespace, asked, most))
    times = [moment(asked.window.start + number * asked.window.step) for number in range(asked.window.points)]
    found = [
        Series(
            metric,
            _named(asked.by, labels),
            [(at, value(cells.get((number, point)))) for point, at in enumerate(times)],
        )
        for metric in asked.metrics
        for groups, cells in (parts[metric],)
        for value in (_value_of(metric),)
        for number, labels in enumerate(groups)
    ]
    return Statistics(moment(asked.window.start), moment(asked.window.stop), asked.window.step_s, found)


def _named(by: Sequence[Label], labels: Labels | None) -> dict[str, str]:
    return dict.fromkeys(by, OTHER) if labels is None else dict(zip(by, labels, strict=True))


# --- Counts and times ------------------------------------------------------------------------------


def _counted(
    view: View, namespace: str, asked: Asked, metrics: Sequence[Metric], most: int
) -> tuple[list[Labels | None], Cells]:
    window = asked.window
    bounds = {"namespace": namespace, "start": window.start, "stop": window.stop}
    where = {**bounds, "step_s": window.row_s, "step": window.step}
    wanted = _wanted(view, namespace, asked.only)
    is_all = wanted is None and not asked.by
    unfolded = [row for row in view.rows("unfolded_counts", **bounds) if wanted is None or row[0] in wanted]
    totals: dict[int, int] = {}
    if not is_all:
        rows = view.rows("stat_totals", **bounds, step_s=window.row_s)
        totals = {lane: total for lane, total in rows if wanted is None or lane in wanted}
    for lane, _, _, count in unfolded:
        totals[lane] = totals.get(lane, 0) + count
    series, groups = _grouped(view, namespace, asked.by, totals, most)
    about = where if is_all else {**where, "lanes": sorted(series.items())}
    cells: dict[tuple[int, int], Tally] = {}

    def at(number: int, point: int) -> Tally:
        return cells.setdefault((number, point), Tally())

    if _COUNTS.intersection(metrics):
        for number, point, *counts in view.rows("stat_counts_of_all" if is_all else "stat_counts", **about):
            for outcome, count in zip(Count, counts, strict=True):
                at(number, point).add(outcome, count)
        for lane, minute, outcome, count in unfolded:
            at(series[lane], window.point(minute)).add(outcome, count)
    kinds = {time.name.lower(): any(one.startswith(time) for one in metrics) for time in TIMES}
    if any(kinds.values()):
        for number, point, *texts in view.rows("stat_times_of_all" if is_all else "stat_times", **about, **kinds):
            for kind, text in enumerate(texts):
                if text is not None:
                    at(number, point).add_times(kind, statistics.read_sum(text))
        for lane, minute, *columns in view.rows("unfolded_times", **bounds):
            if lane not in series:
                continue
            for kind, column in enumerate(columns):
                if column is not None:
                    at(series[lane], window.point(minute)).add_times(kind, statistics.times_of(column))
    return groups, cells


def _wanted(view: View, namespace: str, only: Mapping[Label, Sequence[str]]) -> frozenset[int] | None:
    """The lanes to which it is limited; None for all."""
    if not only:
        return None
    lanes = view.records("stat_lanes", _Lane, namespace=namespace)
    return frozenset(lane.id for lane in lanes if all(lane.label(one) in values for one, values in only.items()))


def _grouped(
    view: View, namespace: str, by: Sequence[Label], totals: Mapping[int, int], most: int
) -> tuple[dict[int, int], list[Labels | None]]:
    """The number of the series of each lane that has counts, and the labels of each series; None for all others."""
    if not by:
        return dict.fromkeys(totals, 0), [()]
    lanes = view.records("stat_lanes", _Lane, namespace=namespace)
    labels = {lane.id: tuple(lane.label(one) for one in by) for lane in lanes if lane.id in totals}
    sums: dict[Labels, int] = {}
    for lane, group in labels.items():
        sums[group] = sums.get(group, 0) + totals[lane]
    groups = statistics.chosen(sums, most)
    numbers = {group: number for number, group in enumerate(groups)}
    series = {lane: numbers.get(group, len(groups)) for lane, group in labels.items()}
    return series, [*groups, None] if len(groups) < len(sums) else [*groups]


# --- Samples ---------------------------------------------------------------------------------------


def _sampled(view: View, namespace: str, asked: Asked, most: int) -> tuple[list[Labels | None], Cells]:
    window, by, queues = asked.window, set(asked.by), asked.only.get(Label.QUEUE)
    rows = view.rows(
        "stat_samples",
        namespace=namespace,
        step_s=window.row_s,
        start=window.start,
        stop=window.stop,
        step=window.step,
        by_queue=Label.QUEUE in by or queues is not None,
        by_pool=Label.POOL in by,
    )
    rows = [row for row in rows if queues is None or row[0] in queues]
    sums: dict[Labels, int] = {}
    for labels, _, (queued, _, busy, slots) in _samples(rows, by):
        sums[labels] = sums.get(labels, 0) + queued + busy + slots
    groups = statistics.chosen(sums, most) if by else [()]
    numbers = {group: number for number, group in enumerate(groups)}
    cells: dict[tuple[int, int], list[int]] = {}
    for labels, point, (queued, age, busy, slots) in _samples(rows, by):
        cell = cells.setdefault((numbers.get(labels, len(groups)), point), [0, 0, 0, 0])
        cell[:] = cell[0] + queued, max(cell[1], age), cell[2] + busy, cell[3] + slots
    return [*groups, None] if len(groups) < len(sums) else [*groups], cells


def _samples(rows: Sequence[Any], by: set[Label]) -> Iterator[tuple[Labels, int, list[int]]]:
    for queue, pool, point, *values in rows:
        yield (queue,) if Label.QUEUE in by else (pool,) if by else (), point, values


# --- Values ----------------------------------------------------------------------------------------


def _value_of(metric: Metric) -> Any:
    """The function from a cell, or None, to the value of a point."""
    if metric.value in _COUNTS:
        outcome = Count(metric.value)
        return lambda cell: 0 if cell is None else cell.count(outcome)
    if metric.value in _GAUGES:
        place = list(Gauge).index(Gauge(metric.value))
        divisor = MICROSECONDS if metric is Metric.OLDEST_AGE else 1
        return lambda cell: None if cell is None else cell[place] if divisor == 1 else cell[place] / divisor
    time, _, name = metric.value.partition(".")
    number, share = TIMES.index(Time(time)), PERCENTILES[name]
    return lambda cell: None if cell is None else statistics.percentile(cell.times[number], share)
