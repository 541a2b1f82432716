"""The values that references in a graph mean: results of steps, the arguments of the run, facts about the run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
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
"""The roots of references that are not steps."""


class Values:
    """The values of one run, each read when it is first asked for. Only steps that succeeded have one."""

    def __init__(self, view: View, run: str, graph: Graph) -> None:
        self._view, self._run, self._graph = view, run, graph
        self._known: dict[str, Any] = {}

    @staticmethod
    def read(view: View, wanted: Iterable[tuple[Values, Collection[str]]]) -> None:
        """Reads values for many runs at once. Each entry of `wanted` is a run and the roots whose values it needs."""
        unknown = [(one, root) for one, roots in wanted for root in roots if root not in one._known]
        steps = {
            (one._run, number): (one, root)
            for one, root in unknown
            if root not in (INPUT, RUN) and not one._graph.steps[number := one._graph.numbers[root]].is_map
        }
        if steps:
            for run, number, result in view.rows("results_of_steps", steps=sorted(steps)):
                one, root = steps[run, number]
                one._known[root] = _json(result or "null")
        if runs := {one._run: one for one, root in unknown if root in (INPUT, RUN)}:
            for run, (arguments, about) in run_values(view, sorted(runs)).items():
                runs[run]._know(arguments, about)

    def __call__(self, root: str) -> Any:
        if root not in self._known:
            self._known[root] = self._read(root)
        return self._known[root]

    def add(self, root: str, result: str | None) -> None:
        """Adds the result of a step that ends in this transaction and is not written yet."""
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
            self._know(*run_values(self._view, [self._run])[self._run])
            return self._known[root]
        number = self._graph.numbers[root]
        if self._graph.steps[number].is_map:
            return successes(self._view, self._run, number)
        ((_, _, result),) = self._view.rows("results_of_steps", steps=[(self._run, number)])
        return _json(result or "null")

    def _know(self, arguments: dict[str, Any], about: dict[str, Any]) -> None:
        self._known.update({INPUT: with_defaults(self._graph, arguments), RUN: about})


def with_defaults(graph: Graph, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a run, with the defaults of the parameters that were not given."""
    return {**{name: one["default"] for name, one in graph.parameters.items() if "default" in one}, **arguments}


def run_facts(id: str, workflow: str, scheduled_for: int, started_at: int) -> dict[str, Any]:
    """The members of `this_run`."""
    times = {"scheduled_for": rfc3339(scheduled_for), "started_at": rfc3339(started_at)}
    return {"id": id, "workflow": workflow, **times}


def run_values(view: View, runs: Sequence[str]) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """By run: its arguments, and the facts about it that `this_run` shows."""
    found = {}
    parents: dict[str, Values] = {}
    rows = view.rows("arguments_of_runs", ids=list(runs), lowest=min(runs), highest=max(runs))
    for id, arguments, inputs, parent, tick, run_at, job, opened_at in rows:
        about = run_facts(id, job, run_at if tick is None else tick, opened_at)
        given = _json(arguments)
        if inputs:
            if parent not in parents:
                parents[parent] = _values_of(view, parent)
            values = parents[parent]
            given |= {name: template.resolve(one, values, values.outcomes) for name, one in _json(inputs).items()}
        found[id] = given, about
    return found


def _values_of(view: View, parent: str) -> Values:
    """The values of the parent run, which is open. Arguments of a sub-run may be results of its steps."""
    (above,) = view.records("runs_open", Run, ids=[parent])
    return Values(view, parent, graph_of(view, above))


def results_to_undo(view: View, undos: list[str]) -> dict[str, Any]:
    """By the id of an undo: the result of the step that it undoes. Undos whose result was deleted are missing."""
    rows = view.rows("results_to_undo", ids=undos, lowest=min(undos), highest=max(undos))
    return {id: _json(result or "null") for id, result in rows}


def successes(view: View, run: str, number: int) -> list[Any]:
    """The results of the items of a map that succeeded, in order."""
    rows = view.rows("items_of", run=run, number=number)
    return [_json(result or "null") for _, status, result, _ in rows if status == Status.SUCCESS]


def _optional(text: str | None) -> Any:
    return None if text is None else _json(text)
