"""Accepting work: checks, keys, and `place`, in one transaction."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from rota.domain import backpressure
from rota.domain.errors import LeaseLost, QueueFull, StoreError, UnknownJob
from rota.domain.instant import MICROSECONDS
from rota.domain.lifecycle import Held
from rota.ops import dependencies, keys
from rota.ops.place import Batch, Route, arrive, find_route, place, place_at_once
from rota.ops.submission import MOST_CLOCK_SKEW_S, MOST_ITEMS, Accepted, Header, Item, check_count, check_ids
from rota.store.port import OneStatement, Tx, operation

_MOST_SKEW = round(MOST_CLOCK_SKEW_S * MICROSECONDS)
DEPTH_AGE_S = 0.2
"""The counted depth of a queue is cached for this long. Executions that came since then may exceed the limit."""


@operation(
    is_large=True,
    together=lambda tx, calls: _enqueue_together(tx, calls),
    one_statement=OneStatement(
        run=lambda tx, header, items: _enqueue_in_one_statement(tx, header, items),
        answer=lambda placed, header, items: [Accepted(item.id, True, *placed or ()) for item in items],
        joined=lambda calls: _joined(calls),
    ),
    arrival=lambda tx, header, items: _arrive(tx, header, items),
)
def enqueue(tx: Tx, header: Header, items: list[Item]) -> list[Accepted]:
    """Accepts every item or none."""
    check_count(len(items))
    if header.is_keyed:
        keys.lock(tx, [(header, items)])
    return _accept(tx, header, items)


@operation(is_large=True)
def enqueue_all(tx: Tx, headers: list[Header], items: list[Item]) -> list[Accepted]:
    """`enqueue` for items with different headers, one for each item: accepts every item or none."""
    check_count(len(items))
    groups: dict[int, list[int]] = {}
    for index, header in enumerate(headers):
        groups.setdefault(id(header), []).append(index)
    calls = [(headers[group[0]], [items[index] for index in group]) for group in groups.values()]
    keys.lock(tx, calls)
    found: dict[int, Accepted] = {}
    for group, (header, wanted) in zip(groups.values(), calls, strict=True):
        found.update(zip(group, _accept(tx, header, wanted), strict=True))
    return [found[index] for index in range(len(items))]


@operation(is_large=True)
def children(tx: Tx, parent: tuple[str, int], header: Header, items: list[Item]) -> list[Accepted]:
    """`enqueue` by an attempt of another execution, only while that attempt holds its execution."""
    id, fence = parent
    held = tx.records("held", Held, ids=[id])
    if not held or held[0].fence != fence:
        raise LeaseLost(f"attempt {fence} of execution {id} is no longer the one that counts: nothing was accepted")
    return enqueue(tx, header, items)


def _accept(tx: Tx, header: Header, items: list[Item]) -> list[Accepted]:
    """`enqueue`, once the keys are locked."""
    route = find_route(tx, header.namespace, header.app, header.job, header.queue)
    if route is None:
        raise UnknownJob(
            f"app {header.app!r} has no job {header.job!r}: check the name, or start a worker of the app once "
            "so that its jobs are known"
        )
    check_ids(tx.now, [item.id for item in (*items[:1], *items[-1:])])
    resolved = keys.resolve(tx, header, items)
    if resolved.new:
        # Not before the keys are resolved: a call with a known key is answered even if the queue is full.
        check_depth(tx, header, len(resolved.new), route.max_depth)
        place(tx, [_batch(tx.now, header, route, resolved.new)])
        keys.end_replaced(tx, resolved)
        if route.depends:
            dependencies.clear(tx, (header.namespace, header.app, header.job))
    return _with_facts(resolved, route.job_version, tx.now)


def _with_facts(resolved: keys.Resolved, version: int, now: int) -> list[Accepted]:
    """The answers, those for new executions with their version and time."""
    if len(resolved.new) == len(resolved.answers):
        return [Accepted(one.id, True, version, now) for one in resolved.answers]
    new = {item.id for item in resolved.new}
    return [Accepted(one.id, True, version, now) if one.created and one.id in new else one for one in resolved.answers]


def check_depth(tx: Tx, header: Header, arriving: int, max_depth: int | None) -> None:
    """Refuses executions that would exceed the limit of their queue."""
    if max_depth is None:
        return
    where = {"namespace": header.namespace, "queue": header.queue}
    depth = tx.recent("queue_depth", DEPTH_AGE_S, **where, most=max_depth + 1)
    if backpressure.admits(depth[0], arriving, max_depth):
        depth[0] += arriving
        return
    oldest = tx.one("queue_oldest", **where)
    waited_s = (tx.now - oldest[0]) / MICROSECONDS if oldest and oldest[0] else 0.0
    after_s = backpressure.retry_after_s(waited_s)
    raise QueueFull(
        f"queue {header.queue!r} is full ({depth[0]} of {max_depth} queued): nothing was accepted, "
        f"retry after {after_s:g} s",
        timedelta(seconds=after_s),
    )


def _batch(now: int, header: Header, route: Route, items: list[Item]) -> Batch:
    run_at = header.run_at(now)
    arguments = {item.id: item.arguments for item in items}
    if len(arguments) < len(items):
        raise StoreError("two items have the same id: nothing was accepted")
    return Batch(arguments, route, header, header.priority, run_at, deadline=header.deadline(run_at))


def _enqueue_together(tx: Tx, calls: Sequence[tuple[Any, ...]]) -> list[list[Accepted]]:
    """Calls of many callers: those with the same header and no key are one submission."""
    plain: dict[int, list[int]] = {}
    answers: list[list[Accepted]] = [[] for _ in calls]
    keys.lock(tx, calls)
    for index, (header, items) in enumerate(calls):
        check_count(len(items))
        if header.is_keyed:
            answers[index] = _accept(tx, header, items)
        else:
            plain.setdefault(id(header), []).append(index)
    for indices in plain.values():
        accepted = iter(_accept(tx, calls[indices[0]][0], [item for index in indices for item in calls[index][1]]))
        for index in indices:
            answers[index] = list(itertools.islice(accepted, len(calls[index][1])))
    return answers


def _joined(calls: Sequence[tuple[Any, ...]]) -> tuple[Header, list[Item]] | None:
    """Calls with the same header as one, if nothing has to be read and decided before their items are inserted."""
    header: Header = calls[0][0]
    if not header.is_plain or any(other is not header or len(items) > MOST_ITEMS for other, items in calls):
        return None
    items = [item for _, items in calls for item in items]
    # The store runs calls with the same item one by one, and refuses all but the first.
    return (header, items) if items and len({item.id for item in items}) == len(items) else None


def _enqueue_in_one_statement(tx: Tx, header: Header, items: list[Item]) -> tuple[int, int] | None:
    """The most common call as one statement, which looks up the route itself."""
    columns = msgspec.structs.asdict(header)
    return place_at_once(tx, columns, {item.id: item.arguments for item in items}, _MOST_SKEW)


def _arrive(tx: Tx, header: Header, items: list[Item]) -> list[Accepted] | None:
    """The most common call on SQLite, as one row that the next transaction places."""
    if not header.is_plain:
        return None
    (item,) = items
    check_ids(tx.now, [item.id])
    version = arrive(tx, msgspec.structs.asdict(header), item.id, item.arguments)
    return None if version is None else [Accepted(item.id, True, version, tx.now)]
