"""Heartbeats that cannot be written: the log says why a lease was lost, and no other worker is declared dead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from rota.clock import ManualClock
from rota.domain.errors import StoreUnavailable
from rota.domain.served import Served
from rota.engine.async_store import SupervisorCalls
from rota.engine.heart import CHECKS_PER_LEASE, Heart
from rota.engine.upkeep import Upkeep
from rota.ops import fleet, upkeep

LEASE_S = 10.0


class Fake:
    """Stands for the store: heartbeats succeed, unless there is a problem."""

    def __init__(self, clock: ManualClock) -> None:
        self.problem = ""
        self._clock = clock
        self.is_free = asyncio.Event()
        self.is_free.set()
        """Whether the write lock is."""
        self.commits = 7
        self.calls: list[Callable[..., Any]] = []

    async def transact(self, op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.problem:
            raise StoreUnavailable(self.problem)
        await self.is_free.wait()
        self.calls.append(op)
        return dict.fromkeys(args[0], "active") if op is fleet.beat else fleet.Death()

    async def timed(self, op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The store begins an operation when it has the lock, and commits at once."""
        sent_at = self._clock.monotonic()
        answer = await self.transact(op, *args, **kwargs)
        return answer, self._clock.monotonic() - sent_at

    async def read(self, query: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return upkeep.Chores(ManualClock().now(), None, None, dead_workers=True)


class OneLock(SupervisorCalls):
    """A store with one write lock for all processes."""

    def __init__(self, fake: Fake, clock: ManualClock) -> None:
        super().__init__(fake, clock)
        self._fake = fake

    async def commits(self) -> int | None:
        return self._fake.commits


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def test_the_log_explains_a_lost_lease_by_the_failed_heartbeats(clock: ManualClock) -> None:
    bridge, lost, said = Fake(clock), list[tuple[int, str]](), list[str]()
    heart = Heart(SupervisorCalls(bridge, clock), clock, LEASE_S, lambda *one: lost.append(one), failing=said.append)
    heart.add(7, clock.monotonic())
    await heart.step()
    bridge.problem = "the disk has\nno room left"
    with pytest.raises(StoreUnavailable):
        await heart.step()
    await heart.check()
    await heart.check()
    assert said == ["the disk has no room left"]
    assert not heart.is_over(7)
    clock.advance(LEASE_S)
    assert heart.is_over(7)
    await heart.check()
    assert lost == [(7, "the disk has no room left")]


async def test_the_log_says_that_a_lease_expired_while_the_supervisor_was_stopped(clock: ManualClock) -> None:
    lost = list[tuple[int, str]]()
    heart = Heart(SupervisorCalls(Fake(clock), clock), clock, LEASE_S, lambda *one: lost.append(one))
    heart.add(7, clock.monotonic())
    clock.advance(LEASE_S)
    await heart.check()
    assert lost == [(7, "the supervisor was stopped, or had no processor")]


async def test_no_worker_is_declared_dead_before_live_workers_could_renew_their_leases(clock: ManualClock) -> None:
    """After an outage all leases have expired. One lease later it is known which processes have really ended."""
    bridge = Fake(clock)
    heart = Heart(SupervisorCalls(bridge, clock), clock, LEASE_S, lambda worker, why: None)
    served = Served.one("default", "shop", None, [])
    chores = Upkeep(
        SupervisorCalls(bridge, clock),
        clock,
        LEASE_S,
        1.0,
        served=served,
        found=lambda lanes: None,
        ours=list,
        steady_s=heart.steady_s,
    )
    heart.add(7, clock.monotonic())

    async def pass_a_quarter() -> None:
        clock.advance(LEASE_S / 4)
        await heart.step()
        await chores.step()

    await chores.step()
    for _ in range(4):
        await pass_a_quarter()
    assert bridge.calls.count(upkeep.rescue) == 1
    bridge.problem = "no room left"
    with pytest.raises(StoreUnavailable):
        await heart.step()
    bridge.problem = ""
    for _ in range(4):
        await pass_a_quarter()
    assert bridge.calls.count(upkeep.rescue) == 1
    await pass_a_quarter()
    assert bridge.calls.count(upkeep.rescue) == 2


@pytest.fixture
async def locked(clock: ManualClock) -> AsyncIterator[tuple[Fake, Heart, list[int]]]:
    """A heart whose beat has begun to wait for the write lock, and the workers that have lost their lease."""
    bridge, lost = Fake(clock), list[int]()
    heart = Heart(OneLock(bridge, clock), clock, LEASE_S, lambda worker, why: lost.append(worker))
    heart.add(7, clock.monotonic())
    clock.advance(LEASE_S / 4)
    bridge.is_free.clear()
    beat = asyncio.create_task(heart.step())
    await asyncio.sleep(0)
    yield bridge, heart, lost
    bridge.is_free.set()
    await beat


async def pass_time(clock: ManualClock, heart: Heart, leases: float) -> None:
    for _ in range(round(leases * CHECKS_PER_LEASE)):
        clock.advance(LEASE_S / CHECKS_PER_LEASE)
        await heart.check()


async def test_leases_hold_while_no_process_can_write(
    clock: ManualClock, locked: tuple[Fake, Heart, list[int]]
) -> None:
    bridge, heart, lost = locked
    await pass_time(clock, heart, 3)
    assert lost == []
    assert not heart.is_over(7)
    # Nor does this supervisor declare others dead, until a lease after its next heartbeat was acknowledged.
    assert heart.steady_s() == 0
    bridge.is_free.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert heart.steady_s() == 0
    clock.advance(LEASE_S / 4)
    assert heart.steady_s() == LEASE_S / 4


async def test_waiting_for_the_write_lock_does_not_shorten_a_lease(
    clock: ManualClock, locked: tuple[Fake, Heart, list[int]]
) -> None:
    bridge, heart, lost = locked
    clock.advance(LEASE_S / 2)
    bridge.is_free.set()
    for _ in range(3):
        await asyncio.sleep(0)
    clock.advance(0.85 * LEASE_S)
    await heart.check()
    assert lost == []


async def test_the_time_without_commits_counts_from_the_last_commit_not_from_the_heartbeat(clock: ManualClock) -> None:
    """So a supervisor notices early enough, even if its checks are late."""
    bridge, renewed = Fake(clock), list[float]()
    heart = Heart(
        OneLock(bridge, clock),
        clock,
        LEASE_S,
        lambda worker, why: None,
        renewed=lambda worker, until: renewed.append(until),
    )
    heart.add(7, clock.monotonic())
    await heart.check()
    await pass_time(clock, heart, 0.25)
    bridge.is_free.clear()
    beat = asyncio.create_task(heart.step())
    await asyncio.sleep(0)
    await pass_time(clock, heart, 0.25)
    assert renewed == []
    await pass_time(clock, heart, 1 / CHECKS_PER_LEASE)
    assert renewed == [pytest.approx(clock.monotonic() + 0.9 * LEASE_S)]
    bridge.is_free.set()
    await beat


async def test_a_slow_heartbeat_is_followed_at_once_by_the_next(clock: ManualClock) -> None:
    bridge = Fake(clock)
    bridge.timed = _commits_late(clock, 0.3 * LEASE_S)  # type: ignore[method-assign]
    heart = Heart(SupervisorCalls(bridge, clock), clock, LEASE_S, lambda worker, why: None)
    heart.add(7, clock.monotonic())
    assert await heart.step() == 0


def _commits_late(clock: ManualClock, seconds: float) -> Callable[..., Any]:
    async def timed(op: Callable[..., Any], *args: Any) -> Any:
        clock.advance(seconds)
        return dict.fromkeys(args[0], "active"), 0.0

    return timed


async def test_a_lease_is_lost_if_others_write_but_its_heartbeat_is_not_acknowledged(
    clock: ManualClock, locked: tuple[Fake, Heart, list[int]]
) -> None:
    bridge, heart, lost = locked
    for _ in range(13):
        assert lost == []
        bridge.commits += 1
        await pass_time(clock, heart, 1 / CHECKS_PER_LEASE)
    assert lost == [7]


async def test_an_expired_lease_is_not_renewed(clock: ManualClock, locked: tuple[Fake, Heart, list[int]]) -> None:
    _, heart, lost = locked
    clock.advance(LEASE_S)
    await heart.check()
    assert lost == [7]


async def test_a_process_that_has_just_joined_has_seen_no_heartbeats_of_others(clock: ManualClock) -> None:
    """Its own wait to join, however long, says nothing about the leases of others."""
    heart = Heart(SupervisorCalls(Fake(clock), clock), clock, LEASE_S, lambda worker, why: None)
    asked_at = clock.monotonic()
    clock.advance(2 * LEASE_S)
    heart.add(7, asked_at)
    assert heart.steady_s() == 0
