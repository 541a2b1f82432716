"""The claim that an idle child leaves with its supervisor: a long poll. The supervisor makes it when a hint comes.

    supervisor                                   idle child with free slots
      ◀──────────────── claim_on_hint(slots, …) ─
      a hint arrives: claims
      ── executions ────────────────────────────▶ runs them, and leaves the next claim when idle again

      ◀──────────────── claim_on_hint(slots, …) ─
      ◀──────────────────────────── claim(…) ─    after a poll, for example
      ── None: withdrawn ───────────────────────▶
      ── the answer of claim(…) ────────────────▶

Without the left claim, the hint would travel to the child, and the child would send a claim back. Each of these two
messages wakes a process, which takes about as long as a statement of the claim.

A child has at most one left claim. Every other claim of the child withdraws it. If the left claim is being made at that
moment, the other claim waits for it and asks for that many fewer executions. So the two together never take more than
the child has slots for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from rota.ops.claim import Claimed, Mark


class LeftClaim:
    """The left claim of one child, if there is one."""

    def __init__(self) -> None:
        self._call: _Call | None = None
        self._is_closed = False

    @property
    def waits(self) -> bool:
        return self._call is not None and not self._call.marks.done()

    async def leave(self, claim: Callable[[list[Mark]], Awaitable[Claimed]]) -> Claimed | None:
        """Waits for `make`, and then claims from its marks. None if it was withdrawn."""
        while self._call is not None:  # While this call waits, another one may leave a claim.
            await self.withdraw()
        if self._is_closed:
            return None
        call, taken = _Call(), 0
        self._call = call
        try:
            marks = await call.marks
            if marks is None:
                return None
            claimed = await claim(marks)
            taken = len(claimed.claims)
            return claimed
        finally:
            call.taken.set_result(taken)
            if self._call is call:
                self._call = None

    def make(self, marks: list[Mark]) -> None:
        """Lets the waiting call claim from these marks."""
        assert self._call is not None, "only a claim that waits can be made"
        self._call.marks.set_result(marks)

    async def withdraw(self) -> int:
        """Ends the waiting. If the claim is being made, waits for it. Returns how many executions it took."""
        self._stop_waiting()
        return await self.settled()

    async def settled(self) -> int:
        """If the claim is being made, waits for it. Returns how many executions it took, otherwise 0."""
        return 0 if self._call is None or self.waits else await asyncio.shield(self._call.taken)

    def close(self) -> None:
        """Withdraws the claim, and refuses every further one."""
        self._is_closed = True
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._call is not None and self.waits:
            self._call.marks.set_result(None)
            self._call = None


class _Call:
    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.marks: asyncio.Future[list[Mark] | None] = loop.create_future()
        """Where to start, when a hint has come; None if the claim was withdrawn."""
        self.taken: asyncio.Future[int] = loop.create_future()
        """How many executions it took, when it has been made."""
