"""Claims that wait in a worker until a slot is free: the lowest rank first, and none of them for long."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

from rota.domain.claim import Claim
from rota.domain.claim_order import SLACK

WAIT_S = 0.1
"""A claim that has waited for a slot for this long is given back: after twice this time at the latest, if the event
loop is on time."""
_place = attrgetter("rank", "id")


class SlotQueue:
    """Prefetched claims by id, in the order in which they are to start.

    One transaction brings claims in the order of their ranks, and usually they rank behind those that wait already. If
    a claim ranks more than `SLACK` before the last one of the queue, because it has a high priority, the queue is
    sorted before the next claim leaves it. Smaller differences do not matter: claims from several lanes have them, too.
    """

    def __init__(self, give_back: Callable[[Claim], None]) -> None:
        """`give_back` is called with each claim that has waited for too long."""
        self._loop = asyncio.get_running_loop()
        self._give_back = give_back
        self._claims: OrderedDict[str, Claim] = OrderedDict()
        self._highest = 0
        """The highest rank that was added since the queue was last empty."""
        self._is_sorted = True
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._claims)

    def __iter__(self) -> Iterator[str]:
        """The ids of the claims."""
        return iter(self._claims)

    def add(self, claim: Claim) -> None:
        if not self._claims or claim.rank > self._highest:
            self._highest = claim.rank
        elif claim.rank < self._highest - SLACK:
            self._is_sorted = False
        self._claims[claim.id] = claim
        if self._timer is None:
            self._start_timer([claim])

    def pop(self) -> Claim:
        """Removes the claim that is next to start."""
        if not self._is_sorted:
            self._claims = OrderedDict((claim.id, claim) for claim in sorted(self._claims.values(), key=_place))
            self._is_sorted = True
        return self._claims.popitem(last=False)[1]

    def remove(self, id: str) -> Claim | None:
        """Takes one claim out of the queue, if it is there."""
        return self._claims.pop(id, None)

    def close(self) -> None:
        """Forgets all claims."""
        self._claims.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _start_timer(self, waited: Sequence[Claim], *, is_last: bool = False) -> None:
        due_at = self._loop.time() + WAIT_S
        self._timer = self._loop.call_at(due_at, self._give_back_waited, waited, due_at, is_last)

    def _give_back_waited(self, waited: Sequence[Claim], due_at: float, is_last: bool) -> None:
        """Gives back those claims of `waited` that are still in the queue.

        A late timer means that this process had no processor or was stopped: attempts that have ended have not freed
        their slots yet. These claims wait once more then (`is_last`), or a busy machine would make a healthy worker
        give back whole batches.
        """
        self._timer = None
        if self._loop.time() - due_at > WAIT_S / 2 and not is_last:
            self._start_timer(waited, is_last=True)
            return
        for claim in waited:
            if self._claims.get(claim.id) is claim:
                del self._claims[claim.id]
                self._give_back(claim)
        if self._claims:
            self._start_timer(list(self._claims.values()))
