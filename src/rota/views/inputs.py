"""The arguments of a step with the values of other steps, which its execution has by reference only."""

from __future__ import annotations

from typing import Any

from rota.domain.instant import rfc3339
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
    """A value that retention has deleted."""


def complete_arguments(view: View, row: ExecutionRow) -> Any:
    """All arguments. One whose value is gone is its reference, such as `{"$": "extract.files"}`."""
    given, templates = decoded(row.arguments), decoded(row.inputs)
    if not templates or TROUBLE in templates or row.run is None:
        return given
    if UNDO in templates:
        return {**given, **dict.fromkeys([templates[UNDO]], values.results_to_undo(view, [row.id]).get(row.id))}
    above = run_reader.run(view, row.namespace, row.run)
    if above is None or not above.graph:
        return {**given, **templates}
    stored = StoredValues(view, above, graph_of(view, above))
    return {**given, **{name: stored.resolved(one) for name, one in templates.items()}}


class StoredValues:
    """The values of a run that may have ended. Asking for a value that is gone raises ValueIsGone."""

    def __init__(self, view: View, run: RunRow, graph: Graph) -> None:
        self._view, self._run, self._graph = view, run, graph
        self._values = Values(view, run.id, graph)

    def resolved(self, one: Any) -> Any:
        try:
            return template.resolve(one, self, self._values.outcomes)
        except (ValueIsGone, TemplateError):
            return one

    def __call__(self, root: str) -> Any:
        if root == INPUT:
            defaults = {name: one["default"] for name, one in self._graph.parameters.items() if "default" in one}
            row = reader.execution(self._view, self._run.namespace, self._run.id)
            return {**defaults, **complete_arguments(self._view, row)}
        if root == RUN:
            run_at = self._run.run_at if self._run.tick is None else self._run.tick
            started_at = self._run.started_at or run_at
            about = {"id": self._run.id, "workflow": self._run.job}
            return {**about, "scheduled_for": rfc3339(run_at), "started_at": rfc3339(started_at)}
        number = self._graph.numbers[root]
        if not self._graph.steps[number].is_map and not self._view.one(
            "results_of_steps", steps=[(self._run.id, number)]
        ):
            raise ValueIsGone
        return self._values(root)
