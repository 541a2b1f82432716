"""Accepting work: check, decide the keys, place; in one transaction."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from rota.domain.errors import LeaseLost, StoreError, UnknownJob
from rota.domain.instant import MICROSECONDS
from rota.domain.lifecycle import Held
from rota.ops import admission, keyed, route, submission
from rota.ops.place import Batch, place, place_at_once
from rota.ops.route import Route
from rota.ops.submission import Accepted, Header, Item, check_count
from rota.store.port import OneStatement, Tx, operation


@operation(
    is_large=True,
    together=lambda tx, calls: _enqueue_together(tx, calls),
    one_statement=OneStatement(
        run=lambda tx, header, items: _enqueue_in_one_statement(tx, header, items),
        answer=lambda header, items: [Accepted(item.id, True) for item in items],
        joined=lambda calls: _joined(calls),
    ),
)
def enqueue(tx: Tx, header: Header, items: list[Item]) -> list[Accepted]:
    """Accepts every item or none."""
    check_count(len(items))
    if header.is_keyed:
        keyed.lock(tx, [(header, items)])
    return _accept(tx, header, items)


@operation(is_large=True)
def children(tx: Tx, parent: tuple[str, int], header: Header, items: list[Item]) -> list[Accepted]:
    """`enqueue` by an attempt of another execution, only while that is the one which counts."""
    id, fence = parent
    held = tx.records("held", Held, ids=[id])
    if not held or held[0].fence != fence:
        raise LeaseLost(f"attempt {fence} of execution {id} is no longer the one that counts: nothing was accepted")
    return enqueue(tx, header, items)


def _accept(tx: Tx, header: Header, items: list[Item]) -> list[Accepted]:
    """`enqueue`, once the keys are locked."""
    where = _route(tx, header)
    admission.check_ids(tx, items)
    resolved = keyed.resolve(tx, header, items)
    if resolved.new:
        # Only here, so that a full queue still answers for a key that it knows.
        admission.check_depth(tx, header, len(resolved.new), where.max_depth)
        place(tx, [_batch(tx.now, header, where, resolved.new)])
        keyed.end_replaced(tx, resolved)
    return resolved.answers


def _route(tx: Tx, header: Header) -> Route:
    found = route.find(tx, header.namespace, header.app, header.job, header.queue)
    if found is None:
        raise UnknownJob(
            f"app {header.app!r} has no job {header.job!r}: check the name, or start a worker of the app once "
            "so that its jobs are known"
        )
    return found


def _batch(now: int, header: Header, where: Route, items: list[Item]) -> Batch:
    run_at = header.run_at(now)
    arguments = {item.id: item.arguments for item in items}
    if len(arguments) < len(items):
        raise StoreError("two items have the same id: nothing was accepted")
    return Batch(
        arguments,
        where,
        header.actor,
        header.priority,
        run_at,
        deadline=header.deadline(run_at),
        key=header.key,
        parent=header.parent,
        replay_of=header.replay_of,
        tags=header.tags,
        trace=header.trace,
        headers=header.headers,
        overrides=header.overrides,
    )


def _enqueue_together(tx: Tx, calls: Sequence[tuple[Any, ...]]) -> list[list[Accepted]]:
    """Calls of many callers: those with the same header and no key are one submission."""
    plain: dict[int, list[int]] = {}
    answers: list[list[Accepted]] = [[] for _ in calls]
    keyed.lock(tx, [(header, items) for header, items in calls])
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
    if not header.is_plain or any(other is not header or len(items) > submission.MOST_ITEMS for other, items in calls):
        return None
    items = [item for _, items in calls for item in items]
    # The store runs calls with the same item one by one, and refuses all but the first.
    return (header, items) if items and len({item.id for item in items}) == len(items) else None


def _enqueue_in_one_statement(tx: Tx, header: Header, items: list[Item]) -> bool:
    """The most common call as one statement, which looks up the route itself."""
    unknown = Route(header.namespace, header.app, header.job, header.queue)
    return place_at_once(tx, _batch(0, header, unknown, items), round(admission.MOST_CLOCK_SKEW_S * MICROSECONDS))
