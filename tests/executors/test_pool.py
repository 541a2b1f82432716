"""The pool of processes without a worker; tests/engine/test_isolated_jobs.py tests it in a real worker."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota.domain.claim import Claim
from rota.domain.lifecycle import Rules
from rota.domain.note import State
from rota.domain.outcome import Failed, GivenBack, Lost, Outcome, Succeeded
from rota.domain.status import Reason
from rota.executors.attempt_state import AttemptState
from rota.executors.process.pool import Pool, ProcessExecutor, Recycling
from rota.executors.process.start_backoff import DELAY_S
from rota.executors.process.warm_process import WarmProcess
from tests.executors.programs.isolated import LARGE
from tests.executors.test_command import claim_of
from tests.support.proving import proof
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import is_alive

pytestmark = pytest.mark.usefixtures("closed")

ARGV = [sys.executable, "-m", "rota.cli.job_process", "tests.executors.programs.isolated:app"]


class Heard:
    """What an attempt has reported so far."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def line(self, id: str, fence: int, stream: str, text: str) -> None:
        self.told.append((stream, text))

    def lines(self, id: str, fence: int, stream: str, texts: list[str]) -> None:
        self.told += [(stream, text) for text in texts]

    def state(self, state: State) -> None:
        raise AssertionError("no state is reported")


def job(name: str, **arguments: Any) -> Claim:
    return msgspec.structs.replace(claim_of(arguments), job=name)


def state_of(claim: Claim) -> AttemptState:
    state = AttemptState(claim, None)
    state.notes = Heard()
    return state


async def attempt(pool: Pool, name: str, **arguments: Any) -> tuple[Outcome, AttemptState]:
    claim = job(name, **arguments)
    state = state_of(claim)
    async with asyncio.timeout(PATIENCE_S):
        return await ProcessExecutor(pool, Rules()).run(claim, state), state


async def result(pool: Pool, name: str, **arguments: Any) -> Any:
    outcome, _ = await attempt(pool, name, **arguments)
    assert isinstance(outcome, Succeeded), outcome
    return msgspec.json.decode(outcome.result)


def begin(pool: Pool, name: str, **arguments: Any) -> asyncio.Task[Any]:
    return asyncio.get_running_loop().create_task(result(pool, name, **arguments))


