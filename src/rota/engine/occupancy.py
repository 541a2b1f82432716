"""How busy a child is, as its supervisor sees it: every claim and every report of the child passes by here.

So the supervisor asks neither the database nor the child, whose user code may keep it from answering.
"""

from __future__ import annotations

from typing import Any

from rota.clock import Clock
from rota.ops.claim import Claimed
from rota.ops.finish import Finished


class Occupancy:
    """Counts what a child has claimed and not reported yet."""

    def __init__(self, clock: Clock, slots: int) -> None:
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

    def saw(self, verb: str, arguments: tuple[Any, ...], answer: Any) -> None:
        """The child's verb was carried out."""
        match verb:
            case "claim":
                self._took(answer)
            case "finish_and_claim":
                self._ended(arguments[0])
                self._took(answer.claimed)
            case "finish":
                self._ended(arguments[0])
            case "reconcile":
                self._advance()
                self._held.difference_update(id for id, _ in arguments[1])  # The store has given these back.
            case _:
                pass

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
