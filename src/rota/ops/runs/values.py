"""The values that references in a graph mean: results of steps, the arguments of the run, facts about the run."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.domain.instant import rfc3339
from rota.domain.status import Status
from rota.domain.workflow import template
from rota.domain.workflow.graph import Graph
from rota.ops.runs.run import Run, graph_of
from rota.store.port import View

_json = msgspec.json.Decoder().decode
INPUT, RUN = "input", "run"
"""The roots of references that are no steps."""


class Values:
    """The values of one run, each read when it is first asked for. Only steps that succeeded have one."""

    def __init__(self, view: View, run: str, graph: Graph) -> None:
        self._view, self._run, self._graph = view, run, graph
        self._known: dict[str, Any] = {}

    def __call__(self, root: str) -> Any:
        if root not in self._known:
            self._known[root] = self._read(root)
        return self._known[root]

    def add(self, root: str, result: str | None) -> None:
        """The result of a step that ends in this transaction and is not written yet."""
        self._known[root] = _json(result or "null")

    def outcomes(self, root: str) -> list[dict[str, Any]]:
        """Every item of a map in order, with its status, and its result or error."""
        rows = self._view.rows("items_of", run=self._run, number=self._graph.numbers[root])
        return [
            {"index": item, "status": status, "result": _optional(result), "error": _optional(error)}
            for item, status, result, error in rows
        ]

    def _read(self, root: str) -> Any:
        if root in (INPUT, RUN):
            arguments, about = run_values(self._view, self._run)
            defaults = {name: one["default"] for name, one in self._graph.parameters.items() if "default" in one}
            self._known.update({INPUT: {**defaults, **arguments}, RUN: about})
            return self._known[root]
        number = self._graph.numbers[root]
        if self._graph.steps[number].is_map:
            return successes(self._view, self._run, number)
        rows = self._view.rows("steps_of", run=self._run, numbers=[number])
        return results(self._view, [rows[0][2]])[rows[0][2]]


def run_values(view: View, run: str) -> tuple[Any, dict[str, Any]]:
    """The arguments of a run, and the facts about it that `this_run` shows."""
    ((id, arguments, inputs, parent, tick, run_at, job, opened_at),) = view.rows("arguments_of_run", id=run)
    about = {
        "id": id,
        "workflow": job,
        "scheduled_for": rfc3339(run_at if tick is None else tick),
        "started_at": rfc3339(opened_at),
    }
    return {**_json(arguments), **(_resolved(view, parent, inputs) if inputs else {})}, about


def _resolved(view: View, parent: str, inputs: str) -> dict[str, Any]:
    """The arguments of a sub-workflow that are results of steps of its parent run, which is open, too."""
    (above,) = view.records("run_open", Run, id=parent)
    values = Values(view, parent, graph_of(view, above))
    return {name: template.resolve(one, values, values.outcomes) for name, one in _json(inputs).items()}


def results(view: View, executions: list[str]) -> dict[str, Any]:
    rows = view.rows("results_of", ids=executions, lowest=min(executions), highest=max(executions))
    return {id: _json(result or "null") for id, result in rows}


def successes(view: View, run: str, number: int) -> list[Any]:
    """The results of the items of a map that succeeded, in order."""
    rows = view.rows("items_of", run=run, number=number)
    return [_json(result or "null") for _, status, result, _ in rows if status == Status.SUCCESS]


def _optional(text: str | None) -> Any:
    return None if text is None else _json(text)
