"""An idle child leaves a claim with its supervisor, which makes it when a hint comes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Self, cast

import pytest

from rota.clock import ManualClock
from rota.domain.claim import Claim
from rota.domain.errors import LeaseLost, StoreUnavailable
from rota.domain.requirement import UNBOUNDED
from rota.domain.status import Status
from rota.engine.async_store import StoreCalls, WorkerCalls
from rota.engine.capacity import Pace
from rota.engine.completer import Completer
from rota.engine.dispatcher import Dispatcher
from rota.engine.port import WorkerStore
from rota.engine.wire import WireClient, WireServer
from rota.ids import LAST_ID
from rota.ops import define, fleet
from rota.ops.claim import FIRST_RANK, Claimed, Mark, just_before
from rota.sdk.app import registry_of
from rota.store.hints import CancelAsked, Hint, Ready
from rota.store.sqlite.store import SqliteStore
from tests.engine.conftest import on_both
from tests.support.waiting import PATIENCE_S
from tests.support.workers import Site
from tests.support.world import RecordingBus, World

LANE, OTHER = 1, 2


class Scene:
    """A child that serves all jobs and has looked up its lanes. The test is its supervisor."""

    def __init__(
        self, world: World, bus: RecordingBus, server: WireServer, client: WireClient, held: list[str]
    ) -> None:
        self.world, self.bus, self.server, self.client, self.held = world, bus, server, client, held
        self.heard: list[Hint] = []
        client.hear = self.heard.extend
        self.may_write = asyncio.Event()
        self.may_write.set()

    def hold_operations(self, calls: StoreCalls) -> None:
        """From now on, operations wait until `may_write` is set. Reads do not wait."""
        transact = calls.transact

        async def late(*args: Any, **kwargs: Any) -> Any:
            await self.may_write.wait()
            return await transact(*args, **kwargs)

        calls.transact = late  # type: ignore[method-assign]

    async def leave(self, slots: int = 10) -> asyncio.Future[Claimed | None]:
        left: asyncio.Future[Claimed | None] = asyncio.ensure_future(self.client.claim_on_hint(slots, UNBOUNDED))
        await until(lambda: self.server._store.has_left_claim)
        return left

    def enqueue(self, count: int = 1) -> tuple[list[str], list[Hint]]:
        """The executions, and the hints about them, which nothing has heard yet."""
        self.world.clock.advance(1)
        self.bus.hints.clear()
        return self.world.enqueue_many(count), list(self.bus.hints)


@contextlib.asynccontextmanager
async def a_child(folder: Path) -> AsyncIterator[Scene]:
    clock, bus = ManualClock(), RecordingBus()
    store = SqliteStore(f"sqlite:///{folder}/rota.db", clock)
    store.bus = bus
    world = World(store, clock)
    world.enqueue()
    ours, theirs = socket.socketpair()
    calls, worker = StoreCalls(store), world.join()
    server = WireServer(WorkerCalls(calls, worker, world.served()))
    await asyncio.get_running_loop().create_unix_connection(lambda: server, sock=ours)
    client, serving = await WireClient.over(theirs), asyncio.create_task(server.serve())
    held = ids(await client.claim(10, None, UNBOUNDED))
    try:
        scene = Scene(world, bus, server, client, held)
        scene.hold_operations(calls)
        yield scene
    finally:
        client.close()
        async with asyncio.timeout(PATIENCE_S):
            await serving
        calls.close()
        store.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)  # sleep: between two checks


def ids(claimed: Claimed | None) -> list[str]:
    assert claimed is not None, "the claim was withdrawn"
    return [one.id for one in claimed.claims]


async def test_a_hint_makes_the_claim_that_a_child_has_left(tmp_path: Path) -> None:
    async with a_child(tmp_path) as scene:
        left = await scene.leave()
        assert not scene.server.is_busy
        came, hints = scene.enqueue(3)
        scene.server.tell(hints)
        assert ids(await left) == came
        assert scene.heard == [], "the child need not hear of it"
        came, hints = scene.enqueue()
        scene.server.tell(hints)
        await until(lambda: scene.heard == hints)
        assert ids(await scene.client.claim(10, None, UNBOUNDED)) == came, "the supervisor has claimed nothing"


async def test_a_claim_of_the_child_withdraws_the_one_that_it_has_left(tmp_path: Path) -> None:
    async with a_child(tmp_path) as scene:
        left = await scene.leave()
        came, hints = scene.enqueue()
        assert ids(await scene.client.claim(10, None, UNBOUNDED)) == came
        assert await left is None
        scene.server.tell(hints)
        await until(lambda: scene.heard == hints)


@pytest.mark.parametrize("reports", [False, True])
async def test_two_claims_of_a_child_take_no_more_together_than_it_has_slots(tmp_path: Path, reports: bool) -> None:
    async with a_child(tmp_path) as scene:
        left = await scene.leave(slots=2)
        came, hints = scene.enqueue(6)
        scene.server.tell(hints)  # The claim begins now; the next call of the child arrives while it is made.
        if reports:
            own = (await scene.client.finish_and_claim([], 3, None, UNBOUNDED)).claimed
        else:
            own = await scene.client.claim(3, None, UNBOUNDED)
        assert (ids(await left), ids(own)) == (came[:2], came[2:3])
        assert own.has_more, "the child has asked for three, so the claim does not look full"


async def test_a_child_that_drains_withdraws_its_claim(tmp_path: Path) -> None:
    async with a_child(tmp_path) as scene:
        left = await scene.leave()
        await scene.client.drain()
        assert await left is None
        came, hints = scene.enqueue()
        scene.server.tell(hints)
        assert {scene.world.status(x) for x in came} == {Status.QUEUED}


async def test_a_claim_with_slots_left_beside_one_that_is_being_made_has_no_more(tmp_path: Path) -> None:
    async with a_child(tmp_path) as scene:
        left = await scene.leave(slots=2)
        came, hints = scene.enqueue(3)
        scene.server.tell(hints)
        own = await scene.client.claim(10, None, UNBOUNDED)
        assert (ids(await left), ids(own), own.has_more) == (came[:2], came[2:], False)


async def test_a_second_claim_that_is_left_withdraws_the_first(tmp_path: Path) -> None:
    """Job code can write to the socket of its process, and leave as many as it likes."""
    async with a_child(tmp_path) as scene:
        first, second = await scene.leave(), await scene.leave()
        assert await first is None
        came, hints = scene.enqueue()
        scene.server.tell(hints)
        assert ids(await second) == came


async def test_a_claim_of_a_child_that_hangs_up_is_withdrawn(tmp_path: Path) -> None:
    async with a_child(tmp_path) as scene:
        await scene.leave()
        # The end of the block waits until nothing of the child is served any more.
    assert not scene.server._store.has_left_claim


@pytest.mark.parametrize(
    "hints",
    [
        [Ready({LANE: 5}, is_look=True)],
        [Ready({LANE: 5, 999: 5})],
        [Ready({LANE: 5}), CancelAsked(1)],
        [CancelAsked(1)],
    ],
    ids=["a look", "an unknown lane", "a cancel beside it", "a cancel"],
)
async def test_a_child_hears_what_it_needs_to_know_itself(tmp_path: Path, hints: list[Hint]) -> None:
    async with a_child(tmp_path) as scene:
        left = await scene.leave()
        scene.server.tell(hints)
        await until(lambda: scene.heard == hints)
        assert scene.server._store.has_left_claim
        left.cancel()


async def test_a_row_whose_hint_was_lost_is_claimed_with_the_next_one_of_its_lane(tmp_path: Path) -> None:
    async with a_child(tmp_path) as scene:
        left = await scene.leave()
        first, _ = scene.enqueue()
        second, hints = scene.enqueue()
        scene.server.tell(hints)
        assert ids(await left) == [*first, *second]


async def test_a_row_below_the_place_that_the_worker_has_reached_is_found(tmp_path: Path) -> None:
    """A row that was committed late, or has a high priority."""
    async with a_child(tmp_path) as scene:
        left = await scene.leave()
        scene.world.clock.advance(1)
        x = scene.world.enqueue(priority=100)
        scene.server.tell(scene.bus.hints[-1:])
        assert ids(await left) == [x]


async def test_a_hint_of_the_lowest_rank_starts_at_the_beginning_of_the_lane(tmp_path: Path) -> None:
    """The resume of a queue sends it, and nothing is below it."""
    async with a_child(tmp_path) as scene:
        left = await scene.leave()
        came, hints = scene.enqueue(2)
        lanes = [lane for hint in hints if isinstance(hint, Ready) for lane in hint.lanes]
        scene.server.tell([Ready(dict.fromkeys(lanes, FIRST_RANK))])
        assert ids(await left) == came
    assert just_before(FIRST_RANK) == (FIRST_RANK, LAST_ID)


async def test_a_claim_that_is_being_made_ends_before_the_child_learns_what_it_holds(tmp_path: Path) -> None:
    """Otherwise the child would give back what the supervisor has just claimed for it."""
    async with a_child(tmp_path) as scene:
        left = await scene.leave()
        came, hints = scene.enqueue()
        scene.may_write.clear()
        scene.server.tell(hints)
        looking = asyncio.ensure_future(scene.client.holds_more(scene.held))
        for _ in range(3):  # Reads that come later have been answered.
            assert await scene.client.cancels() == []
        assert not looking.done()
        scene.may_write.set()
        assert await looking
        assert ids(await left) == came


async def test_a_busy_child_hears_the_hint_itself(tmp_path: Path) -> None:
    """It probably claims next, and can report its outcomes in the same transaction."""
    async with a_child(tmp_path) as scene:
        left = await scene.leave()
        _, hints = scene.enqueue()
        scene.may_write.clear()
        writing = asyncio.ensure_future(scene.client.write_notes([], []))
        await until(lambda: scene.server.is_busy)
        scene.server.tell(hints)
        await until(lambda: scene.heard == hints)
        scene.may_write.set()
        await writing
        left.cancel()


async def test_a_child_hears_that_its_lease_is_lost(tmp_path: Path) -> None:
    async with a_child(tmp_path) as scene:
        left = await scene.leave()
        scene.world.store.transact(fleet.leave, 1)
        _, hints = scene.enqueue()
        scene.server.tell(hints)
        with pytest.raises(LeaseLost):
            await left
        assert not scene.server.is_busy


class Port:
    """Answers claims when the test wants it."""

    def __init__(self) -> None:
        self.claims: list[asyncio.Future[Claimed]] = []
        self.left: list[tuple[int, asyncio.Future[Claimed | None]]] = []

    async def claim(self, _slots: int, _marks: Sequence[Mark] | None, _room: Any) -> Claimed:
        self.claims.append(asyncio.get_running_loop().create_future())
        return await self.claims[-1]

    async def claim_on_hint(self, slots: int, _room: Any) -> Claimed | None:
        self.left.append((slots, asyncio.get_running_loop().create_future()))
        return await self.left[-1][1]

    async def has_ready(self) -> bool:
        return False


class Dispatching:
    """The dispatcher of a worker with five slots."""

    def __init__(self) -> None:
        self.port, self.clock = Port(), ManualClock()
        self.started: list[Claim] = []
        store = cast("WorkerStore", self.port)
        self.dispatcher = Dispatcher(
            store,
            free=lambda: 5 - len(self.started),
            is_idle=lambda: not self.started,
            start=self.started.append,
            outcomes=Completer(store),
            pace=Pace(self.clock, 5),
            poll_s=1000 * PATIENCE_S,
            clock=self.clock,
        )

    async def __aenter__(self) -> Self:
        loops = (self.dispatcher.loop, self.dispatcher.left_claim_loop)
        self._tasks = [asyncio.create_task(loop.run()) for loop in loops]
        await until(lambda: len(self.port.claims) == 1)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def answer(self, *started: str, has_more: bool = False) -> Claimed:
        claims = [Claim(id, LANE, 5, 1, 0, 0, 3, 3, None, "send", "{}", None, 3, 3) for id in started]
        return Claimed(claims, frozenset([LANE, OTHER]), [(LANE, 5, id) for id in started], [OTHER], has_more=has_more)

    async def idle(self) -> None:
        """The first claim has found nothing."""
        self.port.claims[0].set_result(self.answer())
        await until(lambda: len(self.port.left) == 1)

    async def settled(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)


async def test_a_worker_leaves_a_claim_when_its_own_has_found_nothing() -> None:
    async with Dispatching() as worker:
        worker.dispatcher.left_claim_loop.wake.wake()
        await worker.settled()
        assert worker.port.left == [], "its own claim is on its way"
        await worker.idle()
        assert worker.port.left[0][0] == 5


async def test_a_worker_that_runs_an_attempt_leaves_no_claim() -> None:
    """Its job may hold the interpreter, and the executions would wait for it."""
    async with Dispatching() as worker:
        worker.port.claims[0].set_result(worker.answer("x"))
        await until(lambda: len(worker.started) == 1)
        worker.dispatcher.slot_freed()
        await worker.settled()
        assert worker.port.left == []
        worker.started.clear()
        worker.dispatcher.slot_freed()
        await until(lambda: len(worker.port.left) == 1)


async def test_executions_of_a_left_claim_are_started_and_the_next_claim_is_left_after_them() -> None:
    async with Dispatching() as worker:
        await worker.idle()
        worker.port.left[0][1].set_result(worker.answer("x", "y"))
        await until(lambda: [one.id for one in worker.started] == ["x", "y"])
        await worker.settled()
        assert (len(worker.port.claims), len(worker.port.left)) == (1, 1)
        worker.started.clear()
        worker.dispatcher.slot_freed()
        await until(lambda: len(worker.port.left) == 2)


async def test_a_claim_for_another_worker_s_execution_is_left_again() -> None:
    async with Dispatching() as worker:
        await worker.idle()
        worker.port.left[0][1].set_result(worker.answer())
        await until(lambda: len(worker.port.left) == 2)


async def test_a_worker_claims_at_once_if_there_may_be_more() -> None:
    async with Dispatching() as worker:
        await worker.idle()
        worker.port.left[0][1].set_result(worker.answer("x", has_more=True))
        await until(lambda: len(worker.port.claims) == 2)


async def test_a_worker_that_closes_leaves_no_claim() -> None:
    async with Dispatching() as worker:
        await worker.idle()
        worker.dispatcher.close()
        worker.port.left[0][1].set_result(None)
        worker.dispatcher.left_claim_loop.wake.wake()
        await worker.settled()
        assert len(worker.port.left) == 1


async def test_a_worker_whose_left_claim_failed_claims_by_itself() -> None:
    """The supervisor did not pass the hint on to it."""
    async with Dispatching() as worker:
        await worker.idle()
        worker.port.left[0][1].set_exception(StoreUnavailable("busy"))
        await until(lambda: len(worker.port.claims) == 2)
        assert worker.dispatcher.is_in_doubt


async def test_a_worker_claims_again_after_a_claim_that_was_cut_for_the_left_one() -> None:
    async with Dispatching() as worker:
        await worker.idle()
        worker.dispatcher.hear(Ready({LANE: 7}))
        await until(lambda: len(worker.port.claims) == 2)
        worker.port.left[0][1].set_result(worker.answer("a", "b"))
        worker.port.claims[1].set_result(worker.answer("c", "d", "e", has_more=True))  # Cut from five to three.
        await until(lambda: len(worker.started) == 5)
        worker.started.clear()
        worker.dispatcher.slot_freed()
        await until(lambda: len(worker.port.claims) == 3)


@on_both
def test_executions_start_when_their_queue_is_resumed(site: Site) -> None:
    worker, store = site.worker("--processes", "2"), registry_of(site.app).connection.store()
    assert site.enqueue("echo", 0).result(PATIENCE_S) == 0
    for number in range(3):
        store.transact(define.pause_queue, "default", "default", "ann", "")
        x = site.enqueue("echo", number)
        store.transact(define.resume_queue, "default", "default", "ann")
        assert x.result(PATIENCE_S) == number
    assert "out of reach" not in worker.log()


@on_both
def test_a_process_whose_job_blocks_it_gets_no_further_execution(site: Site) -> None:
    """Its event loop stands still, so it could not start what its supervisor claims for it."""
    site.worker("--processes", "2", "--concurrency", "10")
    blocking = site.enqueue("block_loop", PATIENCE_S)
    site.wait_started(blocking)
    for number in range(8):  # The processes take turns at being the first.
        assert site.enqueue("echo", number).result(PATIENCE_S / 3) == number
    assert blocking.status() is Status.RUNNING
