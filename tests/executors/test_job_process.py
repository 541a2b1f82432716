"""Jobs that affect their process, its connection to the worker, and the next job in that process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota.domain.lifecycle import Rules
from rota.domain.note import State
from rota.domain.outcome import Failed, Lost, Outcome, Succeeded
from rota.domain.status import Reason
from rota.executors.attempt_state import AttemptState
from rota.executors.process.pool import Pool, ProcessExecutor
from tests.executors.test_pool import Heard, begin, begun, job, result
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.usefixtures("closed")

ARGV = [sys.executable, "-m", "rota.cli.job_process", "tests.executors.programs.rude:app"]


class Listener(Heard):
    """Also records progress and checkpoints."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[State] = []

    def state(self, state: State) -> None:
        self.states.append(state)


async def attempt(name: str, memory_bytes: int | None = None, **arguments: Any) -> tuple[Outcome, Listener]:
    claim, heard = job(name, **arguments), Listener()
    state = AttemptState(claim, None)
    state.notes = heard
    executor = ProcessExecutor(Pool(ARGV, most=1), Rules(), memory_bytes=memory_bytes)
    async with asyncio.timeout(PATIENCE_S):
        return await executor.run(claim, state), heard


async def test_a_job_that_closes_its_connection_has_crashed_and_its_error_says_so() -> None:
    outcome, _ = await attempt("hang_up")
    assert isinstance(outcome, Lost)
    assert "closed its connection to the worker" in outcome.error.message


async def test_log_lines_of_forked_processes_do_not_corrupt_the_connection_of_the_job() -> None:
    outcome, heard = await attempt("all_talk", size=3000, times=100)
    assert isinstance(outcome, Succeeded), outcome
    assert [msgspec.json.decode(state.checkpoint or "")[0] for state in heard.states] == list(range(100))
    assert heard.told == [("stderr", "x" * 3000)] * 400


async def test_a_checkpoint_in_a_forked_process_raises_an_error(tmp_path: Path) -> None:
    outcome, heard = await attempt("copy_keeps", written=str(tmp_path / "said"))
    assert isinstance(outcome, Succeeded), outcome
    assert "a process that a job has forked cannot" in outcome.result
    assert heard.states == []


async def test_a_forked_process_does_not_write_to_a_reused_descriptor_number(tmp_path: Path) -> None:
    outcome, heard = await attempt("copy_speaks", written=str(tmp_path / "file"))
    assert outcome == Succeeded('"mine"')
    assert heard.told == [("stderr", "from the copy")]


async def test_a_forked_process_exits_like_any_python_program() -> None:
    assert await result(Pool(ARGV, most=1), "end_copy") == signal.SIGTERM


@pytest.mark.parametrize("kind", ["thread", "timer", "busy executor"])
async def test_a_process_with_a_busy_thread_is_not_reused(kind: str) -> None:
    pool = Pool(ARGV, most=1)
    assert await result(pool, "leave_thread", kind=kind) != await result(pool, "pid")


@pytest.mark.parametrize("kind", ["executor", "to_thread", "queue", "ended"])
async def test_a_process_with_idle_threads_is_reused(kind: str) -> None:
    pool = Pool(ARGV, most=1)
    processes = [await result(pool, "leave_thread", kind=kind) for _ in range(6)]
    # On a busy machine a thread may take so long to begin its wait that it seems to be at work.
    assert len(set(processes)) < len(processes)


async def test_a_job_whose_app_alone_exceeds_the_limit_is_out_of_memory() -> None:
    outcome, _ = await attempt("pid", memory_bytes=8 * 2**20)
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.OUT_OF_MEMORY
    assert "loading the app alone took" in outcome.error.message
    assert "the limit is 8 MB" in outcome.error.message


@pytest.mark.parametrize(
    ("program", "name"), [("tests.executors.programs.isolated:app", "wait_for"), (ARGV[-1], "wait_async")]
)
async def test_a_sigterm_from_another_sender_stops_no_job_and_no_process(
    tmp_path: Path, program: str, name: str
) -> None:
    pool, gate = Pool([*ARGV[:-1], program], most=1), tmp_path / "gate"
    running = begin(pool, name, began=str(tmp_path / "began"), gate=str(gate))
    process = await begun(tmp_path / "began")
    os.kill(process, signal.SIGTERM)
    gate.touch()
    assert await running == process
    os.kill(process, signal.SIGTERM)
    assert await result(pool, "pid") == process
