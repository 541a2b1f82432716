"""Commands and isolated jobs under a real worker: what they do to their process does not affect the worker."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from rota import Status
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site, is_alive

pytestmark = pytest.mark.xdist_group("elsewhere")


def test_a_process_is_used_again(served: Site) -> None:
    pids = {served.enqueue("alone", number).result(PATIENCE_S)[1] for number in range(10)}
    assert len(pids) <= (os.cpu_count() or 2), "kept warm"
    assert pids.isdisjoint(row.pid for row in served.live()), "not the worker's own"


def test_processor_time_and_memory_are_kept(served: Site) -> None:
    x = served.enqueue("alone", 1)
    x.result(PATIENCE_S)
    (usage,) = served.usage(x)
    assert usage.peak_bytes > 1_000_000
    assert usage.signal is None


def test_an_isolated_job_that_ignores_signals_is_killed_after_its_timeout(served: Site) -> None:
    x = served.enqueue("alone_deaf")
    pid = served.wait_started(x)
    served.wait_for(x, Status.FAILED)
    assert x.info().reason == "timeout"
    assert not is_alive(pid)
    (usage,) = served.usage(x)
    assert usage.signal == "SIGKILL"
    assert usage.cpu_s > 0
    assert served.enqueue("alone", 2).result(PATIENCE_S)[0] == 2


def test_an_isolated_job_can_clean_up_when_it_is_stopped(served: Site) -> None:
    x = served.enqueue("tidy")
    served.wait_for(x, Status.FAILED)
    assert x.info().reason == "timeout"
    assert [id for id, _, _ in served.journal("cleaned")].count(x.id) == 1


def test_a_setting_limits_the_isolated_processes(file_site: Site) -> None:
    file_site.worker("--concurrency", "20", isolated_processes=1)
    holder = file_site.enqueue("alone_async", "soon")
    file_site.wait_started(holder)
    waiting = file_site.enqueue("alone", 1)
    assert file_site.enqueue("echo", 3).result(PATIENCE_S) == 3, "the worker has claimed, and other executions run"
    explained = waiting.info().why
    assert explained is not None
    assert explained.text == "next in line; waits for a free isolated process of a worker"
    file_site.open("soon")
    waiting.result(PATIENCE_S)


def test_isolated_executions_stay_queued_while_no_process_is_free(served: Site) -> None:
    holders = [served.enqueue("alone_async", "soon") for _ in range(os.cpu_count() or 2)]
    for holder in holders:
        served.wait_started(holder)
    waiting = [served.enqueue("alone", number) for number in range(5)]
    assert served.enqueue("echo", 3).result(PATIENCE_S) == 3, "the worker has claimed, and other executions run"
    assert {one.status() for one in waiting} == {Status.QUEUED}
    served.open("soon")
    for one in (*holders, *waiting):
        one.result(PATIENCE_S)
    assert {len(one.attempts()) for one in waiting} == {1}, "none was taken too early"


def test_an_async_function_in_a_process_is_cancelled(served: Site) -> None:
    x = served.enqueue("alone_async", "never")
    served.wait_started(x)
    assert x.cancel() is not None
    served.wait_for(x, Status.CANCELLED)
    assert x.id in [id for id, _, _ in served.journal("told")]


def test_exceeding_the_memory_limit_kills_the_process_and_not_the_worker(served: Site) -> None:
    workers = [row.id for row in served.live()]
    x = served.enqueue("eats")
    served.wait_for(x, Status.FAILED)
    assert x.info().reason == "out_of_memory"
    assert "its limit is 200 MB" in (x.attempts()[0].error_message or "")
    (usage,) = served.usage(x)
    assert usage.peak_bytes > 200 * 2**20
    assert [row.id for row in served.live()] == workers


@pytest.mark.parametrize(("how", "words"), [("exit", "exit code 9"), ("fault", "SIGSEGV"), ("kill", "SIGKILL")])
def test_a_process_that_crashes_every_time_is_a_crash_loop(served: Site, how: str, words: str) -> None:
    workers = [row.id for row in served.live()]
    x = served.enqueue("crashes", how)
    served.wait_for(x, Status.FAILED)
    info = x.info()
    assert (info.reason, info.crashes, info.attempt_count) == ("crash_loop", 3, 0)
    error = str(x.attempts()[-1].error)
    assert words in error
    if how == "fault":
        assert "string_at" in error, "where it was when it crashed"
    last = "the last line before the end"
    eventually(lambda: [line.text for line in served.logs(x)].count(last) == 3, what="what each start has said")
    assert [row.id for row in served.live()] == workers, "the worker still works"


@pytest.mark.parametrize("returns", [True, False])
def test_orphans_of_an_isolated_job_are_killed_with_its_process(site: Site, returns: bool) -> None:
    worker = site.worker()
    x = site.enqueue("leaves_behind", returns=returns)
    site.wait_for(x, Status.SUCCESS, Status.FAILED)
    left = site.wait_started(x, "left")
    if returns:
        worker.signal(signal.SIGTERM)
        worker.wait()
    eventually(lambda: not is_alive(left), what="the end of what was left behind")


@pytest.mark.parametrize("victim", ["child", "supervisor"])
def test_isolated_processes_and_commands_die_with_their_worker(site: Site, victim: str, tmp_path: Path) -> None:
    worker = site.worker(lease_s=600)
    x = site.enqueue("alone_async", "never")
    y = site.enqueue("shell", script=f"echo $$ > {tmp_path}/command; exec sleep 600")
    process = site.wait_started(x)
    command = int(eventually(lambda: (tmp_path / "command").exists() and (tmp_path / "command").read_text()))
    assert is_alive(command)
    (child,) = worker.children()
    os.kill(child if victim == "child" else worker.pid, signal.SIGKILL)
    eventually(lambda: not is_alive(process) and not is_alive(command), what="the end of both")
    assert y.status() in (Status.RUNNING, Status.QUEUED)


def test_the_exit_code_of_a_command_decides_its_outcome(served: Site) -> None:
    assert served.enqueue("shell", script="echo hello; echo $ROTA_ATTEMPT").result(PATIENCE_S) == "hello\n1"
    x = served.enqueue("shell", script="echo oh no >&2; exit 3")
    served.wait_for(x, Status.FAILED)
    error = x.attempts()[0].error
    assert "exit code 3" in error["message"]
    assert "oh no" in error["traceback"]
    (usage,) = served.usage(x)
    assert usage.exit_code == 3


def test_a_command_that_ignores_sigterm_is_killed_with_its_descendants(served: Site, tmp_path: Path) -> None:
    inner = f"trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ > {tmp_path}/inner; while :; do sleep 1; done' & "
    x = served.enqueue("shell_for_a_moment", script=inner + "while :; do sleep 1; done")
    served.wait_for(x, Status.FAILED)
    assert x.info().reason == "timeout"
    pid = int((tmp_path / "inner").read_text())
    eventually(lambda: not is_alive(pid), what="the end of the grandchild")


def test_cancelling_stops_a_running_command(served: Site, tmp_path: Path) -> None:
    x = served.enqueue("shell", script=f"echo $$ > {tmp_path}/pid; exec sleep 600")
    pid = int(eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
    x.cancel()
    served.wait_for(x, Status.CANCELLED)
    assert not is_alive(pid)


def test_a_drain_gives_a_command_back_and_counts_no_attempt(site: Site, tmp_path: Path) -> None:
    worker = site.worker()
    x = site.enqueue("shell", script=f"echo $$ >> {tmp_path}/pid; exec sleep 600")
    eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), what="its start")
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    info = x.info()
    assert (x.status(), info.attempt_count, info.crashes) == (Status.QUEUED, 0, 0)
