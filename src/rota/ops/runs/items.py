"""The items of a map: which items there are, and which of them a run does not place."""

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
"""The highest number of an item that a column can hold."""


def map_items(view: View, run: Run, graph: Graph, number: int, letters: Mapping[str, str], values: Values) -> list[Any]:
    """The items of a map whose upstreams have ended. Raises a TemplateError.

    In the undo of a map, each item undoes the item with the same number. The values of these items are empty, because
    they are not needed.
    """
    step = graph.steps[number]
    if step.is_undo:
        found = view.one("width_of_map", run=run.undo_of, number=number)
        return [{}] * (found[0] if found else 0)
    value = template.resolve(template.lowered(step.map, letters), values, values.outcomes)
    return map_rules.items(step, graph.max_width, value)


def omitted_items(tx: Tx, run: Run, number: int, low: int, high: int) -> set[int]:
    """The items from `low` up to, but not including, `high` that the run does not place.

    In a retry these are the items whose results it keeps; in an undo, the items that have nothing to undo.
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
    """The numbers of the items of a map that are to be undone. A step that is not a map has one item, 0."""
    kinds = {"failed": int(step.undo_failed), "workflow": int(step.workflow is not None)}
    rows = view.rows("items_to_undo", run=run, number=number, low=low, high=high, most=most, **kinds)
    return [row[0] for row in rows]
