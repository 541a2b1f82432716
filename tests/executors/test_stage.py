"""The stage with real processes: it starts them, and nothing of them is left when it says so, or when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from rota.executors import launch, stage, tree
from rota.executors.ended import Ended
from rota.executors.stage import Refused, Spawned, Stage
from tests.support.waiting import eventually

PROGRAMS = Path(__file__).with_name("programs")
FAMILY = str(PROGRAMS / "family.py")
SIGNAL_SETS = ("SigBlk", "SigIgn", "SigCgt")
LIBRARYS_OWN = 0b11 << 31
"""Signals 32 and 33, which the C library keeps for itself: nobody can set them, so they are as they were."""
PIDS_GROUPS = Path("/sys/fs/cgroup/pids")


@pytest.fixture
async def on() -> AsyncIterator[Stage]:
    on = Stage()
    yield on
    on.close()
    await on.closed()


@pytest.fixture
def nowhere() -> Iterator[int]:
    with Path(os.devnull).open("wb") as file:
        yield file.fileno()


async def spawn(on: Stage, out: int, *argv: str, memory_bytes: int | None = None) -> Spawned:
    return await on.spawn(argv, dict(os.environ), None, out, out, memory_bytes=memory_bytes)


async def end_of(on: Stage, out: int, *argv: str) -> Ended:
    return await (await spawn(on, out, *argv)).wait()


async def family(on: Stage, out: int, file: Path, then: str) -> tuple[Spawned, list[tree.Process]]:
    """A command that has started others in every way there is to get away."""
    spawned = await spawn(on, out, sys.executable, FAMILY, str(file), then)
    await asyncio.to_thread(eventually, file.exists)
    return spawned, members(file)


def members(file: Path) -> list[tree.Process]:
    """Those that are still there, of those whose numbers are in the file."""
    return [process for process in map(tree.read, map(int, file.read_text().split())) if process is not None]


async def test_exit_codes_and_signals_are_told(on: Stage, nowhere: int) -> None:
    assert (await end_of(on, nowhere, "sh", "-c", "exit 0")).exit_code == 0
    assert (await end_of(on, nowhere, "sh", "-c", "exit 7")).exit_code == 7
    ended = await end_of(on, nowhere, "sh", "-c", "kill -SEGV $$")
    assert (ended.exit_code, ended.signal, ended.error) == (None, signal.SIGSEGV, None)


async def test_what_a_command_costs_is_told(on: Stage, nowhere: int) -> None:
    ended = await end_of(on, nowhere, sys.executable, "-c", "held = b'x' * 60_000_000; sum(range(3_000_000))")
    assert 0 < ended.cpu_s < 60
    assert 60_000_000 < ended.peak_bytes < 200_000_000


async def test_what_the_left_behind_cost_is_counted(on: Stage, nowhere: int, tmp_path: Path) -> None:
    busy = f"sum(range(10_000_000)); open({str(tmp_path / 'done')!r}, 'w').close(); import signal; signal.pause()"
    script = '"$0" -c "$1" & while ! [ -e "$2" ]; do /bin/sleep 0.02; done'
    ended = await end_of(on, nowhere, "sh", "-c", script, sys.executable, busy, str(tmp_path / "done"))
    alone = await end_of(on, nowhere, "sh", "-c", ":")
    assert ended.exit_code == 0
    assert ended.cpu_s > alone.cpu_s + 0.05


async def test_a_command_finds_its_descriptors_and_no_others(on: Stage) -> None:
    read, write = os.pipe()
    with os.fdopen(read) as output:
        try:
            program = "import os; os.write(4, ' '.join(sorted(os.listdir('/proc/self/fd'))).encode())"
            argv = [sys.executable, "-c", program]
            spawned = await on.spawn(argv, dict(os.environ), None, write, write, fds=[write, write])
        finally:
            os.close(write)
        await spawned.wait()
        # The last one is that of the folder itself.
        assert output.read() == "0 1 2 3 4 5"


async def test_a_command_starts_with_the_usual_signals_in_a_session_of_its_own(on: Stage) -> None:
    read, write = os.pipe()
    with os.fdopen(read) as output:
        try:
            argv = ["cat", "/proc/self/status", "/proc/self/stat"]
            spawned = await on.spawn(argv, dict(os.environ), "/", write, write)
        finally:
            os.close(write)
        await spawned.wait()
        *lines, stat = output.read().splitlines()
    masks = {name: int(mask, 16) for name, _, mask in (line.partition(":") for line in lines) if name in SIGNAL_SETS}
    assert {name: mask & ~LIBRARYS_OWN for name, mask in masks.items()} == dict.fromkeys(masks, 0)
    assert int(stat.split()[5]) == spawned.pid


async def test_a_very_long_command_line_arrives_whole(on: Stage) -> None:
    read, write = os.pipe()
    with os.fdopen(read) as output:
        try:
            arguments = ["x" * 100_000] * 10
            argv = ["sh", "-c", 'echo "$#" "${#5}"', "sh", *arguments]
            spawned = await on.spawn(argv, dict(os.environ), None, write, write)
        finally:
            os.close(write)
        await spawned.wait()
        assert output.read() == "10 100000\n"


async def test_nothing_is_left_after_a_normal_end(on: Stage, nowhere: int, tmp_path: Path) -> None:
    spawned, _ = await family(on, nowhere, tmp_path / "pids", "leave")
    assert (await spawned.wait()).exit_code == 0
    assert members(tmp_path / "pids") == []


async def test_nothing_is_left_after_a_stop_that_is_ignored(on: Stage, nowhere: int, tmp_path: Path) -> None:
    spawned, started = await family(on, nowhere, tmp_path / "pids", "stay")
    assert len(started) == 5
    spawned.stop(0.2)
    assert (await spawned.wait()).signal == signal.SIGKILL
    assert members(tmp_path / "pids") == []


async def test_nothing_is_left_after_a_kill(on: Stage, nowhere: int, tmp_path: Path) -> None:
    spawned, _ = await family(on, nowhere, tmp_path / "pids", "stay")
    spawned.kill()
    assert (await spawned.wait()).signal == signal.SIGKILL
    assert members(tmp_path / "pids") == []


async def test_nothing_is_left_of_one_command_while_others_go_on(on: Stage, nowhere: int, tmp_path: Path) -> None:
    others = [await spawn(on, nowhere, "sleep", "1000") for _ in range(3)]
    spawned, _ = await family(on, nowhere, tmp_path / "pids", "leave")
    others.append(await spawn(on, nowhere, "sleep", "1000"))
    assert (await spawned.wait()).exit_code == 0
    assert members(tmp_path / "pids") == []
    assert all(tree.read(other.pid) is not None for other in others)


async def test_what_takes_off_its_mark_ends_with_the_last_command_that_it_may_be_of(
    on: Stage, nowhere: int, tmp_path: Path
) -> None:
    other = await spawn(on, nowhere, "sleep", "1000")
    argv = ("prlimit", "--rttime=unlimited:", sys.executable, FAMILY, str(tmp_path / "pids"), "leave")
    assert (await end_of(on, nowhere, *argv)).exit_code == 0
    assert tree.read(other.pid) is not None
    other.kill()
    await other.wait()
    assert members(tmp_path / "pids") == []


async def test_a_stage_that_a_command_stops_goes_on(on: Stage, nowhere: int) -> None:
    rude = await spawn(on, nowhere, "sh", "-c", 'kill -STOP "$PPID"; exit 3')
    assert (await asyncio.wait_for(rude.wait(), 60)).exit_code == 3
    assert (await asyncio.wait_for(end_of(on, nowhere, "true"), 60)).exit_code == 0


async def test_a_stage_that_was_stopped_can_be_closed(on: Stage, nowhere: int, tmp_path: Path) -> None:
    _, started = await family(on, nowhere, tmp_path / "pids", "stay")
    assert on.pid is not None
    os.kill(on.pid, signal.SIGSTOP)
    on.close()
    await asyncio.wait_for(on.closed(), 60)
    assert not any(is_there(process) for process in started)


async def test_a_stop_gives_the_whole_tree_its_time(on: Stage, nowhere: int, tmp_path: Path) -> None:
    said, ready = tmp_path / "said", tmp_path / "ready"
    polite = f"trap '/bin/sleep 0.1; echo bye > {said}; exit' TERM; : > {ready}; while :; do /bin/sleep 0.02; done"
    spawned = await spawn(on, nowhere, "sh", "-c", f'sh -c "{polite}" & wait')
    await asyncio.to_thread(eventually, ready.exists)
    spawned.stop(30)
    assert (await spawned.wait()).signal == signal.SIGTERM
    assert said.read_text() == "bye\n"


async def test_above_its_memory_limit_the_whole_tree_is_killed(on: Stage, nowhere: int) -> None:
    program = "import signal; held = b'x' * 60_000_000; signal.pause()"
    script = '"$0" -c "$1" & "$0" -c "$1" & wait'
    argv = ("sh", "-c", script, sys.executable, program)
    ended = await (await spawn(on, nowhere, *argv, memory_bytes=100_000_000)).wait()
    assert ended.out_of_memory
    assert ended.peak_bytes > 100_000_000


@pytest.mark.parametrize(
    ("argv", "cwd", "step", "code"),
    [
        (["no-such-program"], None, "program", errno.ENOENT),
        ([__file__], None, "program", errno.EACCES),
        (["/"], None, "program", errno.EACCES),
        (["true"], "/no/such/folder", "directory", errno.ENOENT),
        (["true"], __file__, "directory", errno.ENOTDIR),
        (["true", "x" * 3_000_000], None, "program", errno.E2BIG),
    ],
)
async def test_what_cannot_be_started_is_refused_for_good(
    on: Stage, nowhere: int, argv: list[str], cwd: str | None, step: str, code: int
) -> None:
    with pytest.raises(Refused) as refused:
        await on.spawn(argv, dict(os.environ), cwd, nowhere, nowhere)
    assert (refused.value.step, refused.value.code, refused.value.is_final) == (step, code, True)


@contextlib.contextmanager
def no_more_processes(pid: int) -> Iterator[None]:
    """A process that can start no other. The limit of a user does not bind root, that of a control group does."""
    if os.geteuid() != 0:
        usual = resource.prlimit(pid, resource.RLIMIT_NPROC)
        resource.prlimit(pid, resource.RLIMIT_NPROC, (1, usual[1]))
        yield
        resource.prlimit(pid, resource.RLIMIT_NPROC, usual)
        return
    group = PIDS_GROUPS / f"rota-test-{pid}"
    try:
        group.mkdir()
        (group / "pids.max").write_text("1")
        (group / "cgroup.procs").write_text(str(pid))
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        yield
    finally:
        (PIDS_GROUPS / "cgroup.procs").write_text(str(pid))
        group.rmdir()


async def test_a_fork_that_fails_is_refused_for_now(on: Stage, nowhere: int) -> None:
    on.start()
    assert on.pid is not None
    with no_more_processes(on.pid), pytest.raises(Refused) as refused:
        await spawn(on, nowhere, "true")
    assert (refused.value.step, refused.value.code, refused.value.is_final) == ("fork", errno.EAGAIN, False)
    assert (await end_of(on, nowhere, "true")).exit_code == 0


def test_a_fork_that_fails_leaves_no_descriptor_open(monkeypatch: pytest.MonkeyPatch, nowhere: int) -> None:
    def fail() -> int:
        raise OSError(errno.EAGAIN, "no")

    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(os, "fork", fail)
    with pytest.raises(launch.Refusal) as refusal:
        launch.begin(["true"], {}, None, [nowhere, nowhere], 0)
    assert (refusal.value.step, refusal.value.code) == ("fork", errno.EAGAIN)
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("spare", range(4))
async def test_without_descriptors_in_the_stage_a_command_is_refused_for_now(
    on: Stage, nowhere: int, spare: int
) -> None:
    assert (await end_of(on, nowhere, "true")).exit_code == 0
    assert on.pid is not None
    highest = max(map(int, os.listdir(f"/proc/{on.pid}/fd")))
    usual = resource.prlimit(on.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(on.pid, resource.RLIMIT_NOFILE, (highest + 1 + spare, usual[1]))
    with pytest.raises(Refused) as refused:
        await end_of(on, nowhere, "true")
    assert (refused.value.step, refused.value.is_final) == ("descriptors", False)
    resource.prlimit(on.pid, resource.RLIMIT_NOFILE, usual)
    assert (await end_of(on, nowhere, "true")).exit_code == 0


async def test_many_commands_at_once_all_end(on: Stage, nowhere: int) -> None:
    ends = await asyncio.gather(*(end_of(on, nowhere, "sh", "-c", f"exit {n}") for n in range(200)))
    assert [ended.exit_code for ended in ends] == list(range(200))
    assert on.pid is not None
    assert tree.children(on.pid) == []


async def test_a_spawn_that_is_cancelled_leaves_nothing(on: Stage, nowhere: int) -> None:
    on.start()
    assert on.pid is not None
    for turns in range(8):
        task = asyncio.ensure_future(spawn(on, nowhere, "sleep", "1000"))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (await end_of(on, nowhere, "true")).exit_code == 0
    assert tree.children(on.pid) == []


async def test_when_the_stage_is_killed_its_commands_end_and_the_next_has_a_new_one(
    on: Stage, nowhere: int, tmp_path: Path
) -> None:
    spawned, started = await family(on, nowhere, tmp_path / "pids", "stay")
    first = on.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    ended = await spawned.wait()
    assert (ended.exit_code, ended.signal) == (None, signal.SIGKILL)
    assert ended.error is not None
    eventually(lambda: not any(is_there(process) for process in started))
    assert (await end_of(on, nowhere, "true")).exit_code == 0
    assert on.pid != first


async def test_a_signal_to_end_does_not_reach_the_stage(on: Stage, nowhere: int) -> None:
    on.start()
    assert (await end_of(on, nowhere, "true")).exit_code == 0
    assert on.pid is not None
    first = on.pid
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(first, number)
    assert (await end_of(on, nowhere, "true")).exit_code == 0
    assert on.pid == first


async def test_closing_ends_everything_at_once(on: Stage, nowhere: int, tmp_path: Path) -> None:
    spawned, _ = await family(on, nowhere, tmp_path / "pids", "stay")
    on.abandon()
    assert (await spawned.wait()).signal == signal.SIGKILL
    await on.closed()
    assert members(tmp_path / "pids") == []
    with pytest.raises(Refused):
        await spawn(on, nowhere, "true")


@pytest.mark.parametrize("state", ["running", "stopped"])
@pytest.mark.parametrize("company", ["alone", "forked"])
def test_when_the_worker_is_killed_its_commands_end(tmp_path: Path, company: str, state: str) -> None:
    file = tmp_path / "pids"
    argv = [sys.executable, str(PROGRAMS / "worker.py"), FAMILY, str(file), company]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        stage_pid, fork = map(int, worker.stdout.readline().split())
        eventually(file.exists)
        started = [*members(file), tree.read(stage_pid)]
        if state == "stopped":
            os.kill(stage_pid, signal.SIGSTOP)
        worker.kill()
        worker.wait()
        try:
            assert len(started) == 6
            eventually(lambda: not any(process and is_there(process) for process in started))
        finally:
            if fork:
                os.kill(fork, signal.SIGKILL)


def test_what_a_stage_leaves_that_was_killed_with_its_worker_is_stray(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    argv = [sys.executable, str(PROGRAMS / "worker.py"), FAMILY, str(file), "alone"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        stage_pid = int(worker.stdout.readline().split()[0])
        eventually(file.exists)
        started = members(file)
        assert not {process.pid for process in started} & {process.pid for process in tree.strays()}
        os.kill(stage_pid, signal.SIGSTOP)
        worker.send_signal(signal.SIGSTOP)
        os.kill(stage_pid, signal.SIGKILL)
        worker.kill()
        worker.wait()
    eventually(lambda: not is_there(started[0]))  # The kernel has ended this one.
    strays = {process.pid for process in tree.strays()}
    # A worker of another test may have come, and have ended them.
    assert all(process.pid in strays or not is_there(process) for process in started[1:])
    tree.kill(lambda: started)
    eventually(lambda: not any(is_there(process) for process in started))


def is_there(process: tree.Process) -> bool:
    now = tree.read(process.pid)
    return now is not None and now.start == process.start and not now.is_dead


async def test_an_event_loop_has_one_stage_until_it_is_closed() -> None:
    first = stage.shared()
    assert stage.shared() is first
    first.close()
    assert stage.shared() is not first


async def test_no_descriptor_is_left_when_the_stage_is_closed(nowhere: int) -> None:
    before = os.listdir("/proc/self/fd")
    on = Stage()
    assert (await end_of(on, nowhere, "true")).exit_code == 0
    on.close()
    await on.closed()
    assert os.listdir("/proc/self/fd") == before
