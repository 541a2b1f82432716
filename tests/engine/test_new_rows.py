"""How soon busy workers learn of a new row that ranks before those that they claim."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, cast

from rota.clock import ManualClock, SystemClock
from rota.domain.headcount import Headcount
from rota.engine.capacity import MOST_PER_CLAIM, Pace
from rota.engine.completer import Completer
from rota.engine.dispatcher import Dispatcher
from rota.engine.host import Child, Host
from rota.engine.port import WorkerStore
from rota.engine.supervisor import Supervisor
from rota.engine.worker_settings import WorkerSettings
from rota.ops.claim import Claimed, Mark
from rota.store.hints import CancelAsked, Hint, Ready
from tests.support.waiting import PATIENCE_S

LANE, MARK = 1, (1, 100, "last")
NEWS = [Ready({LANE: 7})]


class Store:
    """Says that lane 1 was claimed up to rank 100."""

    def __init__(self) -> None:
        self.asked: list[Sequence[Mark] | None] = []
        self.slots = 0

    async def claim(self, slots: int, marks: Sequence[Mark] | None, _room: Any) -> Claimed:
        self.asked.append(marks)
        self.slots = slots
        return Claimed([], frozenset([LANE]) if marks is None else None, [MARK])


def dispatcher_of(store: Store, outcomes: Completer, free: Callable[[], int]) -> Dispatcher:
    clock = ManualClock()  # No time passes, so only the first claim is a sweep.
    return Dispatcher(
        cast("WorkerStore", store),
        free=free,
        is_idle=lambda: True,
        start=lambda _: None,
        outcomes=outcomes,
        pace=Pace(clock, free()),
        poll_s=PATIENCE_S,
        clock=clock,
    )


class Waiting:
    """A dispatcher that has claimed once, and whose next claim waits for its turn."""

    def __init__(self) -> None:
        self.store = Store()
        self.free = 1
        self._outcomes = Completer(cast("WorkerStore", self.store))
        self.dispatcher = dispatcher_of(self.store, self._outcomes, lambda: self.free)

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """The claim has its turn when the block ends, and its answer afterwards."""
        await self.dispatcher.step()
        assert self.store.asked == [None]
        self.dispatcher.hear(Ready({LANE: 200}))
        async with asyncio.timeout(PATIENCE_S):
            async with self._outcomes.turn_to_claim():
                claiming = asyncio.create_task(self.dispatcher.step())
                for _ in range(10):
                    await asyncio.sleep(0)  # The claim begins to wait.
                assert len(self.store.asked) == 1
                yield
            await claiming


async def test_a_claim_that_waits_for_its_turn_finds_a_row_that_came_meanwhile() -> None:
    waiting = Waiting()
    async with waiting.turn():
        waiting.dispatcher.hear(NEWS[0])
    marks = waiting.store.asked[1]
    assert marks is not None
    ((lane, rank, _id),) = marks
    assert (lane, rank) == (LANE, 6)


async def test_a_claim_that_waits_for_its_turn_is_for_the_slots_that_became_free_meanwhile() -> None:
    waiting = Waiting()
    async with waiting.turn():
        waiting.free = 7
    assert waiting.store.slots == 7


async def test_a_worker_that_drains_does_not_claim_when_it_gets_its_turn() -> None:
    waiting = Waiting()
    async with waiting.turn():
        waiting.dispatcher.close()
    assert len(waiting.store.asked) == 1


async def test_a_claim_is_bounded_so_that_a_new_row_does_not_wait_for_a_long_one() -> None:
    store = Store()
    await dispatcher_of(store, Completer(cast("WorkerStore", store)), lambda: 4 * MOST_PER_CLAIM).step()
    assert store.slots == MOST_PER_CLAIM


class Listening:
    """A child that keeps the hints it gets."""

    def __init__(self, *, is_busy: bool) -> None:
        self.is_busy = is_busy
        self.heard: list[Hint] = []

    def tell(self, hints: Sequence[Hint]) -> None:
        self.heard += hints


def supervisor_of(*children: Listening) -> Supervisor:
    settings = WorkerSettings(
        command=(),
        processes=Headcount(len(children), len(children)),
        queues=None,
        concurrency=1,
        lease_s=60,
        poll_s=1,
        grace_s=1,
        version="",
    )

    async def connect(_url: str) -> Any:
        raise AssertionError("nothing here needs a store")

    supervisor = Supervisor(settings, SystemClock(), cast("Host", None), connect)
    supervisor._children = {number: cast("Child", child) for number, child in enumerate(children)}
    return supervisor


async def test_hints_reach_busy_children_and_one_idle_child_at_once() -> None:
    busy, idle = [Listening(is_busy=True) for _ in range(3)], [Listening(is_busy=False) for _ in range(2)]
    supervisor = supervisor_of(*busy, *idle)
    firsts = []
    for _ in range(5):
        supervisor._hear(list(NEWS))
        assert [child.heard for child in busy] == [NEWS] * 3
        firsts += [number for number, child in enumerate(idle) if child.heard]
        async with asyncio.timeout(PATIENCE_S):
            while not all(child.heard for child in idle):  # noqa: ASYNC110
                await asyncio.sleep(0.001)  # sleep: between two checks
        for child in (*busy, *idle):
            assert child.heard == NEWS
            child.heard.clear()
    assert firsts in ([0, 1, 0, 1, 0], [1, 0, 1, 0, 1])


async def test_a_cancel_reaches_all_children_at_once() -> None:
    children = [Listening(is_busy=False) for _ in range(3)]
    supervisor_of(*children)._hear([CancelAsked(1)])
    assert [child.heard for child in children] == [[CancelAsked(1)]] * 3
