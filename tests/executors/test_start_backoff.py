"""A worker that cannot start processes: it backs off, tries one, and resumes as soon as one starts."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota.clock import ManualClock, SystemClock
from rota.domain.claim import Claim
from rota.domain.lifecycle import Rules
from rota.domain.outcome import GivenBack, Outcome, Succeeded
from rota.domain.requirement import COMMANDS, UNBOUNDED, Room
from rota.domain.status import Reason
from rota.engine.capacity import ProcessCapacity
from rota.executors.attempt_state import AttemptState
from rota.executors.port import Processes
from rota.executors.process.command import Command, CommandExecutor
from rota.executors.process.pool import Pool, ProcessExecutor
from rota.executors.process.start_backoff import FIRST_PAUSE_S, LONGEST_PAUSE_S, StartBackoff
from tests.executors.test_command import claim_of
from tests.executors.test_pool import ARGV, begin, begun, job
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.usefixtures("closed")


class Machine:
    """A machine on which no program can be started while `sick` is set."""

    def __init__(self, path: Path) -> None:
        self.path = path
        script = f'test -e {path}/sick && exit 3; exec "$0" "$@"'
        self.pool = Pool(["sh", "-c", script, *ARGV], most=2)
        # The clock stands still: a back-off ends when the test moves it.
        self.clock = ManualClock()
        self.pool.starts = StartBackoff("isolated jobs", self.clock.monotonic)

    def fall_sick(self) -> None:
        (self.path / "sick").touch()

    def recover(self) -> None:
        (self.path / "sick").unlink()

    async def run(self, name: str = "pid", memory_bytes: int | None = None, **arguments: Any) -> Outcome:
        claim = job(name, **arguments)
        executor = ProcessExecutor(self.pool, Rules(), memory_bytes=memory_bytes)
        async with asyncio.timeout(PATIENCE_S):
            return await executor.run(claim, AttemptState(claim, None))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def starts() -> tuple[StartBackoff, ManualClock]:
    clock = ManualClock()
    return StartBackoff("tests", clock.monotonic), clock


def test_each_backoff_is_longer_up_to_a_limit_and_ends_with_one_try() -> None:
    known, clock = starts()
    assert known.room is None
    rest_s = FIRST_PAUSE_S
    for _ in range(8):
        known.begin()
        known.failed("no memory")
        assert known.why == "no memory"
        assert known.room == 0
        clock.advance(rest_s - 0.01)
        assert known.room == 0
        clock.advance(0.01)
        assert known.room == 1
        rest_s = min(LONGEST_PAUSE_S, 2 * rest_s)
    known.begin()
    assert known.room == 0, "one at a time"
    known.worked()
    assert known.room is None
    assert known.why == ""
    known.begin()
    known.failed("again")
    clock.advance(FIRST_PAUSE_S)
    assert known.room == 1, "the back-off starts over"


def test_concurrent_failures_count_as_one() -> None:
    known, clock = starts()
    for _ in range(5):
        known.begin()
    for _ in range(4):
        known.failed("no memory")
        clock.advance(FIRST_PAUSE_S / 4)
    assert known.room == 1, "the pause counts from the first failure"
    known.failed("no memory")
    assert known.room == 1


def given_back(outcome: Outcome) -> GivenBack:
    assert isinstance(outcome, GivenBack), outcome
    assert outcome.reason is Reason.NOT_BEGUN
    assert outcome.error is not None
    assert outcome.error.type == "NotStarted"
    return outcome


async def test_a_pool_that_cannot_start_processes_refuses_calls_until_one_starts(machine: Machine) -> None:
    machine.fall_sick()
    assert given_back(await machine.run()).delay_s > 0
    machine.recover()
    turned_away = given_back(await machine.run())
    assert turned_away.delay_s == 0, "no start was tried: another worker may claim it at once"
    assert turned_away.error is not None
    assert "exit code 3" in turned_away.error.message, "the error is that of the last try"
    machine.clock.advance(FIRST_PAUSE_S)
    assert isinstance(await machine.run(), Succeeded)
    assert machine.pool.starts.room is None


async def test_waiting_calls_are_refused_together_with_the_first_that_gets_no_process(machine: Machine) -> None:
    machine.fall_sick()
    outcomes = [given_back(one) for one in await asyncio.gather(*(machine.run() for _ in range(20)))]
    assert sum(one.delay_s > 0 for one in outcomes) <= machine.pool.most
    machine.recover()
    machine.clock.advance(FIRST_PAUSE_S)
    assert isinstance(await machine.run(), Succeeded), "all places are free again"
    assert all(isinstance(one, Succeeded) for one in await asyncio.gather(*(machine.run() for _ in range(4))))


async def test_existing_processes_are_used_while_no_other_can_be_started(machine: Machine, tmp_path: Path) -> None:
    capacity = ProcessCapacity({"pid": ProcessExecutor(machine.pool, Rules())}, SystemClock())
    assert isinstance(await machine.run(), Succeeded)
    machine.fall_sick()
    gate = tmp_path / "gate"
    busy = begin(machine.pool, "wait_for", began=str(tmp_path / "began"), gate=str(gate))
    await begun(tmp_path / "began")
    given_back(await machine.run())
    assert capacity.room().isolated == 0
    gate.touch()
    await busy
    assert capacity.room().isolated == 1
    assert isinstance(await machine.run(), Succeeded)
    assert capacity.room().isolated == 1
    assert given_back(await machine.run(memory_bytes=2**30)).delay_s == 0
    assert capacity.room().isolated == 0, "a further execution would need another process, so it is not claimed"
    machine.clock.advance(FIRST_PAUSE_S)
    assert capacity.room().isolated == 1
    machine.recover()
    assert isinstance(await machine.run(memory_bytes=2**30), Succeeded)
    assert capacity.room().isolated == machine.pool.most


async def test_a_suspect_is_always_tried_because_its_claims_are_not_bounded(machine: Machine) -> None:
    machine.pool.is_for_suspects = True
    machine.fall_sick()
    for _ in range(2):
        assert given_back(await machine.run()).delay_s > 0


async def run_command(executor: CommandExecutor) -> Outcome:
    claim: Claim = msgspec.structs.replace(claim_of({}), job="print")
    async with asyncio.timeout(PATIENCE_S):
        return await executor.run(claim, AttemptState(claim, None))


async def test_commands_of_a_worker_share_one_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(flags: int) -> tuple[int, int]:
        raise OSError(24, "Too many open files")

    clock = ManualClock()
    shared = Processes(StartBackoff(COMMANDS, clock.monotonic))
    programs = ("true", "no-such-program")
    one, other = (CommandExecutor(Command(argv=[program]), processes=shared) for program in programs)
    capacity = ProcessCapacity({"one": one, "other": other}, clock)
    assert capacity.room() == UNBOUNDED
    with monkeypatch.context() as patched:
        patched.setattr(os, "pipe2", fail)
        assert given_back(await run_command(one)).delay_s > 0
    assert capacity.room() == Room(None, 0)
    assert given_back(await run_command(other)).delay_s == 0
    clock.advance(FIRST_PAUSE_S)
    assert capacity.room() == Room(None, 1)
    assert not isinstance(await run_command(other), GivenBack)
    assert capacity.room() == Room(None, 0), "a program that is not there says nothing of the machine"
    clock.advance(2 * FIRST_PAUSE_S)
    assert isinstance(await run_command(one), Succeeded)
    assert capacity.room() == UNBOUNDED


async def test_the_backoff_ends_when_a_command_has_started_not_when_it_has_ended(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script = f"while ! test -e {gate}; do sleep 0.02; done"
    clock = ManualClock()
    shared = Processes(StartBackoff(COMMANDS, clock.monotonic))
    executor = CommandExecutor(Command(argv=["sh", "-c", script]), processes=shared)
    capacity = ProcessCapacity({"one": executor}, clock)
    executor.starts.failed("no memory")
    clock.advance(FIRST_PAUSE_S)
    running = asyncio.ensure_future(run_command(executor))
    async with asyncio.timeout(PATIENCE_S):
        while capacity.room() != UNBOUNDED:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # sleep: between two checks
    gate.touch()
    assert isinstance(await running, Succeeded)
