"""Claims that wait in a worker until a slot is free: the lowest rank first, and none of them for long."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from operator import attrgetter

from rota.domain.claim import Claim
from rota.domain.claim_order import SLACK

TICK_S = 0.05
"""A claim becomes overdue at the second tick, and is given back at the third: after 0.1 to 0.15 s, if the event loop is
on time."""
_place = attrgetter("rank", "id")


class SlotQueue:
    """Prefetched claims by id, in the order in which they are to start: the overdue ones, then the others by rank.

    One transaction brings claims in the order of their ranks, and usually they rank behind those that wait already. If
    a claim ranks more than `SLACK` before the last one of the queue, because it has a high priority, the queue is
    sorted before the next claim leaves it. Smaller differences do not matter: claims from several lanes have them, too.

    Without the rule for overdue claims, a steady flow of urgent executions would make the worker give back all others,
    although slots become free.
    """

    def __init__(self, give_back: Callable[[Claim], None]) -> None:
        """`give_back` is called with each claim that has waited for too long."""
        self._loop = asyncio.get_running_loop()
        self._give_back = give_back
        self._claims: OrderedDict[str, Claim] = OrderedDict()
        self._highest = 0
        """The highest rank that was added since the queue was last empty."""
        self._is_sorted = True
        self._seen: list[Claim] = []
        """The claims that waited at the last tick."""
        self._overdue: OrderedDict[str, Claim] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._claims) + len(self._overdue)

    def __iter__(self) -> Iterator[str]:
        """The ids of the claims."""
        return iter([*self._overdue, *self._claims])

    def add(self, claim: Claim) -> None:
        if not self._claims or claim.rank > self._highest:
            self._highest = claim.rank
        elif claim.rank < self._highest - SLACK:
            self._is_sorted = False
        self._claims[claim.id] = claim
        if self._timer is None:
            self._start_timer()

    def pop(self) -> Claim:
        """Removes the claim that is next to start."""
        if self._overdue:
            return self._overdue.popitem(last=False)[1]
        if not self._is_sorted:
            self._claims = OrderedDict((claim.id, claim) for claim in sorted(self._claims.values(), key=_place))
            self._is_sorted = True
        return self._claims.popitem(last=False)[1]

    def remove(self, id: str) -> Claim | None:
        """Takes one claim out of the queue, if it is there."""
        return self._claims.pop(id, None) or self._overdue.pop(id, None)

    def close(self) -> None:
        """Forgets all claims."""
        self._claims.clear()
        self._overdue.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _start_timer(self, *, may_be_late: bool = False) -> None:
        due_at = self._loop.time() + TICK_S
        self._timer = self._loop.call_at(due_at, self._tick, due_at, may_be_late)

    def _tick(self, due_at: float, may_be_late: bool) -> None:
        """A late tick means that this process had no processor or was stopped: attempts that have ended have not freed
        their slots yet. All claims wait once more then, or a busy machine would make a healthy worker give back whole
        batches."""
        self._timer = None
        if self._loop.time() - due_at > TICK_S and not may_be_late:
            self._start_timer(may_be_late=True)
            return
        late, self._overdue = self._overdue, OrderedDict()
        for claim in self._seen:
            if self._claims.get(claim.id) is claim:
                self._overdue[claim.id] = self._claims.pop(claim.id)
        self._seen = list(self._claims.values())
        for claim in late.values():
            self._give_back(claim)
        if self:
            self._start_timer()
