"""The items of a map: which there are, and which of them are not placed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rota.domain.workflow import maps as map_rules
from rota.domain.workflow import template
from rota.domain.workflow.graph import Graph, Step
from rota.ops.runs.run import Run, pinned, pinned_graph
from rota.ops.runs.values import Values
from rota.store.port import Tx, View

LAST = 2**31 - 1


def map_items(view: View, run: Run, graph: Graph, number: int, letters: Mapping[str, str], values: Values) -> list[Any]:
    """The items of a map whose upstreams have ended. Raises a TemplateError.

    The map of an undo has the items of the map that it undoes. What they were is not needed.
    """
    step = graph.steps[number]
    if step.is_undo:
        found = view.one("width_of_map", run=run.undo_of, number=number)
        return [{}] * (found[0] if found else 0)
    value = template.resolve(template.lowered(step.map, letters), values, values.outcomes)
    return map_rules.items(step, graph.max_width, value)


def settled_items(tx: Tx, run: Run, number: int, low: int, high: int) -> set[int]:
    """The items from `low` on and before `high` that are not placed.

    A retry has kept them, or the undo of a map has nothing to undo there.
    """
    where = {"run": run.id, "number": number, "low": low, "high": high}
    kept = {row[0] for row in tx.rows("kept_items", **where)} if pinned(run.pinned).partial else set()
    if run.undo_of is None:
        return kept
    step = pinned_graph(tx, run).steps[number]
    found = set(items_to_undo(tx, run.undo_of, number, step, low, high))
    return kept | (set(range(low, high)) - found)


def items_to_undo(
    view: View, run: str, number: int, step: Step, low: int = 0, high: int = LAST, most: int = LAST
) -> list[int]:
    """The items of a step that are undone; 0 for a step that is no map."""
    kinds = {"failed": int(step.undo_failed), "workflow": int(step.workflow is not None)}
    rows = view.rows("items_to_undo", run=run, number=number, low=low, high=high, most=most, **kinds)
    return [row[0] for row in rows]
