"""How soon busy workers learn of a new row that ranks before those that they claim."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from rota.clock import SystemClock
from rota.domain.headcount import Headcount
from rota.domain.served import Served
from rota.engine.capacity import MOST_AT_ONCE, Pace
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

    async def claim(self, _served: Any, slots: int, marks: Sequence[Mark] | None, _room: Any) -> Claimed:
        self.asked.append(marks)
        self.slots = slots
        return Claimed([], frozenset([LANE]) if marks is None else None, [MARK])


def dispatcher_of(store: Store, outcomes: Completer, free: int) -> Dispatcher:
    clock = SystemClock()
    return Dispatcher(
        cast("WorkerStore", store),
        Served.of(["default"], "app", None, ["job"]),
        free=lambda: free,
        start=lambda _: None,
        outcomes=outcomes,
        pace=Pace(clock, free),
        poll_s=PATIENCE_S,
        clock=clock,
    )


async def test_a_claim_that_waits_for_its_turn_finds_a_row_that_came_meanwhile() -> None:
    store = Store()
    outcomes = Completer(cast("WorkerStore", store))
    dispatcher = dispatcher_of(store, outcomes, free=1)
    await dispatcher.step()
    dispatcher.hear(Ready({LANE: 200}))
    async with asyncio.timeout(PATIENCE_S):
        async with outcomes.turn:
            claiming = asyncio.create_task(dispatcher.step())
            for _ in range(10):
                await asyncio.sleep(0)  # The claim begins to wait.
            assert len(store.asked) == 1
            dispatcher.hear(NEWS[0])
        await claiming
    assert store.asked[0] is None
    assert store.asked[1] is not None
    ((lane, rank, _id),) = store.asked[1]
    assert (lane, rank) == (LANE, 6)


async def test_a_claim_is_bounded_so_that_a_new_row_does_not_wait_for_a_long_one() -> None:
    store = Store()
    await dispatcher_of(store, Completer(cast("WorkerStore", store)), free=4 * MOST_AT_ONCE).step()
    assert store.slots == MOST_AT_ONCE


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
    children = [Listening(is_busy=busy) for busy in (True, False, False, True)]
    supervisor = supervisor_of(*children)
    supervisor._hear(list(NEWS))
    assert [child.heard for child in children] == [NEWS, NEWS, [], NEWS]
    async with asyncio.timeout(PATIENCE_S):
        while not children[2].heard:  # noqa: ASYNC110
            await asyncio.sleep(0.001)  # sleep: between two checks
    assert [child.heard for child in children] == [NEWS] * 4


async def test_a_cancel_reaches_all_children_at_once() -> None:
    children = [Listening(is_busy=False) for _ in range(3)]
    supervisor_of(*children)._hear([CancelAsked(1)])
    assert [child.heard for child in children] == [[CancelAsked(1)]] * 3
