"""The spawner with real processes: none of them is left when it reports their end, or when it ends itself."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from rota.executors.process import process_tree, protect_secrets, spawner
from rota.executors.process.process_tree import Process
from rota.executors.process.spawned import ExitStatus, Spawned
from rota.executors.process.spawner import Spawner
from rota.executors.process.started_processes import Refused
from tests.support.waiting import eventually

PROGRAMS = Path(__file__).with_name("programs")
FAMILY = str(PROGRAMS / "family.py")
SIGNAL_SETS = ("SigBlk", "SigIgn", "SigCgt")
LIBRARYS_OWN = 0b11 << 31
"""Signals 32 and 33, which the C library keeps for itself: no program can set them."""
PIDS_GROUPS = Path("/sys/fs/cgroup/pids")


@pytest.fixture
async def on() -> AsyncIterator[Spawner]:
    on = Spawner()
    yield on
    on.close()
    await on.closed()


@pytest.fixture
def nowhere() -> Iterator[int]:
    with Path(os.devnull).open("wb") as file:
        yield file.fileno()


async def spawn(on: Spawner, out: int, *argv: str, memory_bytes: int | None = None) -> Spawned:
    return await on.spawn(argv, dict(os.environ), None, out, out, memory_bytes=memory_bytes)


async def end_of(on: Spawner, out: int, *argv: str) -> ExitStatus:
    return await (await spawn(on, out, *argv)).wait()


async def family(on: Spawner, out: int, file: Path, then: str) -> tuple[Spawned, list[Process]]:
    """A command that has started processes which try to escape in every known way."""
    spawned = await spawn(on, out, sys.executable, FAMILY, str(file), then)
    await asyncio.to_thread(eventually, file.exists)
    return spawned, members(file)


def members(file: Path) -> list[Process]:
    """The processes whose pids are in the file and that still exist."""
    return [process for process in map(process_tree.read, map(int, file.read_text().split())) if process is not None]


async def test_exit_codes_and_signals_are_reported(on: Spawner, nowhere: int) -> None:
    assert (await end_of(on, nowhere, "sh", "-c", "exit 0")).exit_code == 0
    assert (await end_of(on, nowhere, "sh", "-c", "exit 7")).exit_code == 7
    ended = await end_of(on, nowhere, "sh", "-c", "kill -SEGV $$")
    assert (ended.exit_code, ended.signal, ended.error) == (None, signal.SIGSEGV, None)


async def test_processor_time_and_memory_of_a_command_are_reported(on: Spawner, nowhere: int) -> None:
    ended = await end_of(on, nowhere, sys.executable, "-c", "held = b'x' * 60_000_000; sum(range(3_000_000))")
    assert 0 < ended.cpu_s < 60
    assert 60_000_000 < ended.peak_bytes < 200_000_000


async def test_processor_time_of_orphans_is_counted(on: Spawner, nowhere: int, tmp_path: Path) -> None:
    busy = f"sum(range(10_000_000)); open({str(tmp_path / 'done')!r}, 'w').close(); import signal; signal.pause()"
    script = '"$0" -c "$1" & while ! [ -e "$2" ]; do /bin/sleep 0.02; done'
    ended = await end_of(on, nowhere, "sh", "-c", script, sys.executable, busy, str(tmp_path / "done"))
    alone = await end_of(on, nowhere, "sh", "-c", ":")
    assert ended.exit_code == 0
    assert ended.cpu_s > alone.cpu_s + 0.05


async def test_a_command_has_its_standard_descriptors_and_no_others(on: Spawner) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        program = "import os; os.write(0, ' '.join(sorted(os.listdir('/proc/self/fd'))).encode())"
        argv = [sys.executable, "-c", program]
        spawned = await on.spawn(argv, os.environ, None, 1, 2, stdin=theirs.fileno())
        await spawned.wait()
        # The last one is that of the folder itself.
        assert ours.recv(100) == b"0 1 2 3"


async def test_the_spawner_does_not_have_the_environment_of_the_worker(
    on: Spawner, nowhere: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_DUMPABLE", "1")
    monkeypatch.setenv("ROTA_URL", "postgresql://ann:hunter2@db/shop")
    monkeypatch.setenv("LC_NUMERIC", "C")
    assert (await end_of(on, nowhere, "true")).exit_code == 0
    names = [entry.partition("=")[0] for entry in Path(f"/proc/{on.pid}/environ").read_text().split("\0") if entry]
    assert "LC_NUMERIC" in names
    assert "ROTA_URL" not in names
    assert set(names) <= {*protect_secrets.KEPT, *(name for name in names if name.startswith("LC_"))}


async def test_a_command_starts_with_the_usual_signals_in_a_session_of_its_own(on: Spawner) -> None:
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


async def test_a_very_long_command_line_is_passed_unchanged(on: Spawner) -> None:
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


async def test_no_process_is_left_after_a_normal_end(on: Spawner, nowhere: int, tmp_path: Path) -> None:
    spawned, _ = await family(on, nowhere, tmp_path / "pids", "leave")
    assert (await spawned.wait()).exit_code == 0
    assert members(tmp_path / "pids") == []


async def test_no_process_is_left_after_an_ignored_stop(on: Spawner, nowhere: int, tmp_path: Path) -> None:
    spawned, started = await family(on, nowhere, tmp_path / "pids", "stay")
    assert len(started) == 5
    spawned.stop(0.2)
    assert (await spawned.wait()).signal == signal.SIGKILL
    assert members(tmp_path / "pids") == []


async def test_no_process_is_left_after_a_kill(on: Spawner, nowhere: int, tmp_path: Path) -> None:
    spawned, _ = await family(on, nowhere, tmp_path / "pids", "stay")
    spawned.kill()
    assert (await spawned.wait()).signal == signal.SIGKILL
    assert members(tmp_path / "pids") == []


async def test_no_process_of_one_command_is_left_while_others_run(on: Spawner, nowhere: int, tmp_path: Path) -> None:
    others = [await spawn(on, nowhere, "sleep", "1000") for _ in range(3)]
    spawned, _ = await family(on, nowhere, tmp_path / "pids", "leave")
    others.append(await spawn(on, nowhere, "sleep", "1000"))
    assert (await spawned.wait()).exit_code == 0
    assert members(tmp_path / "pids") == []
    assert all(process_tree.read(other.pid) is not None for other in others)


async def test_a_daemon_that_removes_its_mark_ends_with_the_spawner(on: Spawner, nowhere: int, tmp_path: Path) -> None:
    argv = ("prlimit", "--rttime=unlimited:", sys.executable, FAMILY, str(tmp_path / "pids"), "leave")
    assert (await end_of(on, nowhere, *argv)).exit_code == 0
    assert members(tmp_path / "pids")
    on.close()
    await on.closed()
    assert members(tmp_path / "pids") == []


async def test_a_spawner_that_was_stopped_can_be_closed(on: Spawner, nowhere: int, tmp_path: Path) -> None:
    _, started = await family(on, nowhere, tmp_path / "pids", "stay")
    assert on.pid is not None
    os.kill(on.pid, signal.SIGSTOP)
    on.close()
    await asyncio.wait_for(on.closed(), 60)
    assert not any(is_there(process) for process in started)


async def test_a_stop_gives_the_whole_process_tree_its_grace(on: Spawner, nowhere: int, tmp_path: Path) -> None:
    said, ready = tmp_path / "said", tmp_path / "ready"
    polite = f"trap '/bin/sleep 0.1; echo bye > {said}; exit' TERM; : > {ready}; while :; do /bin/sleep 0.02; done"
    spawned = await spawn(on, nowhere, "sh", "-c", f'sh -c "{polite}" & wait')
    await asyncio.to_thread(eventually, ready.exists)
    spawned.stop(30)
    assert (await spawned.wait()).signal == signal.SIGTERM
    assert said.read_text() == "bye\n"


async def test_the_whole_process_tree_is_killed_above_its_memory_limit(on: Spawner, nowhere: int) -> None:
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
async def test_a_program_that_cannot_be_started_is_refused_for_good(
    on: Spawner, nowhere: int, argv: list[str], cwd: str | None, step: str, code: int
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


async def test_a_fork_that_fails_is_refused_for_now(on: Spawner, nowhere: int) -> None:
    on.start()
    assert on.pid is not None
    with no_more_processes(on.pid), pytest.raises(Refused) as refused:
        await spawn(on, nowhere, "true")
    assert (refused.value.step, refused.value.code, refused.value.is_final) == ("fork", errno.EAGAIN, False)
    assert (await end_of(on, nowhere, "true")).exit_code == 0


@pytest.mark.parametrize("spare", range(2))
async def test_a_command_is_refused_for_now_if_the_spawner_has_no_free_descriptor(
    on: Spawner, nowhere: int, spare: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_DUMPABLE", "1")  # Or only root could list the descriptors of the spawner.
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


async def test_many_commands_at_once_all_end(on: Spawner, nowhere: int) -> None:
    ends = await asyncio.gather(*(end_of(on, nowhere, "sh", "-c", f"exit {n}") for n in range(200)))
    assert [ended.exit_code for ended in ends] == list(range(200))
    assert on.pid is not None
    assert process_tree.children(on.pid) == []


async def test_a_cancelled_spawn_leaves_no_process(on: Spawner, nowhere: int) -> None:
    on.start()
    assert on.pid is not None
    for turns in range(8):
        task = asyncio.ensure_future(spawn(on, nowhere, "sleep", "1000"))
        for _ in range(turns):
            await asyncio.sleep(0)
        if task.cancel():
            with pytest.raises(asyncio.CancelledError):
                await task
        else:  # The spawner was faster.
            task.result().kill()
            await task.result().wait()
    assert (await end_of(on, nowhere, "true")).exit_code == 0
    assert process_tree.children(on.pid) == []


async def test_when_the_spawner_is_killed_its_commands_end_and_the_next_has_a_new_one(
    on: Spawner, nowhere: int, tmp_path: Path
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


async def test_sigterm_does_not_end_the_spawner(on: Spawner, nowhere: int) -> None:
    on.start()
    assert (await end_of(on, nowhere, "true")).exit_code == 0
    assert on.pid is not None
    first = on.pid
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(first, number)
    assert (await end_of(on, nowhere, "true")).exit_code == 0
    assert on.pid == first


async def test_closing_the_spawner_kills_its_processes_at_once(on: Spawner, nowhere: int, tmp_path: Path) -> None:
    spawned, _ = await family(on, nowhere, tmp_path / "pids", "stay")
    on.close()
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
        spawner_pid, fork = map(int, worker.stdout.readline().split())
        eventually(file.exists)
        started = [*members(file), process_tree.read(spawner_pid)]
        if state == "stopped":
            os.kill(spawner_pid, signal.SIGSTOP)
        worker.kill()
        worker.wait()
        try:
            assert len(started) == 6
            eventually(lambda: not any(process and is_there(process) for process in started))
        finally:
            if fork:
                os.kill(fork, signal.SIGKILL)


def test_orphans_of_a_spawner_that_was_killed_with_its_worker_are_found_by_their_mark(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    argv = [sys.executable, str(PROGRAMS / "worker.py"), FAMILY, str(file), "alone"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        spawner_pid = int(worker.stdout.readline().split()[0])
        eventually(file.exists)
        started = members(file)
        assert not {process.pid for process in started} & {process.pid for process in process_tree.left_behind()}
        os.kill(spawner_pid, signal.SIGSTOP)
        worker.send_signal(signal.SIGSTOP)
        os.kill(spawner_pid, signal.SIGKILL)
        worker.kill()
        worker.wait()
    eventually(lambda: (one := process_tree.read(spawner_pid)) is None or one.is_dead, what="the end of the spawner")
    found = {process.pid for process in process_tree.left_behind()}
    # A worker of another test may have started meanwhile, and have ended them.
    assert all(process.pid in found or not is_there(process) for process in started)
    process_tree.kill(lambda: started)
    eventually(lambda: not any(is_there(process) for process in started))


def is_there(process: Process) -> bool:
    now = process_tree.read(process.pid)
    return now is not None and now.start == process.start and not now.is_dead


async def test_an_event_loop_has_one_spawner_until_it_is_closed() -> None:
    first = spawner.shared()
    assert spawner.shared() is first
    first.close()
    assert spawner.shared() is not first


async def test_no_descriptor_is_left_open_when_the_spawner_is_closed(nowhere: int) -> None:
    before = os.listdir("/proc/self/fd")
    on = Spawner()
    assert (await end_of(on, nowhere, "true")).exit_code == 0
    on.close()
    await on.closed()
    assert os.listdir("/proc/self/fd") == before


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[bytes]]:
    """Stands for a worker process that a spawner serves."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def served(on: Spawner, worker: subprocess.Popen[bytes]) -> Spawner:
    """The spawner as that worker process would have it."""
    end, there = spawner.pair()
    on.serve(worker.pid, end)
    end.close()
    assert on.pid is not None
    return Spawner((there.detach(), on.pid))


async def test_malformed_data_from_a_worker_process_ends_only_its_own_commands(
    on: Spawner, nowhere: int, worker: subprocess.Popen[bytes]
) -> None:
    kept, rude = await spawn(on, nowhere, "sleep", "1000"), served(on, worker)
    other = await spawn(rude, nowhere, "sleep", "1000")
    assert rude._connection is not None
    rude._connection._socket.send(b".{")
    assert (await asyncio.wait_for(other.wait(), 60)).error is not None
    assert process_tree.read(other.pid) is None
    assert not kept.has_ended
    assert (await end_of(on, nowhere, "sh", "-c", "exit 5")).exit_code == 5
    rude.close()


async def test_commands_of_a_worker_process_end_with_it(
    on: Spawner, nowhere: int, tmp_path: Path, worker: subprocess.Popen[bytes]
) -> None:
    spawns = served(on, worker)
    spawned, started = await family(spawns, nowhere, tmp_path / "pids", "stay")
    worker.kill()
    assert (await asyncio.wait_for(spawned.wait(), 60)).error is not None
    assert not any(is_there(process) for process in started)
    spawns.close()