async def begun(path: Path) -> int:
    """The process in which a job has begun, which is written there."""
    async with asyncio.timeout(PATIENCE_S):
        while not (path.exists() and path.read_text()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # sleep: a file sends no signal.
    return int(path.read_text())


def fail(*_: object) -> None:
    raise OSError(24, "Too many open files")


@pytest.mark.parametrize(("module", "name"), [(socket, "socketpair"), (os, "pipe2")])
async def test_an_attempt_is_given_back_if_the_worker_has_no_free_descriptor(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    before, claim = sorted(os.listdir("/proc/self/fd")), claim_of({})
    with monkeypatch.context() as patched:
        failing: Callable[..., None] = fail
        patched.setattr(module, name, failing)
        outcome = await ProcessExecutor(Pool(["no-such-program"]), Rules()).run(claim, AttemptState(claim, None))
    assert isinstance(outcome, GivenBack)
    assert (outcome.reason, outcome.delay_s > 0) == (Reason.NOT_BEGUN, True)
    assert outcome.error is not None
    assert "Too many open files" in outcome.error.message
    assert sorted(os.listdir("/proc/self/fd")) == before, "nothing is left open"


async def test_waiting_calls_run_in_order_one_at_a_time(tmp_path: Path) -> None:
    pool = Pool(ARGV, most=1)
    first = begin(pool, "wait_for", began=str(tmp_path / "first"), gate=str(tmp_path / "gate"))
    process = await begun(tmp_path / "first")
    others = [
        begin(pool, "wait_for", began=str(tmp_path / name), gate=str(tmp_path / f"gate-{name}")) for name in "abc"
    ]
    (tmp_path / "gate").touch()
    assert await first == process
    for name, other in zip("abc", others, strict=True):
        assert await begun(tmp_path / name) == process
        assert not (tmp_path / chr(ord(name) + 1)).exists()
        (tmp_path / f"gate-{name}").touch()
        assert await other == process


async def test_cancelling_a_waiting_call_does_not_affect_the_others(tmp_path: Path) -> None:
    pool = Pool(ARGV, most=1)
    running = begin(pool, "wait_for", began=str(tmp_path / "began"), gate=str(tmp_path / "gate"))
    process = await begun(tmp_path / "began")
    waiting, last = begin(pool, "wait_for", began=str(tmp_path / "never"), gate=""), begin(pool, "pid")
    await asyncio.sleep(0)  # sleep: both are waiting then.
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    (tmp_path / "gate").touch()
    assert await running == await last == process
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("how", ["cancel", "crash"])
async def test_waiting_calls_survive_the_end_of_a_process(tmp_path: Path, how: str) -> None:
    pool = Pool(ARGV, most=1)
    asked = {"began": str(tmp_path / "began"), "gate": str(tmp_path / "gate")}
    running = asyncio.get_running_loop().create_task(attempt(pool, "crash", **asked))
    process = await begun(tmp_path / "began")
    waiting = [begin(pool, "pid") for _ in range(3)]
    await asyncio.sleep(0)  # sleep: all are waiting then.
    if how == "cancel":
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
    else:
        (tmp_path / "gate").touch()
        outcome, state = await running
        assert isinstance(outcome, Lost)
        assert "exit code 3" in outcome.error.message
        assert state.usage is not None
        assert state.usage.exit_code == 3
    (other,) = set(await asyncio.gather(*waiting))
    assert other != process


async def test_a_call_that_is_cancelled_while_its_process_starts_leaves_the_process_to_others() -> None:
    pool = Pool(ARGV, most=1)
    cancelled, other = begin(pool, "pid"), begin(pool, "pid")
    await asyncio.sleep(0)  # sleep: the process is being started then.
    cancelled.cancel()
    await asyncio.wait([cancelled])
    assert cancelled.cancelled()
    assert await other == await result(pool, "pid")


async def test_an_answer_that_arrives_before_the_request_to_stop_is_kept() -> None:
    """And the process is kept: it may already run the next call."""

    class Late(Pool):
        def _free(self, warm: WarmProcess) -> None:
            if not answered.cancelling():
                answered.cancel()  # It has its answer, but has not seen it.
            super()._free(warm)

    pool = Late(ARGV, most=1)
    answered = begin(pool, "pid")
    await asyncio.sleep(0)  # sleep: it comes first.
    other = begin(pool, "pid")
    outcomes = await asyncio.gather(answered, other)
    assert outcomes[0] == outcomes[1]


async def test_each_call_gets_the_reason_why_a_process_cannot_load_the_app() -> None:
    pool = Pool([sys.executable, "-m", "rota.cli.job_process", "tests.executors.programs.missing:app"], most=1)
    for outcome, _ in await asyncio.gather(*(attempt(pool, "pid") for _ in range(2))):
        assert isinstance(outcome, GivenBack)
        assert outcome.error is not None
        assert "no process could be started" in outcome.error.message
        assert "missing" in outcome.error.message


async def test_without_a_process_no_attempt_is_counted_and_its_output_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    delays = []
    for fence in (1, 2, 3, 100):
        pool = Pool(["sh", "-c", "echo half of a deploy >&2; exit 3"], most=1)
        claim = msgspec.structs.replace(job("pid"), fence=fence)
        outcome = await ProcessExecutor(pool, Rules()).run(claim, state_of(claim))
        assert isinstance(outcome, GivenBack)
        assert outcome.error is not None
        assert outcome.error.message.endswith(": its process ended with exit code 3 while the app was loaded")
        assert outcome.error.traceback == "half of a deploy"
        delays.append(outcome.delay_s)
    assert all(DELAY_S / 2 <= delay_s <= DELAY_S * 3 / 2 for delay_s in delays), "however often it ran before"
    assert len(set(delays)) == len(delays), "they are not retried all at once"
    assert "exit code 3 while the app was loaded\nhalf of a deploy" in caplog.text


async def test_a_program_that_does_not_exist_is_a_failure() -> None:
    outcome, _ = await attempt(Pool(["/no/such/program"], most=1), "pid")
    assert isinstance(outcome, Failed)
    assert "No such file" in outcome.error.message


async def test_a_process_is_replaced_after_its_maximum_of_jobs() -> None:
    pool = Pool(ARGV, most=1, recycling=Recycling(jobs=2))
    processes = [await result(pool, "pid") for _ in range(4)]
    assert processes[0] == processes[1] != processes[2] == processes[3]


@pytest.mark.parametrize("how", ["child", "orphan"])
async def test_a_process_with_orphans_is_not_reused_and_the_orphans_are_killed(tmp_path: Path, how: str) -> None:
    pool = Pool(ARGV, most=1)
    first = await result(pool, "leave", how=how, written=str(tmp_path / "left"))
    assert await result(pool, "pid") != first
    left = int((tmp_path / "left").read_text())
    await asyncio.to_thread(eventually, lambda: not is_alive(left) and not is_alive(first))


@pytest.mark.parametrize(
    ("how", "heavy"),
    [("cancel", "burn"), ("crash", "burn_in_child"), proof("cancel", "burn_in_child"), proof("crash", "burn")],
)
async def test_the_processor_time_of_a_crashed_or_stopped_attempt_excludes_other_attempts(
    tmp_path: Path, heavy: str, how: str
) -> None:
    pool = Pool(ARGV, most=1)
    process = await result(pool, heavy, seconds=1.0)
    claim = job("crash", began=str(tmp_path / "began"), gate=str(tmp_path / "gate"))
    state = state_of(claim)
    running = asyncio.ensure_future(ProcessExecutor(pool, Rules()).run(claim, state))
    assert await begun(tmp_path / "began") == process, "the same one, so that there is something to mix up"
    if how == "cancel":
        running.cancel()
    else:
        (tmp_path / "gate").touch()
    await asyncio.wait([running])
    assert state.usage is not None
    assert state.usage.peak_bytes > 0
    assert 0 <= state.usage.cpu_s < 0.8


async def test_a_crashed_attempt_has_its_own_usage(tmp_path: Path) -> None:
    outcome, state = await attempt(Pool(ARGV, most=1), "burn_and_crash", seconds=1.0)
    assert isinstance(outcome, Lost)
    assert state.usage is not None
    assert state.usage.peak_bytes > LARGE * 2**20
    assert 1 <= state.usage.cpu_s < PATIENCE_S


@pytest.mark.parametrize("is_for_suspects", [False, True])
async def test_a_job_that_kills_the_spawner_is_charged_if_it_was_alone(tmp_path: Path, is_for_suspects: bool) -> None:
    pool = Pool(ARGV, most=2, is_for_suspects=is_for_suspects)
    other = asyncio.ensure_future(attempt(pool, "wait_for", began=str(tmp_path / "b"), gate=str(tmp_path / "end")))
    rude = asyncio.ensure_future(attempt(pool, "end_spawner", began=str(tmp_path / "a"), gate=str(tmp_path / "gate")))
    for name in "ab":
        await begun(tmp_path / name)
    (tmp_path / "gate").touch()
    lost, _ = await rude
    assert isinstance(lost, Lost)
    assert "the spawner, which starts processes, died" in lost.error.message
    assert lost.shared is not is_for_suspects
    (tmp_path / "end").touch()
    outcome, _ = await other
    assert isinstance(outcome, Succeeded if is_for_suspects else Lost)
    assert getattr(outcome, "shared", True)
    assert await result(pool, "pid")
    await pool.close()


async def test_output_is_delivered_before_later_reports_and_before_the_answer() -> None:
    outcome, state = await attempt(Pool(ARGV, most=1), "speak", count=500)
    assert isinstance(outcome, Succeeded), outcome
    assert isinstance(state.notes, Heard)
    told = state.notes.told
    places = {text: place for place, (_, text) in enumerate(told)}
    assert len(places) == len(told) == 1002
    assert [text for stream, text in told if stream == "log"] == [f"told {number}" for number in range(500)]
    printed = [f"printed {number}" for number in range(500)]
    assert [text for stream, text in told if stream == "stdout"] == [*printed, "without an end"]
    assert all(places[f"printed {number}"] < places[f"told {number}"] for number in range(500))
    assert ("stderr", "past Python") in told


async def test_the_peak_memory_of_one_job_is_not_reported_for_the_next() -> None:
    pool, peaks = Pool(ARGV, most=1), []
    for megabytes in (1, 100, 1):
        _, state = await attempt(pool, "hold", megabytes=megabytes)
        assert state.usage is not None
        peaks.append(state.usage.peak_bytes)
    assert peaks[1] > peaks[0] + 90 * 2**20
    assert peaks[2] < peaks[1] - 90 * 2**20


async def test_a_crash_keeps_the_last_lines_of_both_outputs_and_of_no_other_job() -> None:
    pool = Pool(ARGV, most=1)
    await result(pool, "speak", count=2)
    outcome, _ = await attempt(pool, "crash_after", words="dear")
    assert isinstance(outcome, Lost)
    assert outcome.error.traceback == "--- stdout\ndear\n--- stderr\noh dear"
