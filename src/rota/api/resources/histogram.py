"""Executions over time by state, for the filters of a list."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.execution_filter import ExecutionFilter, wanted
from rota.api.problem import bad_parameter
from rota.api.resources.statistics import window_of
from rota.api.route import route
from rota.domain.access import Scope
from rota.domain.statistics import BadWindow
from rota.store.port import View
from rota.views import histogram as views
from rota.views.histogram import Histogram


class HistogramQuery(ExecutionFilter, frozen=True, kw_only=True):
    """The filters of the list of executions, but for `createdFrom` and `createdTo`, and a range of time."""

    from_: Annotated[datetime | None, msgspec.Meta(description="Default: one hour ago.")] = msgspec.field(
        default=None, name="from"
    )
    to: Annotated[datetime | None, msgspec.Meta(description="Default: now.")] = None
    step: Annotated[str | None, msgspec.Meta(description="As for /stats. Default: few bars.")] = None


@route("GET /histogram", Scope.READ, is_heavy=True, answer=Histogram)
async def histogram(call: Call, query: HistogramQuery) -> Answer:
    """Executions over time by state: as they ended, or with more filters as they were made."""
    for name, other in (("created_from", "createdFrom"), ("created_to", "createdTo")):
        if getattr(query, name) is not None:
            raise bad_parameter(other, f"{other} is no filter here: use from and to")
    return shown(await call.read(_read, call.namespace, query))


def _read(view: View, namespace: str, query: HistogramQuery) -> Histogram:
    try:
        window = window_of(query.from_, query.to, query.step, view.now)
    except BadWindow as bad:
        raise bad_parameter(bad.parameter, str(bad)) from None
    return views.histogram(view, namespace, wanted(query), window)
