"""The seats for children under one supervisor: it adds seats under load, and removes them when it is quiet."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from rota.clock import Clock
from rota.domain.errors import StoreError
from rota.domain.headcount import Headcount
from rota.engine import autoscale
from rota.engine.autoscale import Load, Mood
from rota.engine.wire import Saw
from rota.ops.claim import Claimed
from rota.ops.finish import Finished

log = logging.getLogger("rota.engine")

LOOK_SHARE = 20
"""The next look at the store comes after this many times the duration of the last one."""


def _unseen(verb: str, arguments: tuple[Any, ...], answer: Any) -> None:
    """For a fixed number of processes, which needs no count."""


class Occupancy:
    """How many executions a child has claimed and not reported yet.

    Every claim and every report of the child passes through its supervisor, so the supervisor need not ask the database
    or the child, whose user code may keep it from answering.
    """

    def __init__(self, clock: Clock, concurrency: int) -> None:
        self._clock = clock
        self._concurrency = concurrency
        self._held: set[str] = set()
        self._looked_at = self._changed_at = clock.monotonic()
        self._slot_seconds = 0.0
        self._has_no_room = False

    @property
    def is_idle(self) -> bool:
        return not self._held

    def used(self) -> float:
        """Slots in use since the last call: on average, or now if those are more.

        Counts all slots as used if its running attempts use up a resource that the next executions need.
        """
        self._advance()
        passed_s = self._changed_at - self._looked_at
        mean = self._slot_seconds / passed_s if passed_s > 0 else 0.0
        self._looked_at, self._slot_seconds = self._changed_at, 0.0
        return self._concurrency if self._has_no_room and self._held else max(mean, self._busy)

    def saw(self, verb: str, arguments: tuple[Any, ...], answer: Any) -> None:
        """The child's verb was carried out."""
        match verb:
            case "claim":
                self._took(answer)
            case "claim_on_hint":
                if answer is not None:
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
        """The slots in use. Prefetched executions wait for a slot, and do not count."""
        return min(len(self._held), self._concurrency)


class Crew:
    """Keeps as many seats filled as the load asks for, between the least and the most that are allowed.

    `fill` runs one child after the other in a seat. `has_work` asks the store whether there is
    work for one more child, and is called only while all are full. `let_go` asks a worker to finish its attempts and
    end.
    """

    def __init__(
        self,
        allowed: Headcount,
        concurrency: int,
        quiet_s: float,
        clock: Clock,
        *,
        fill: Callable[[], Coroutine[Any, Any, None]],
        has_work: Callable[[], Awaitable[bool]],
        let_go: Callable[[int], None],
    ) -> None:
        self._allowed = allowed
        self._concurrency = concurrency
        self._quiet_s = quiet_s
        self._clock = clock
        self._fill, self._has_work, self._let_go = fill, has_work, let_go
        self._mood = Mood()
        self._ask_at = 0.0
        self._had_work = False
        self._leaving = 0
        self._is_closed = False
        self.seats: set[asyncio.Task[None]] = set()
        self._workers: dict[int, Occupancy] = {}

    async def run(self) -> None:
        """Runs until no seat is left. Raises the error of a seat."""
        for _ in range(self._allowed.least):
            self._add_seat()
        look_s = None if self._allowed.is_fixed else autoscale.LOOK_S
        while self.seats:
            done, _ = await asyncio.wait(self.seats, timeout=look_s, return_when=asyncio.FIRST_COMPLETED)
            self.seats -= done
            for seat in done:
                seat.result()
            if not self._allowed.is_fixed and self.seats and not self._is_closed:
                await self._resize()

    def close(self) -> None:
        """Starts and removes no more children."""
        self._is_closed = True

    def enter(self, worker: int) -> Saw:
        """Returns the function to call with each verb of the worker: it counts the executions that the worker holds."""
        occupancy = self._workers[worker] = Occupancy(self._clock, self._concurrency)
        return _unseen if self._allowed.is_fixed else occupancy.saw

    def leave(self, worker: int) -> None:
        """The worker takes no more executions, or has ended."""
        self._workers.pop(worker, None)

    def dismiss(self, worker: int) -> None:
        """An operator has asked the worker to drain: its seat is removed."""
        if worker in self._workers:
            self.leave(worker)
            self._leaving += 1
            self._allowed = self._allowed.without_one

    def gone(self) -> None:
        """The seat of a worker that was let go, or dismissed, has ended."""
        self._leaving -= 1

    def _add_seat(self) -> None:
        self.seats.add(asyncio.create_task(self._fill(), name="seat"))

    async def _resize(self) -> None:
        load = await self._load()
        if self._is_closed or not load.processes:  # All workers were dismissed.
            return
        self._mood, wanted = autoscale.decide(self._mood, load, self._clock.monotonic(), self._allowed, self._quiet_s)
        if wanted > load.processes and len(self.seats) < self._allowed.most:
            log.info("work waits and all processes are full (%d): starting one more", load.processes)
            self._add_seat()
        elif wanted < load.processes and (idle := [worker for worker, one in self._workers.items() if one.is_idle]):
            worker = max(idle)  # The youngest: the others have warmer caches.
            log.info("fewer processes are enough (%d): letting worker %d go", wanted, worker)
            self.leave(worker)
            self._leaving += 1
            self._let_go(worker)

    async def _load(self) -> Load:
        used = [one.used() for one in self._workers.values()]
        processes = len(self.seats) - self._leaving
        are_there = len(used) == processes  # No child is starting.
        has_idle = are_there and any(one.is_idle for one in self._workers.values())
        are_full = are_there and min(used) >= autoscale.FULL * self._concurrency
        is_pressed = are_full and processes < self._allowed.most and await self._is_wanted()
        return Load(
            processes=processes, slots=self._concurrency, used=sum(used), is_pressed=is_pressed, has_idle=has_idle
        )

    async def _is_wanted(self) -> bool:
        """Whether the store has work for one more child. A slow answer is kept for longer."""
        asked_at = self._clock.monotonic()
        if asked_at >= self._ask_at:
            try:
                self._had_work = await self._has_work()
            except StoreError:
                self._had_work = False  # The store is out of reach, so no child could claim either.
            now = self._clock.monotonic()
            self._ask_at = now + LOOK_SHARE * (now - asked_at) - autoscale.LOOK_S
        return self._had_work
