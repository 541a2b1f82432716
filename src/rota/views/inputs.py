"""The complete arguments of a step. Its execution stores values of other steps only as references."""

from __future__ import annotations

from typing import Any

from rota.domain.workflow import template
from rota.domain.workflow.graph import Graph
from rota.domain.workflow.template import TemplateError
from rota.ops.runs import values
from rota.ops.runs.inputs import TROUBLE, UNDO
from rota.ops.runs.run import graph_of
from rota.ops.runs.values import INPUT, RUN, Values
from rota.store import reader, run_reader
from rota.store.port import View
from rota.store.reader import ExecutionRow
from rota.store.run_reader import RunRow
from rota.views.stored_json import decoded


class ValueIsGone(Exception):
    """Retention has deleted the value."""


def complete_arguments(view: View, row: ExecutionRow) -> Any:
    """All arguments. A value that is gone is shown as its reference, such as `{"$": "extract.files"}`."""
    given, templates = decoded(row.arguments), decoded(row.inputs)
    if not templates or TROUBLE in templates or row.run is None:
        return given
    if UNDO in templates:
        return {**given, templates[UNDO]: values.results_to_undo(view, [row.id]).get(row.id)}
    above = run_reader.run(view, row.namespace, row.run)
    if above is None or not above.graph:
        return {**given, **templates}
    stored = StoredValues(view, above, graph_of(view, above))
    return {**given, **{name: stored.resolved(one) for name, one in templates.items()}}


class StoredValues:
    """The values of a run, open or ended, by root. A call raises ValueIsGone if the value was deleted."""

    def __init__(self, view: View, run: RunRow, graph: Graph) -> None:
        self._view, self._run, self._graph = view, run, graph
        self._values = Values(view, run.id, graph)

    def resolved(self, one: Any) -> Any:
        """The value of a template; the template itself if the value is gone or cannot be made."""
        try:
            return template.resolve(one, self, self._values.outcomes)
        except (ValueIsGone, TemplateError):
            return one

    def __call__(self, root: str) -> Any:
        if root == INPUT:
            row = reader.execution(self._view, self._run.namespace, self._run.id)
            return values.with_defaults(self._graph, complete_arguments(self._view, row))
        if root == RUN:
            scheduled_for = self._run.run_at if self._run.tick is None else self._run.tick
            started_at = self._run.started_at or scheduled_for
            return values.run_facts(self._run.id, self._run.job, scheduled_for, started_at)
        number = self._graph.numbers[root]
        if not self._graph.steps[number].is_map and not self._view.one(
            "results_of_steps", steps=[(self._run.id, number)]
        ):
            raise ValueIsGone
        return self._values(root)
