"""A page of a list that is merged from several index ranges and filtered, with a bound on the rows that it reads.

A *head* is one index range in the order of the list, such as the executions of one job. The merge takes the next key of
all heads, and `keep` says which keys match the filters. A page ends when it is full, when no key is left, or when the
budget is spent: then it has looked as far as `reached`, and the next page continues there.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from rota.clock import MACHINE

K = TypeVar("K", str, tuple[int, str])
"""The key of a list: an id, or a rank and an id."""
MOST_ROWS = 20_000
MOST_S = 1.0
LARGEST_PIECE = 2_000
"""How many keys are read or filtered by one statement at most."""
LEAST_OF_HEAD = 8


class Budget(msgspec.Struct, frozen=True):
    """How many rows a page may read, and for how long."""

    rows: int = MOST_ROWS
    seconds: float = MOST_S


UNBOUNDED = Budget(rows=2**62, seconds=float("inf"))
"""For commands, which have no cursor to continue with."""


class Found(msgspec.Struct, Generic[K], frozen=True):
    """The keys of a page in the order in which they were read, and whether more may follow."""

    keys: list[K]
    has_more: bool
    reached: K | None = None
    """Set if the budget was spent: the last key that was read."""


class Source(Protocol[K]):
    """Reads on from the positions of several heads, in one statement."""

    def __call__(self, heads: list[tuple[str, K]], most: int, /) -> list[tuple[str, K]]:
        """For each head, named with its position, up to `most` keys behind it, in any order."""


class Head(Generic[K]):
    """One index range, and the keys that were read of it and not merged yet."""

    def __init__(self, source: Source[K], name: str, after: K) -> None:
        self.source: Source[K] = source
        self.name = name
        self.after: K = after
        self.keys: list[K] = []
        """The next one last."""
        self.piece = 0
        self.is_at_end = False


def scan(
    heads: Sequence[Head[K]],
    keep: Callable[[list[K]], list[K]],
    most: int,
    budget: Budget,
    *,
    is_ascending: bool,
) -> Found[K]:
    """The next `most` keys that `keep` leaves, and whether there are more."""
    merge = _Merge(heads, most, budget, is_ascending)
    found: list[K] = []
    reached: K | None = None
    size = max(1, most)
    while len(found) <= most:
        keys = merge.take(size)
        if not keys:
            return Found(found, has_more=False)
        reached = keys[-1]
        found += keep(keys)
        size = min(LARGEST_PIECE, 2 * size)
        if merge.is_spent and len(found) <= most and not merge.is_at_end:
            return Found(found, has_more=True, reached=reached)
    return Found(found[:most], has_more=True)


class _Merge(Generic[K]):
    def __init__(self, heads: Sequence[Head[K]], most: int, budget: Budget, is_ascending: bool) -> None:
        self._heads: Sequence[Head[K]] = heads
        self._budget, self._is_ascending = budget, is_ascending
        self._first_piece = max(LEAST_OF_HEAD, min(LARGEST_PIECE, (most + 1) // max(1, len(heads)) + 1))
        self._rows = 0
        self._give_up_at = MACHINE.monotonic() + budget.seconds
        self._last: K | None = None

    @property
    def is_spent(self) -> bool:
        return self._rows >= self._budget.rows or MACHINE.monotonic() >= self._give_up_at

    @property
    def is_at_end(self) -> bool:
        return all(head.is_at_end and not head.keys for head in self._heads)

    def take(self, most: int) -> list[K]:
        """The next keys of all heads, each once; fewer than `most` at the end, or if the budget is spent."""
        taken: list[K] = []
        while len(taken) < most:
            if empty := [head for head in self._heads if not head.keys and not head.is_at_end]:
                if taken and self.is_spent:
                    break
                self._refill(empty)
                continue
            if not self._merge_into(taken, most):
                break
        return taken

    def _merge_into(self, taken: list[K], most: int) -> bool:
        """Merges until a head that has more is empty. False if no key was left."""
        waiting = [head for head in self._heads if head.keys]
        if not waiting:
            return False
        streams = [reversed(head.keys) for head in waiting]
        left = {id(head): len(head.keys) for head in waiting}
        labelled = [[(key, at) for key in stream] for at, stream in enumerate(streams)]
        for key, at in heapq.merge(*labelled, key=lambda one: one[0], reverse=not self._is_ascending):
            head = waiting[at]
            head.keys.pop()
            left[id(head)] -= 1
            if key != self._last:
                taken.append(key)
                self._last = key
            if len(taken) >= most or (not left[id(head)] and not head.is_at_end):
                break
        return True

    def _refill(self, empty: list[Head[K]]) -> None:
        by_source: dict[int, list[Head[K]]] = {}
        for head in empty:
            head.piece = min(LARGEST_PIECE, 2 * head.piece) or self._first_piece
            by_source.setdefault(id(head.source), []).append(head)
        for heads in by_source.values():
            room = max(1, (self._budget.rows - self._rows) // len(heads))
            most = min(room, max(head.piece for head in heads))
            read: dict[str, list[K]] = {head.name: [] for head in heads}
            for name, key in heads[0].source([(head.name, head.after) for head in heads], most):
                read[name].append(key)
            for head in heads:
                keys = sorted(read[head.name], reverse=self._is_ascending)
                self._rows += len(keys)
                head.keys, head.is_at_end = keys, len(keys) < most
                if keys:
                    head.after = keys[0]
