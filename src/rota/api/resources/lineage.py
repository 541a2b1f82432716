"""Around one execution: where it comes from, its neighbours in a list, and when it will start or end."""

from __future__ import annotations

from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.execution_filter import ExecutionFilter, wanted
from rota.api.route import NoQuery, route
from rota.domain.access import Scope
from rota.store import execution_reader, reader
from rota.store.execution_reader import Criteria, Where
from rota.store.port import View
from rota.store.scan import Budget
from rota.views import execution_forecast, lineage
from rota.views.execution_forecast import ExecutionForecast, RunForecast
from rota.views.lineage import Lineage
from rota.views.shape import Shape


class Neighbours(Shape, frozen=True):
    """The executions before and after one in the list with these filters, newest first; null at its ends."""

    previous_id: str | None
    """The next newer execution that matches; null if it is the newest."""
    next_id: str | None
    """The next older one; null if it is the oldest."""


@route("GET /executions/{execution}/lineage", Scope.READ, is_heavy=True, answer=Lineage)
async def get_lineage(call: Call, query: NoQuery) -> Answer:
    """Where an execution comes from, and what it has started: tick or caller, run, children, replays."""
    return shown(await call.read(lineage.lineage, call.namespace, call.path["execution"]))


@route("GET /executions/{execution}/neighbours", Scope.READ, is_heavy=True, answer=Neighbours)
async def neighbours(call: Call, query: ExecutionFilter) -> Answer:
    """The executions before and after one in the list with the same filters."""
    return shown(await call.read(_neighbours, call.namespace, call.path["execution"], wanted(query)))


def _neighbours(view: View, namespace: str, id: str, filters: Criteria) -> Neighbours:
    known = reader.execution(view, namespace, id).id

    def beside(is_ascending: bool) -> str | None:
        where = Where(after=known, is_ascending=is_ascending)
        found = execution_reader.page(view, namespace, filters, where, 1, Budget()).keys
        return found[0] if found else None

    return Neighbours(previous_id=beside(True), next_id=beside(False))


@route("GET /executions/{execution}/forecast", Scope.READ, answer=ExecutionForecast)
async def forecast(call: Call, query: NoQuery) -> Answer:
    """The place of an execution in line, and when it is expected to start and to end."""
    return shown(await call.read(execution_forecast.execution, call.namespace, call.path["execution"]))


@route("GET /runs/{run}/forecast", Scope.READ, answer=RunForecast)
async def run_forecast(call: Call, query: NoQuery) -> Answer:
    """When a run and its steps are expected to end, from how long they usually take."""
    return shown(await call.read(execution_forecast.run, call.namespace, call.path["run"]))
