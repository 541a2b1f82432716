"""How a worker process ends: its exit is orderly only if the process announced it, whatever the exit code."""

from __future__ import annotations

import asyncio
import signal
import sys

import pytest

from rota import Status
from rota.engine import process, tether
from rota.engine.host import Ending
from rota.engine.process import ChildProcess
from tests.support.waiting import PATIENCE_S
from tests.support.workers import Site

IN_ORDER = (tether.DRAINED, tether.RECYCLE, tether.BLOCKED)


async def ended(script: str) -> Ending:
    """How a child that runs a script ended; the script has the descriptor for its messages in argv[2]."""
    child = await ChildProcess.spawn([sys.executable, "-S", "-c", f"import os, sys; {script}"])
    try:
        return await child.ended(await child.wait())
    finally:
        child.kill()
        child.close()


@pytest.mark.parametrize("code", [*IN_ORDER, tether.LEASE_LOST])
async def test_an_exit_code_counts_only_if_the_child_announced_it(code: int) -> None:
    alone = await ended(f"os._exit({code})")
    assert not alone.is_in_order
    assert not alone.has_lost_lease
    assert f"ended with exit code {code}, in the middle of its work" in str(alone)
    another = await ended(f"os.write(int(sys.argv[2]), b'exit 1\\n'); os._exit({code})")
    assert not another.is_in_order
    announced = await ended(f"os.write(int(sys.argv[2]), b'exit {code}\\n'); os._exit({code})")
    assert announced.is_in_order == (code in IN_ORDER)
    assert announced.has_lost_lease == (code == tether.LEASE_LOST)


async def test_an_orphan_of_a_child_does_not_delay_the_end_of_the_child() -> None:
    ending = await ended("os.fork() or os.execv('/bin/sleep', ['sleep', '1000'])")
    assert not ending.is_in_order


async def test_a_process_that_has_got_the_id_of_an_ended_child_is_not_killed() -> None:
    child = await ChildProcess.spawn([sys.executable, "--version"])
    await child.wait()
    other = await asyncio.create_subprocess_exec("/bin/sleep", "1000", start_new_session=True)
    try:
        child.pid = other.pid
        child.kill()
        # A process handles its signals in the order of their numbers: SIGKILL would come before SIGTERM.
        other.terminate()
        assert await other.wait() == -signal.SIGTERM
    finally:
        child.close()


async def test_a_child_that_runs_another_program_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exec closes its end of the socket, and the process does not end."""
    monkeypatch.setattr(process, "REPLACED_S", 0.05)
    script = "import os, sys; os.close(int(sys.argv[2])); os.execv('/bin/sleep', ['sleep', '1000'])"
    child = await ChildProcess.spawn([sys.executable, "-S", "-c", script])
    leaving = asyncio.create_task(child.leaving())
    try:
        async with asyncio.timeout(PATIENCE_S):
            code = await child.wait()
        leaving.cancel()
        await asyncio.wait([leaving])
        assert "ran another program" in str(await child.ended(code))
    finally:
        child.kill()
        child.close()


def test_a_job_that_execs_a_program_that_does_not_end_is_charged_with_a_crash(file_site: Site) -> None:
    file_site.worker(lease_s=600)
    x = file_site.enqueue("leave", "exec for long")
    x.result(PATIENCE_S)
    (lost, _) = x.attempts()
    assert (lost.status, lost.reason) == ("lost", "crashed")
    assert "ran another program" in (lost.error_message or "")


@pytest.mark.parametrize(
    "how",
    ["0", *(pytest.param(how, marks=pytest.mark.prove) for how in ("75", "76", "79", "exec", "exit in C"))],
)
def test_a_job_that_exits_with_an_exit_code_of_rota_is_a_crash_loop(file_site: Site, how: str) -> None:
    worker = file_site.worker("--concurrency", "1", lease_s=600)
    x = file_site.enqueue("leave", how)
    neighbour = file_site.enqueue("echo", 1)
    file_site.wait_for(x, Status.FAILED)
    info = x.info()
    assert (info.reason, info.crashes, info.attempt_count, info.fence) == ("crash_loop", 3, 0, 3)
    assert neighbour.result(PATIENCE_S) == 1
    assert neighbour.info().crashes == 0
    code = int(how) if how.isdigit() else 0
    assert worker.log().count(f"ERROR rota.engine: the worker process ended with exit code {code}") == 3
