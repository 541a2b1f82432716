"""How busy a child is, as its supervisor sees it: every claim and every report of the child passes by here.

So nobody has to ask the database, nor the child, whose user code may keep it from answering.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from rota.clock import Clock
from rota.engine.bridge import Bridge
from rota.ops import claim, finish, fleet, turn
from rota.ops.claim import Claimed
from rota.ops.finish import Finished
from rota.store.port import Tx, View

P = ParamSpec("P")
T = TypeVar("T")


class Occupancy:
    """A bridge to the store that keeps count of what its child has claimed and not reported yet."""

    def __init__(self, bridge: Bridge, clock: Clock, slots: int) -> None:
        self._bridge = bridge
        self._clock = clock
        self._slots = slots
        self._held: set[str] = set()
        self._looked_at = self._changed_at = clock.monotonic()
        self._slot_seconds = 0.0
        self._has_no_room = False

    @property
    def is_idle(self) -> bool:
        return not self._held

    def used(self) -> float:
        """Slots in use since the last call: on average, or now if those are more.

        All of them, if it cannot take what waits because what it runs has all that it has of a resource.
        """
        self._advance()
        passed_s = self._changed_at - self._looked_at
        mean = self._slot_seconds / passed_s if passed_s > 0 else 0.0
        self._looked_at, self._slot_seconds = self._changed_at, 0.0
        return self._slots if self._has_no_room and self._held else max(mean, self._busy)

    async def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        result = await self._bridge.transact(op, *args, **kwargs)
        self._saw(op, args, result)
        return result

    async def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._bridge.read(query, *args, **kwargs)

    def _saw(self, op: Callable[..., Any], args: tuple[Any, ...], result: Any) -> None:
        if op is claim.claim:
            self._took(result)
        elif op is turn.turn:
            self._ended(args[0])
            self._took(result.claimed)
        elif op is finish.finish:
            self._ended(args[0])
        elif op is fleet.reconcile:
            self._advance()
            self._held.difference_update(id for id, _ in args[2])  # What it does not know of goes back.

    def _took(self, claimed: Claimed) -> None:
        self._advance()
        self._held.update(one.id for one in claimed.claims)
        self._has_no_room = claimed.has_no_room

    def _ended(self, reports: list[Finished]) -> None:
        self._advance()
        self._held.difference_update(report.id for report in reports)

    def _advance(self) -> None:
        now = self._clock.monotonic()
        self._slot_seconds += self._busy * (now - self._changed_at)
        self._changed_at = now

    @property
    def _busy(self) -> int:
        """What was claimed ahead waits for a slot and is in none."""
        return min(len(self._held), self._slots)
