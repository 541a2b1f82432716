"""What a worker left that was killed together with its stage: whoever looks after workers here ends it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest

from rota.engine import strays
from rota.engine.strays import Strays, end_strays
from rota.executors import tree
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site

Plant = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def plant() -> Iterator[Plant]:
    """Starts what a stage would have left that is no more; any worker that sweeps on this machine may end it."""
    planted: list[subprocess.Popen[bytes]] = []

    def plant() -> subprocess.Popen[bytes]:
        with subprocess.Popen(["true"]) as stage:
            stage.wait()
        mark = tree.mark_for(stage.pid, 7)
        command = ["prlimit", f"--rttime={mark}:", "sleep", "1000"]
        stray = subprocess.Popen(command, start_new_session=True)
        planted.append(stray)
        eventually(lambda: tree.mark(stray.pid) or stray.poll() is not None, what="the mark")
        return stray

    yield plant
    for process in planted:
        process.kill()
        process.wait()


def killed(process: subprocess.Popen[bytes]) -> bool:
    return process.wait(PATIENCE_S) == -signal.SIGKILL


async def test_strays_are_ended_though_they_were_stopped(plant: Plant) -> None:
    """As when whoever looked before was killed in the middle of it."""
    stray = plant()
    stray.send_signal(signal.SIGSTOP)
    await end_strays()
    assert killed(stray)


async def test_after_something_was_found_it_looks_again_soon(plant: Plant) -> None:
    looking = Strays()
    async with asyncio.timeout(PATIENCE_S):
        while await looking.step() == strays.EVERY_S:
            plant()  # Another worker may be faster than we are.


async def test_after_the_death_of_a_worker_it_looks_soon(plant: Plant) -> None:
    """Long before the next look would come, and after a first one that came too early."""
    looking = Strays()
    loop = asyncio.create_task(looking.loop.run())
    try:
        await asyncio.to_thread(eventually, lambda: looking.loop.wake.is_awaited)
        stray = plant()
        looking.look_soon()
        async with asyncio.timeout(strays.EVERY_S / 2):
            assert await asyncio.to_thread(stray.wait) == -signal.SIGKILL
    finally:
        loop.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await loop


def test_a_supervisor_looks_when_its_children_are_gone(file_site: Site, plant: Plant) -> None:
    worker = file_site.worker()
    assert file_site.enqueue("echo", 1).result(PATIENCE_S) == 1
    stray = plant()
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert killed(stray)


def test_a_worker_looks_when_it_starts(file_site: Site, plant: Plant) -> None:
    stray = plant()
    file_site.worker()
    assert killed(stray)
