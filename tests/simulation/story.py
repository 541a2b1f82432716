"""A run as text, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.simulation.clocks import START
from tests.simulation.history import Change, History

DULL = ("beat",)


def tell(history: History) -> Iterator[str]:
    """One line for every change, start, effect, jump and death."""
    yield f"seed {history.seed}: lease {history.lease_s} s"
    yield f"healed at {history.healed_at:.3f} s, all ended at {history.ended_at}"
    yield f"faults: { {fault.name: count for fault, count in history.faults.items()} }"
    for at, line in sorted(_lines(history), key=lambda entry: entry[0]):
        yield f"{at:9.3f}  {line}"


def _lines(history: History) -> Iterator[tuple[float, str]]:
    for operation in history.operations:
        if operation.name not in DULL:
            now = (operation.now - START) / 1e6
            for change in operation.changes:
                yield operation.at, f"[{now:.3f}] {operation.caller}: {operation.name}: {_change(change)}"
    for body in history.bodies:
        yield body.started_at, f"worker {body.worker}: {body.id} fence {body.fence} ({body.job}) starts"
        if body.ended_at is not None:
            yield body.ended_at, f"worker {body.worker}: {body.id} fence {body.fence} ({body.job}) stops"
    for effect in history.effects:
        yield effect.at, f"effect of {effect.id} fence {effect.fence}: {'done' if effect.accepted else 'refused'}"
    for life in history.incarnations:
        yield life.started_at, f"{life.name}: worker {life.worker} begins"
        if life.ended_at is not None:
            yield life.ended_at, f"{life.name}: worker {life.worker} {life.ending}"
    for at, seconds in history.jumps:
        yield at, f"the database's clock jumps by {seconds:g} s"
    yield from _of_clients(history)


def _of_clients(history: History) -> Iterator[tuple[float, str]]:
    for submission in history.submissions:
        for one in submission.tries:
            ids = [item.id for item in submission.items]
            yield one.at, f"client: enqueue {submission.header.job} {ids}: {one.told} {one.detail}"
    for order in history.orders:
        for one in order.tries:
            yield one.at, f"client: {order.verb} {order.ids}: {one.told} {one.detail} {order.answer or ''}"


def _change(change: Change) -> str:
    row: dict[str, Any] = {name: value for name, value in change.row.items() if value is not None and name != "id"}
    return f"{change.kind}{change.table} {change.row.get('id', '')} {row}"
