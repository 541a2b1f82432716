"""A child that retires after a scale-down: it claims no more, and its executions have all the time they need."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota import App, Handle, Status
from rota.clock import SystemClock
from rota.domain.headcount import Headcount
from rota.domain.served import Served
from rota.engine import tether, wire
from rota.engine.async_store import StoreCalls, SupervisorCalls, WorkerCalls
from rota.engine.crew import Crew, Occupancy
from rota.engine.process import ChildProcess
from rota.engine.worker_loops import Assignment, WorkerLoops
from rota.sdk.app import registry_of
from tests.support.jobs import JOURNAL
from tests.support.newcomers import newcomer
from tests.support.waiting import PATIENCE_S
from tests.support.workers import REPOSITORY, Site

SLOTS = 2


class Watched(WorkerCalls):
    """The verbs of a worker, as its supervisor sees them on the wire."""

    def __init__(self, calls: StoreCalls, worker: int, served: Served, occupancy: Occupancy) -> None:
        super().__init__(calls, worker, served)
        self._occupancy = occupancy

    def __getattribute__(self, name: str) -> Any:
        verb = super().__getattribute__(name)
        if name not in wire.VERBS:
            return verb

        async def seen(*arguments: Any) -> Any:
            answer = await verb(*arguments)
            self._occupancy.saw(name, arguments, answer)
            return answer

        return seen


class Scene:
    """The loops of a worker in this process; the test is its supervisor. Its jobs wait for `gate`."""

    def __init__(self, folder: Path) -> None:
        self.app = App("scene", url=f"sqlite:///{folder}/rota.db")
        self.gate = asyncio.Event()
        self.begun = 0

        @self.app.job(retry=None)
        async def wait() -> str:
            self.begun += 1
            await self.gate.wait()
            return "done"

        self._job = wait
        self.store = registry_of(self.app).connection.store()
        self.calls = StoreCalls(self.store)
        self.occupancy = Occupancy(SystemClock(), SLOTS)

    async def start(self, grace_s: float) -> None:
        joining = newcomer("scene", concurrency=SLOTS)
        worker, _ = await SupervisorCalls(self.calls, SystemClock()).join(joining, 600)
        assignment = Assignment(
            worker=worker,
            queues=None,
            concurrency=SLOTS,
            lease_s=600,
            poll_s=0.05,
            grace_s=grace_s,
        )
        served = Served.one("default", "scene", None, ["wait"])
        store = Watched(self.calls, worker, served, self.occupancy)
        self.loops = WorkerLoops(store, SystemClock(), assignment, registry_of(self.app).targets())
        self.running = asyncio.create_task(self.loops.run())

    async def enqueue(self, count: int) -> list[Handle[Any]]:
        return [await self._job.aenqueue() for _ in range(count)]

    async def close(self) -> None:
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
        self.calls.close()
        self.app.close()


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    await scene.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # sleep: between two reads of a database


async def test_a_retiring_child_claims_no_more_and_finishes_without_a_grace(scene: Scene) -> None:
    await scene.start(grace_s=0)
    some = await scene.enqueue(2)
    await until(lambda: scene.begun == 2)
    scene.loops.finish()
    (late,) = await scene.enqueue(1)
    done, _ = await asyncio.wait([scene.running], timeout=1)
    assert not done
    assert {x.status() for x in some} == {Status.RUNNING}
    scene.gate.set()
    await asyncio.wait_for(scene.running, PATIENCE_S)
    assert [x.result(0) for x in some] == ["done", "done"]
    assert (late.status(), late.info().fence) == (Status.QUEUED, 0)


async def test_a_retiring_child_can_still_be_drained(scene: Scene) -> None:
    await scene.start(grace_s=0)
    some = await scene.enqueue(2)
    await until(lambda: scene.begun == 2)
    scene.loops.finish()
    scene.loops.drain()
    await asyncio.wait_for(scene.running, PATIENCE_S)
    assert {(x.status(), x.info().attempt_count, x.info().crashes) for x in some} == {(Status.QUEUED, 0, 0)}


async def test_a_retiring_child_has_the_whole_grace_when_it_is_drained(scene: Scene) -> None:
    await scene.start(grace_s=600)
    some = await scene.enqueue(2)
    await until(lambda: scene.begun == 2)
    scene.loops.finish()
    scene.loops.drain()
    done, _ = await asyncio.wait([scene.running], timeout=0.5)
    assert not done
    scene.gate.set()
    await asyncio.wait_for(scene.running, PATIENCE_S)
    assert [x.result(0) for x in some] == ["done", "done"]


async def test_the_supervisor_sees_how_many_slots_a_child_uses(scene: Scene) -> None:
    await scene.start(grace_s=0)
    assert (scene.occupancy.is_idle, scene.occupancy.used()) == (True, 0)
    some = await scene.enqueue(1)
    await until(lambda: not scene.occupancy.is_idle)
    assert scene.occupancy.used() == 1
    some += await scene.enqueue(5)
    await until(lambda: scene.begun == SLOTS)
    assert scene.occupancy.used() == SLOTS
    scene.gate.set()
    await until(lambda: scene.occupancy.is_idle)
    assert [await x.aresult(PATIENCE_S) for x in some] == ["done"] * 6  # Its loops run on the event loop of this test.
    scene.occupancy.used()
    assert scene.occupancy.used() == 0


@pytest.mark.parametrize(("allowed", "counts"), [(Headcount(2, 2), False), (Headcount(2, 3), True)], ids=str)
async def test_held_executions_are_counted_only_if_the_number_of_processes_is_a_range(
    scene: Scene, allowed: Headcount, counts: bool
) -> None:
    async def never() -> bool:
        return False

    crew = Crew(
        allowed, SLOTS, 1.0, SystemClock(), fill=lambda: asyncio.sleep(0), has_work=never, let_go=lambda _: None
    )
    await scene.start(1)
    saw = crew.enter(1)
    assert isinstance(getattr(saw, "__self__", None), Occupancy) is counts


async def test_a_child_that_is_asked_to_retire_finishes_its_executions(file_site: Site) -> None:
    """A real process whose supervisor is the test: it has no grace, and yet no execution is interrupted."""
    command = [sys.executable, "-m", "rota.cli.child_main", "tests.support.jobs:app", "--parent", str(os.getpid())]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROTA_URL", file_site.url)
        patch.setenv(JOURNAL, str(file_site.folder))
        patch.setenv("PYTHONPATH", str(REPOSITORY))
        child = await ChildProcess.spawn(command)
    calls = StoreCalls(registry_of(file_site.app).connection.store())
    try:
        hello = await child.hello()
        assert hello is not None
        joining = newcomer(hello.app, concurrency=SLOTS)
        worker, _ = await SupervisorCalls(calls, SystemClock()).join(joining, 600)
        assignment = Assignment(worker=worker, queues=None, concurrency=SLOTS, lease_s=600, poll_s=0.05, grace_s=0)
        child.send(msgspec.json.encode(assignment))
        served = Served.one("default", hello.app, None, hello.jobs)
        serving = asyncio.create_task(child.serve_store(WorkerCalls(calls, worker, served)))
        x = await file_site.app.jobs["gated"].aenqueue("go")
        await until(lambda: bool(file_site.journal("started")))
        child.send(tether.FINISH)
        await until(lambda: [row.state for row in file_site.live()] == ["draining"])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(child.wait(), 1)
        assert (x.status(), file_site.journal("told")) == (Status.RUNNING, [])
        file_site.open("go")
        assert await asyncio.wait_for(child.wait(), PATIENCE_S) == tether.DRAINED
        await asyncio.wait_for(serving, PATIENCE_S)
        assert (x.result(0), x.info().fence) == ("done", 1)
    finally:
        child.kill()
        await child.wait()
        child.close()
        calls.close()
