"""The claim that an idle child leaves with its supervisor, which makes it when a hint names a lane of the child.

    supervisor                                     child, with free slots and nothing to claim
      ◀────────────────────── claim_on_hint(slots) ─
      a hint comes: claims
      ── executions ───────────────────────────────▶ runs them, then leaves the next claim
      ◀─────────────────────── finish_and_claim(…) ─ if it wants to claim by itself first:
      ── nothing: withdrawn ───────────────────────▶

Without it, the hint would travel to the child, which would send its claim back. That is two of the six hops between an
enqueue and the first line of the job, and each takes as long as a statement of the claim.

A child has at most one such claim. Any other claim of the child withdraws it. If it is being made at that moment, the
other claim waits for it and takes as many executions less: together they never fill more slots than the child has.
"""

from __future__ import annotations

import asyncio

from rota.ops.claim import Mark


class LeftClaim:
    """The claim that one child has left, if it has."""

    def __init__(self) -> None:
        self._hint: asyncio.Future[list[Mark] | None] | None = None
        """While it waits. The result is where the claim starts, or None if it was withdrawn."""
        self._made: asyncio.Future[int] | None = None
        """While it is being made. The result is how many executions it has taken."""
        self._is_closed = False

    @property
    def waits(self) -> bool:
        return self._hint is not None

    async def wait(self) -> list[Mark] | None:
        """Returns where to start when `make` is called, and then expects `made`. None if it was withdrawn."""
        while self._hint is not None or self._made is not None:
            await self.withdraw()
        if self._is_closed:
            return None
        hint: asyncio.Future[list[Mark] | None] = asyncio.get_running_loop().create_future()
        self._hint = hint
        try:
            return await hint
        except asyncio.CancelledError:
            self.made(0)
            raise
        finally:
            if self._hint is hint:
                self._hint = None

    def make(self, marks: list[Mark]) -> None:
        """To be called while it waits."""
        assert self._hint is not None, "only a claim that waits can be made"
        self._hint.set_result(marks)
        self._hint, self._made = None, asyncio.get_running_loop().create_future()

    def made(self, count: int) -> None:
        if self._made is not None:
            self._made.set_result(count)
            self._made = None

    async def withdraw(self) -> int:
        """Ends the waiting. If the claim is being made, returns how many executions it has taken, when it has."""
        self._stop_waiting()
        return await self.settled()

    async def settled(self) -> int:
        """Returns when it is not being made."""
        return 0 if self._made is None else await asyncio.shield(self._made)

    def close(self) -> None:
        """Withdraws it, and refuses every further one."""
        self._is_closed = True
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._hint is not None:
            self._hint.set_result(None)
            self._hint = None
