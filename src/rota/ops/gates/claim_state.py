"""A claim as its gates see it, with the lanes in groups of the same needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from rota.domain.claim import Claim
from rota.domain.claim_order import Head
from rota.domain.requirement import Room
from rota.domain.served import Served
from rota.store.hints import Ready
from rota.store.port import Row, Tx

T = TypeVar("T")
Starts = Mapping[int, tuple[int, str]]
"""For each lane the rank and id behind which the claim starts."""


class Claiming:
    """One claim by one worker."""

    def __init__(self, tx: Tx, worker: int, served: Served, room: Room) -> None:
        self.tx = tx
        self.worker = worker
        self.served = served
        self.room = room
        """For how many more jobs the worker has processes."""
        self.offers = ""
        """The pools, tags and resources of the worker."""
        self.groups: list[Group] = []
        self.at_end: list[Callable[[Sequence[Claim]], None]] = []
        """Called with the executions that start, after all row gates."""
        self.has_steps = False
        """Whether a step of a run was taken."""
        self.left_some = False
        """Whether an execution was left for the worker that it prefers."""
        self._known: dict[str, Any] = {}

    def lanes_that_fit(self) -> frozenset[int]:
        return frozenset(lane for group in self.groups if group.fits for lane in group.lanes)

    def give_back(self, claims: Iterable[Claim]) -> None:
        """Returns executions to `ready`, because the transaction would become too large. The next claim takes them."""
        if returned := list(claims):
            self.tx.run("unclaim", ids=[claim.id for claim in returned])
            # The hint makes workers move their watermarks back to these rows.
            self.tx.tell(Ready.of((claim.lane, claim.rank) for claim in returned))

    def once(self, key: str, read: Callable[[], T]) -> T:
        """The value that `read` returns, read once for the whole claim."""
        if key not in self._known:
            self._known[key] = read()
        found: T = self._known[key]
        return found


class Group:
    """Lanes of one namespace and app whose executions need the same of a worker."""

    def __init__(self, namespace: str, app: str, requirements: str, starts: Starts, depth: int) -> None:
        self.namespace, self.app = namespace, app
        self.requirements = requirements
        self.lanes: list[int] = []
        self.heads: dict[int, Head] = {}
        """The lanes that have work."""
        self.starts = starts
        """The rank and id behind which the heads were read."""
        self.depth = depth
        self.fits = True
        """Whether the worker could take these executions if it ran nothing else."""
        self.starves = False
        self.room: int | None = None
        """How many executions of these lanes the worker can take; None if nothing but its slots bounds them."""
        self.permit: Callable[[], bool] | None = None
        """Asked once, just before executions are taken; False if none may be."""
        self.choose: Callable[[int, int, int], list[Row]] | None = None
        """Called with a lane, the highest rank and the most rows; takes rows of its choice instead of the first."""

    @property
    def head(self) -> int:
        return min(head.ranks[0] for head in self.heads.values())

    def limit(self, most: int | None) -> None:
        if most is not None:
            self.room = max(0, most if self.room is None else min(most, self.room))

    def part(self, lanes: Iterable[int]) -> Group:
        """A copy of this group with only these lanes."""
        part = Group(self.namespace, self.app, self.requirements, self.starts, self.depth)
        part.heads = {lane: self.heads[lane] for lane in lanes}
        part.room, part.permit, part.choose = self.room, self.permit, self.choose
        return part
