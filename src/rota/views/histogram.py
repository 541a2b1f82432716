"""Executions over time by state: from the statistics where they have the answer, else counted up to a bound."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from rota.domain.instant import moment
from rota.domain.statistics import Label, Metric, Window
from rota.domain.status import Status
from rota.store import execution_reader
from rota.store.execution_reader import Criteria, Where
from rota.store.port import View
from rota.store.scan import LARGEST_PIECE, Budget
from rota.views import statistics
from rota.views.shape import Shape
from rota.views.statistics import Asked

ENDED = (Metric.SUCCESS, Metric.FAILED, Metric.CANCELLED, Metric.SKIPPED, Metric.RETRIES)
MOST = 10_000


class Bar(Shape, frozen=True):
    """How many executions were in which state in one interval; states without any are left out."""

    at: datetime
    """When the interval begins."""
    states: dict[str, int]
    """How many executions, by state."""


class Histogram(Shape, frozen=True):
    """Bars of `step` seconds.

    With `of` ended, an execution is in the interval in which it ended; `retries` are attempts that failed and run
    again. With `of` created, it is in the interval in which it was made, with the state that it has now; then the
    newest 10,000 are counted, and `isCapped` says that there are more.
    """

    from_: datetime = msgspec.field(name="from")
    to: datetime
    step: int
    """How many seconds a bar stands for."""
    of: str
    """`ended` or `created`: which time decides the interval of an execution."""
    is_capped: bool
    """Whether only the newest 10,000 were counted."""
    bars: list[Bar]
    """One for each interval, oldest first."""


def histogram(view: View, namespace: str, wanted: Criteria, window: Window) -> Histogram:
    """`wanted` has no times: the window has them."""
    if only := _limits(wanted):
        return _ended(view, namespace, window, only[0])
    return _created(view, namespace, wanted, window)


def _limits(wanted: Criteria) -> list[dict[Label, Sequence[str]]]:
    """The limits for the statistics, as a list; empty if the statistics do not have the answer."""
    plain = Criteria(job=wanted.job, queue=wanted.queue, app=wanted.app)
    if wanted != plain or any("/" in one or one[:1].isdigit() for one in wanted.job):
        return []
    limits = {Label.JOB: wanted.job, Label.QUEUE: wanted.queue, Label.APP: wanted.app}
    return [{label: values for label, values in limits.items() if values}]


def _ended(view: View, namespace: str, window: Window, only: dict[Label, Sequence[str]]) -> Histogram:
    found = statistics.read(view, namespace, Asked(ENDED, [], window, only))
    bars = [dict[str, int]() for _ in range(window.points)]
    for series in found.series:
        for bar, (_, value) in zip(bars, series.points, strict=True):
            if value:
                bar[series.metric] = int(value)
    return _shown(window, "ended", bars)


def _created(view: View, namespace: str, wanted: Criteria, window: Window) -> Histogram:
    between = msgspec.structs.replace(wanted, created_from=window.start, created_to=window.stop)
    found = execution_reader.page(view, namespace, between, Where(), MOST, Budget())
    bars = [dict[str, int]() for _ in range(window.points)]
    for start in range(0, len(found.keys), LARGEST_PIECE):
        ids = list(found.keys[start : start + LARGEST_PIECE])
        bounds = {"ids": ids, "lowest": min(ids), "highest": max(ids)}
        for status, created_at in view.rows("states_to_count", namespace=namespace, **bounds):
            bar, name = bars[window.point(created_at)], Status(status).value
            bar[name] = bar.get(name, 0) + 1
    return _shown(window, "created", bars, is_capped=found.has_more)


def _shown(window: Window, of: str, bars: list[dict[str, int]], *, is_capped: bool = False) -> Histogram:
    shown = [Bar(moment(window.start + number * window.step), bar) for number, bar in enumerate(bars)]
    return Histogram(moment(window.start), moment(window.stop), window.step_s, of, is_capped, shown)
