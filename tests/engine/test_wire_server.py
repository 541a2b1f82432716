"""Job code that uses the socket of its process cannot affect other workers and their executions."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from rota.clock import ManualClock
from rota.domain.note import Piece, State
from rota.domain.outcome import Succeeded
from rota.domain.requirement import UNBOUNDED
from rota.domain.served import Served
from rota.domain.status import Status
from rota.engine import wire
from rota.engine.async_store import StoreCalls, WorkerCalls
from rota.engine.wire import WireClient, WireServer
from rota.ids import FIRST_ID
from rota.ops import claim
from rota.ops.finish import Finished
from rota.store import reader
from rota.store.sqlite.store import SqliteStore
from tests.support.world import NAMESPACE, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    clock = ManualClock()
    store = SqliteStore(f"sqlite:///{tmp_path}/rota.db", clock)
    yield World(store, clock)
    store.close()


@contextlib.asynccontextmanager
async def child(world: World, worker: int, served: Served | None = None) -> AsyncIterator[WireClient]:
    """The connection to the store that a child has after it has announced itself as this worker."""
    ours, theirs = socket.socketpair()
    calls = StoreCalls(world.store)
    server = WireServer(WorkerCalls(calls, worker, served or world.served()))
    await asyncio.get_running_loop().create_unix_connection(lambda: server, sock=ours)
    serving = asyncio.create_task(server.serve())
    client = await WireClient.over(theirs)
    try:
        yield client
    finally:
        client.close()
        await serving
        calls.close()


async def test_a_forged_report_does_not_end_the_execution_of_another_worker(world: World) -> None:
    _, attempt = world.start()
    forger = world.join(name="forger")
    report = [Finished(attempt.id, attempt.fence, Succeeded('"forged"'))]
    piece, state = Piece(attempt.id, attempt.fence, 1, 1, '[[0,"log",["forged"]]]'), State(attempt.id, attempt.fence, 1)
    async with child(world, forger) as store:
        assert await store.finish(report) == [attempt.id]
        assert (await store.finish_and_claim(report, 1, [], UNBOUNDED)).stale == [attempt.id]
        assert await store.write_notes([piece], [state]) == [attempt.id]
    assert world.status(attempt.id) is Status.RUNNING


async def test_no_verb_of_a_child_touches_another_worker(world: World) -> None:
    victim, attempt = world.start()
    forger = world.join(name="forger")
    async with child(world, forger) as store:
        assert (await store.claim(1, [], UNBOUNDED)).claims == []
        assert await store.reconcile([], [(attempt.id, attempt.fence)]) == []
        assert await store.cancels() == []
        assert not await store.holds_more([])
        await store.drain()
    states = {row.id: row.state for row in world.store.read(reader.workers, NAMESPACE, 0)}
    assert (states[forger], states[victim]) == ("draining", "live")
    assert world.status(attempt.id) is Status.RUNNING


async def test_a_forged_mark_does_not_claim_from_a_lane_that_the_worker_does_not_serve(world: World) -> None:
    """The lane of an execution is a small number, so job code can guess it."""
    _, attempt = world.start()
    x = world.enqueue()
    forger = world.join(name="forger", jobs=[])
    mark = (attempt.lane, claim.FIRST_RANK, FIRST_ID)
    async with child(world, forger, world.served(jobs=[])) as store:
        assert (await store.claim(1, None, UNBOUNDED)).claims == []
        assert (await store.claim(1, [mark], UNBOUNDED)).claims == []
        assert (await store.finish_and_claim([], 1, [mark], UNBOUNDED)).claimed.claims == []
    assert world.status(x) is Status.QUEUED
    async with child(world, world.join(), world.served()) as store:
        assert [one.id for one in (await store.claim(1, None, UNBOUNDED)).claims] == [x]
        later = world.enqueue()
        assert [one.id for one in (await store.claim(1, [mark], UNBOUNDED)).claims] == [later]


async def test_a_call_with_too_many_arguments_is_refused(world: World) -> None:
    victim, _ = world.start()
    forger = world.join(name="forger")
    ours, theirs = socket.socketpair()
    server = WireServer(WorkerCalls(StoreCalls(world.store), forger, world.served()))
    await asyncio.get_running_loop().create_unix_connection(lambda: server, sock=ours)
    serving = asyncio.create_task(server.serve())
    theirs.sendall(wire.call(1, "drain", (victim,)))
    theirs.setblocking(False)
    assert await asyncio.get_running_loop().sock_recv(theirs, 1) == b"", "the supervisor hangs up"
    theirs.close()
    await serving
