"""Claims executions for free slots: when a hint comes, when a slot becomes free, and at every poll.

An idle worker also leaves a claim with its supervisor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from rota.clock import Clock
from rota.domain.claim import Claim
from rota.domain.claim_order import LAST_RANK
from rota.domain.errors import LeaseLost, StoreUnavailable
from rota.domain.requirement import UNBOUNDED, Room
from rota.engine.capacity import MOST_PER_CLAIM, Pace
from rota.engine.completer import Completer
from rota.engine.loop import Loop, Wake
from rota.engine.port import WorkerStore
from rota.ids import FIRST_ID
from rota.ops import claim
from rota.ops.claim import Claimed
from rota.store.hints import Ready

TRUST = 3
"""For how many polls a child trusts the supervisor's last look."""
SWEEP_S = 1.0
LONGEST_SWEEP_S = 10.0
SWEEP_SHARE = 20
"""The next sweep comes after this many times the duration of the last one."""


class Dispatcher:
    """Keeps the slots of one worker filled."""

    def __init__(
        self,
        store: WorkerStore,
        *,
        free: Callable[[], int],
        is_idle: Callable[[], bool],
        start: Callable[[Claim], None],
        outcomes: Completer,
        pace: Pace,
        poll_s: float,
        clock: Clock,
        room: Callable[[], Room] = lambda: UNBOUNDED,
    ) -> None:
        """`is_idle` says whether the worker has no attempt, and no outcome to write. `room` says for how many more jobs
        there are processes, where that bounds them."""
        self._store = store
        self._clock = clock
        self._free, self._start, self._room = free, start, room
        self._is_idle = is_idle
        self._outcomes = outcomes
        self._pace = pace
        self._poll_s = poll_s
        self._expects_work = True
        self._was_full = False
        self._is_open = True
        self.claiming_since: float | None = None
        """When this process sent its own claim that is still unanswered. Does not cover the left claim."""
        self.is_in_doubt = False
        """Whether the reply to a claim was lost, so that we may hold executions that we do not know."""
        self._disowned: set[tuple[str, int]] = set()
        self._marks: dict[int, tuple[int, str]] = {}
        """The lanes that this worker claims from, and how far it has come in each."""
        self._busy: set[int] = set()
        """The lanes of `_marks` that may have work, by hints and the last claims. Only a sweep reads the others."""
        self._foreign: set[int] = set()
        """Lanes of other jobs, apps and queues, and those whose needs this worker does not meet."""
        self._unknown: set[int] = set()
        """Lanes in hints that may be ours: the next claim looks up all lanes."""
        self._heard: dict[int, int] = {}
        self._look_at = 0.0
        self._sweep_at = 0.0
        self._sweep_again_at = 0.0
        self._enough = Wake()
        self._missing = 0
        """How many slots must become free before a claim can be worthwhile."""
        self.loop = Loop("dispatcher", self.step)
        self.left_claim_loop = Loop("left claim", self._leave_claim)

    def hear(self, hint: Ready) -> None:
        if hint.is_look:
            self._look_at = self._clock.monotonic() + TRUST * self._poll_s
        is_ours = False
        for lane, rank in hint.lanes.items():
            if lane in self._foreign:
                continue
            is_ours = True
            self._heard[lane] = min(rank, self._heard.get(lane, rank))
            mark = self._marks.get(lane)
            if mark is None:
                self._unknown.add(lane)
                continue
            self._busy.add(lane)
            if mark[0] >= rank:
                # Moves the mark back to just before the new row, not to the start.
                self._marks[lane] = claim.just_before(rank)
        if is_ours:
            self._expects_work = True
            self.loop.wake.wake()

    def slot_freed(self) -> None:
        if self._outcomes.claim_is_near:
            # The end of a step may start steps of any job, so every lane may have new rows. This also holds while a
            # claim is in flight.
            self._expects_work = True
            self._busy.update(self._marks)
            self._heard = dict.fromkeys(self._marks, LAST_RANK) | self._heard
        if self._expects_work:
            self.loop.wake.wake()
            self._missing -= 1
            if self._missing <= 0 and self._enough.is_awaited and self._free() >= self._pace.worthwhile:
                self._enough.wake()
        elif self._is_idle():
            self.left_claim_loop.wake.wake()

    def close(self) -> None:
        """No more claims."""
        self._is_open = False

    def disown(self, attempts: Iterable[tuple[str, int]]) -> None:
        """These (id, fence) are being given back. If the reply to a claim still brings them, they are not started."""
        self._disowned.update(attempts)

    async def step(self) -> float | None:
        if not self._is_open:
            return None
        self._missing = self._pace.worthwhile - self._free()
        if self._was_full and self._missing > 0:
            # Slots become free one by one: a short wait turns many small claims into one.
            await self._enough.sleep(self._pace.gather_s)
        self._pace.measure(self._free())
        if self._free() <= 0:
            return self._poll_s
        if not self._expects_work and not await self._finds_work():
            self.left_claim_loop.wake.wake()
            return self._poll_s
        async with self._outcomes.turn_to_claim():
            # While this step waited, slots may have become free, or the worker may have begun to drain.
            free = min(self._free(), MOST_PER_CLAIM)
            if free <= 0 or not self._is_open:
                return self._poll_s
            self._expects_work = False
            self._disowned.clear()
            taken = await self._claim(free)
        if not self._take(taken, free):
            self.left_claim_loop.wake.wake()
        return 0 if self._was_full and self._free() > 0 else self._poll_s

    async def _leave_claim(self) -> float | None:
        """Leaves a claim with the supervisor (`left_claim.py`), only if no attempt runs and no work is expected.

        A running job may hold the interpreter, and the executions of the claim would wait for it. The claim asks for
        free slots only, without prefetching: the measured rate of attempts may be out of date when the hint comes.
        """
        slots = min(self._free() - self._pace.ahead, MOST_PER_CLAIM)
        is_idle = self._is_idle() and self.claiming_since is None and not self._expects_work
        if slots <= 0 or not is_idle or not self._is_open:
            return None
        try:
            taken = await self._store.claim_on_hint(slots, self._room())
        except BaseException:
            self.is_in_doubt = True
            self._expect_work_anywhere()  # The supervisor did not pass the hint on to this process.
            raise
        if taken is None:
            return None
        self._set_marks(taken)
        if self._take(taken, slots):
            self._expect_work_anywhere()
        return 0

    def _expect_work_anywhere(self) -> None:
        self._expects_work = True
        self._busy.update(self._marks)
        self.loop.wake.wake()

    def _take(self, taken: Claimed, slots: int) -> bool:
        """Starts the executions of a claim that asked for `slots`. Returns whether to expect more work."""
        for attempt in taken.claims:
            if not self._disowned or (attempt.id, attempt.fence) not in self._disowned:
                self._start(attempt)
        self._was_full = len(taken.claims) == slots or taken.has_more
        self._expects_work = self._expects_work or self._was_full or taken.has_no_room
        return self._expects_work

    async def _finds_work(self) -> bool:
        """Checks for ready rows with a plain read. Skipped while the supervisor's looks are recent."""
        if self._clock.monotonic() < self._look_at:
            return False
        return await self._store.has_ready()

    async def _claim(self, free: int) -> Claimed:
        """Claims from behind the marks. Sweeps from the start once in a while, and when the marks bring nothing.

        A sweep finds rows below the marks that came back or were committed late, without a hint. Dead rows that are not
        vacuumed make it slow, so the interval grows with the duration of the last sweep.
        """
        is_sweep = not self._marks or bool(self._unknown) or self._clock.monotonic() >= self._sweep_at
        taken = await self._ask(free, is_sweep)
        if not taken.claims and not is_sweep and self._clock.monotonic() >= self._sweep_again_at:
            taken = await self._ask(free, is_sweep=True)
        return taken

    async def _ask(self, free: int, is_sweep: bool) -> Claimed:
        asked_at = self._clock.monotonic()
        marks = None if is_sweep else [(lane, *self._marks[lane]) for lane in self._busy or self._marks]
        unknown = set(self._unknown)
        self._heard.clear()
        taken = await self._transact(free, marks)
        if taken.lanes is not None:
            self._learn(taken.lanes, unknown)
        if is_sweep:
            now = self._clock.monotonic()
            self._sweep_again_at = now + SWEEP_SHARE * (now - asked_at)
            self._sweep_at = max(now + SWEEP_S, min(self._sweep_again_at, now + LONGEST_SWEEP_S))
        self._set_marks(taken)
        return taken

    def _set_marks(self, taken: Claimed) -> None:
        self._busy.difference_update([lane for lane in taken.empty if lane not in self._heard])
        for lane, rank, id in taken.marks:
            # A hint that came meanwhile may name a row below the mark which the claim has not seen.
            heard = self._heard.get(lane, LAST_RANK)
            self._marks[lane] = (rank, id) if heard > rank else claim.just_before(heard)

    async def _transact(self, free: int, marks: list[claim.Mark] | None) -> Claimed:
        """Claims, and writes the outcomes that wait in the same transaction."""
        reports = self._outcomes.lend()
        self.claiming_since = self._clock.monotonic()
        try:
            if not reports:
                return await self._store.claim(free, marks, self._room())
            turned = await self._store.finish_and_claim(reports, free, marks, self._room())
        except (StoreUnavailable, LeaseLost, asyncio.CancelledError):
            self._outcomes.take_back(None)
            self.is_in_doubt = True
            raise
        except Exception:
            # One of the outcomes cannot be written: the completer finds out which, and we claim again.
            self._outcomes.take_back(None, refused=True)
            self.is_in_doubt = True
            if not reports:
                raise
            return Claimed([], has_no_room=True)
        finally:
            self.claiming_since = None
        self._outcomes.take_back(turned.stale)
        return turned.claimed

    def _learn(self, lanes: frozenset[int], unknown: set[int]) -> None:
        """A claim has looked up the lanes of this worker. Unknown lanes of earlier hints are among them, or foreign."""
        for lane in lanes - self._marks.keys():
            self._marks[lane] = (claim.FIRST_RANK, FIRST_ID)
        self._busy = set(lanes)
        self._foreign = (self._foreign | unknown) - lanes
        self._unknown -= unknown | lanes
