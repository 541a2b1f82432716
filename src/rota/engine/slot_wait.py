"""How long claims wait in a worker for a free slot, before they go back to the queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

WAIT_S = 0.1
"""A claim that has waited for a slot for this long is given back, after twice this time at the latest."""


class SlotWait:
    """One timer for all claims that wait, in the order in which they came."""

    def __init__(self, waiting: Callable[[], int], give_back: Callable[[int], None]) -> None:
        """`waiting()` is the number of claims that wait; `give_back(count)` gives back the oldest `count` of them."""
        self._loop = asyncio.get_running_loop()
        self._waiting = waiting
        self._give_back = give_back
        self._came = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self) -> None:
        """One more claim waits."""
        self._came += 1
        if self._timer is None:
            self._start(self._came)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _start(self, came: int, *, is_last: bool = False) -> None:
        due_at = self._loop.time() + WAIT_S
        self._timer = self._loop.call_at(due_at, self._give_up_on, came, due_at, is_last)

    def _give_up_on(self, came: int, due_at: float, is_last: bool) -> None:
        """Gives back the claims among the first `came` that still wait.

        A late timer means that this process had no processor or was stopped: attempts that have ended have not freed
        their slots yet. All claims wait once more then, or a busy machine would make a healthy worker give back whole
        batches.
        """
        self._timer = None
        if self._loop.time() - due_at > WAIT_S / 2 and not is_last:
            self._start(came, is_last=True)
            return
        self._give_back(self._waiting() - (self._came - came))
        if self._waiting():
            self._start(self._came)
