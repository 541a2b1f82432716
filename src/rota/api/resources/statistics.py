"""Statistics: counts, times and samples over time."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.problem import bad_parameter
from rota.api.route import route
from rota.domain import duration, statistics
from rota.domain.access import Scope
from rota.domain.errors import DefinitionError
from rota.domain.instant import MICROSECONDS, instant
from rota.domain.statistics import BadWindow, Label, Metric, Window
from rota.store.port import View
from rota.views import statistics as view_of
from rota.views import usual
from rota.views.statistics import Asked, Statistics

USUAL = 3600 * MICROSECONDS

_LIMITS = (Label.JOB, Label.QUEUE, Label.APP)


class StatsQuery(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What to count, how to group it, and over which time."""

    metrics: Annotated[list[Metric], msgspec.Meta(min_length=1, description="What to show; may be repeated.")]
    by: Annotated[list[Label], msgspec.Meta(description="A series for each job, queue, app or pool.")] = []
    from_: Annotated[datetime | None, msgspec.Meta(description="Default: one hour ago.")] = msgspec.field(
        default=None, name="from"
    )
    to: Annotated[datetime | None, msgspec.Meta(description="Default: now, with the interval that has begun.")] = None
    job: Annotated[tuple[str, ...], msgspec.Meta(description="Only these jobs, by name.")] = ()
    queue: Annotated[tuple[str, ...], msgspec.Meta(description="Only these queues.")] = ()
    app: Annotated[tuple[str, ...], msgspec.Meta(description="Only these apps.")] = ()
    usual: Annotated[
        bool, msgspec.Meta(description="Whether each series also has what is usual: of the last four weeks.")
    ] = False
    step: Annotated[
        str | None,
        msgspec.Meta(
            description="Seconds, or a duration such as 5m: a whole number of minutes; of hours if from is "
            "more than 48 hours ago."
        ),
    ] = None


@route(
    "GET /stats",
    Scope.READ,
    answer=Statistics,
    codes=("read_budget",),
    answer_example={
        "from": "2026-01-31T08:00:00Z",
        "to": "2026-01-31T08:02:00Z",
        "step": 60,
        "series": [
            {
                "metric": "success",
                "labels": {"job": "daily-report"},
                "points": [["2026-01-31T08:00:00Z", 3], ["2026-01-31T08:01:00Z", 0]],
            }
        ],
    },
)
async def stats(call: Call, query: StatsQuery) -> Answer:
    """Counts, percentiles of times, and samples of the queues, over time."""
    return shown(await call.read(_read, call.namespace, query))


def _read(view: View, namespace: str, query: StatsQuery) -> Statistics:
    try:
        window = window_of(query.from_, query.to, query.step, view.now)
        metrics, by = list(dict.fromkeys(query.metrics)), list(dict.fromkeys(query.by))
        only = {label: getattr(query, label) for label in _LIMITS if getattr(query, label)}
        asked = Asked(metrics, by, window, only)
        found = view_of.read(view, namespace, asked)
        return usual.with_usual(view, namespace, asked, found) if query.usual else found
    except BadWindow as bad:
        raise bad_parameter(bad.parameter, str(bad)) from None


def window_of(start: datetime | None, end: datetime | None, step: str | None, now: int) -> Window:
    """The window that the parameters `from`, `to` and `step` describe; without them the last hour."""
    until = now + 1 if end is None else instant(end)
    since = until - USUAL if start is None else instant(start)
    return statistics.window(since, until, _step_s(step), now)


def _step_s(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        length_s = duration.seconds(int(text) if text.isascii() and text.isdigit() and len(text) < 12 else text, "step")
    except DefinitionError as error:
        raise BadWindow("step", str(error)) from None
    if length_s != int(length_s):
        raise BadWindow("step", "step must be a whole number of minutes")
    return int(length_s)
