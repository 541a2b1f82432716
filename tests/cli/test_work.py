"""`rota worker` and `rota dev`: real processes that run real jobs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cli.shell import HANG_S, Seed, Shell
from tests.cli.test_deploys import HOURLY, schedules, start
from tests.support.waiting import eventually


def test_a_worker_serves_only_its_queues(shell: Shell, worker: Callable[..., None]) -> None:
    worker("--queues", "mail", "--concurrency", "3", "--lease", "2s", "--grace", "1s", "--verbose")
    id = shell.ok("enqueue", "--load", "shop:app", "fail").out.strip()
    assert shell.ok("enqueue", "send", "to=a", "--wait").rows == "1 x hi to a"
    (row,) = shell.ok("workers", "--json").rows
    assert (row["queues"], row["slots"], row["state"]) == (["mail"], 3, "live")
    why = shell.ok("show", id, "--json").rows["why"]
    assert why["text"].startswith("no live worker of app shop serves queue default")


def test_two_processes_and_a_namespace(shell: Shell, worker: Callable[..., None]) -> None:
    worker("--processes", "2", "--namespace", "east")
    words = ["--namespace", "east"]
    assert shell.ok("enqueue", "--load", "shop:app", "send", "to=a", "--wait", *words).rows == "1 x hi to a"
    assert shell.ok("workers", "--json").rows == []
    assert 1 <= len(shell.ok("workers", "--json", *words).rows) <= 2


def test_a_running_execution_can_be_cancelled(shell: Shell, worker: Callable[..., None]) -> None:
    worker()
    shell.ok("enqueue", "--load", "shop:app", "send", "to=a", "--wait")
    waiting = shell.start("enqueue", "hang", "--wait")
    assert waiting.stderr is not None
    id = waiting.stderr.readline().split(":")[0].strip()
    while shell.ok("show", id, "--json").rows["status"] != "running":
        pass
    assert shell.ok("cancel", id).out == f"{id}  running\n"
    _, err = waiting.communicate(timeout=HANG_S)
    assert waiting.returncode == 1
    assert err == f"rota: execution {id} was cancelled\n"


def test_a_worker_warns_of_misspelt_settings_and_of_an_app_without_jobs(shell: Shell) -> None:
    (shell.folder / "empty.py").write_text("from rota import App\napp = App('empty')\n")
    shell.env["ROTA_CONCURENCY"] = "3"
    process = shell.start("worker", "empty:app")
    assert process.stderr is not None
    log = ""
    while "app empty has no jobs, so there is nothing to do" not in log:
        log += process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    _, rest = process.communicate(timeout=HANG_S)
    warning = "in the environment: ROTA_CONCURENCY is not a setting, did you mean ROTA_CONCURRENCY?"
    assert (log + rest).count(warning) == 1


def test_a_worker_says_what_it_runs_and_that_it_has_stopped(shell: Shell) -> None:
    process = shell.start("worker", "shop:app", "--queues", "mail,default")
    assert process.stderr is not None
    line = ""
    while "has loaded app shop" not in line:
        line = process.stderr.readline()
    assert line.endswith("rota.db; it runs send, fail, hang from the queues mail, default\n")
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=HANG_S)
    assert log.endswith("rota.engine: stopped\n")


def test_a_resource_that_is_given_twice_is_refused(shell: Shell) -> None:
    line = shell.refused("worker", "shop:app", "--resource", "gpu=1", "--resource", "gpu=2")
    assert "--resource gpu is given twice" in line


def test_dev_introduces_itself_logs_and_stops_in_order(shell: Shell) -> None:
    process = shell.start("dev", "shop:app")
    assert process.stderr is not None
    banner = ""
    while "Ctrl-C" not in banner:
        banner += process.stderr.readline()
    assert f"app shop on {shell.folder / 'rota.db'}" in banner
    assert "send(to: str, subject?: str, copies?: int)" in banner
    assert "rota enqueue send to=… --wait" in banner
    assert shell.ok("enqueue", "send", "to=a", "--wait").rows == "1 x hi to a"
    assert shell("enqueue", "fail", "text=\x1b[31mred", "--wait").code == 1
    process.send_signal(signal.SIGINT)
    _, log = process.communicate(timeout=HANG_S)
    assert process.returncode == 0
    assert re.search(r'send [0-9a-f-]{36} succeeded "1 x hi to a"', log)
    assert re.search(r"fail [0-9a-f-]{36} failed, attempt 1: ValueError: \\x1b\[31mred", log)
    assert log.endswith("stopped; unfinished executions continue at the next start\n")


BATCHES = """
from rota import App

app = App("batches")

@app.job(retry=1)
def publish(name: str) -> str:
    if name == "b":
        raise RuntimeError("no network")
    return name

@app.workflow
def batch(names: list[str]) -> list[str]:
    return publish.map(names)

@app.workflow(cron="0 2 * * *", tz="Europe/Berlin")
def nightly() -> str:
    return publish.step("n")
"""


def test_dev_names_workflows_and_schedules_and_logs_runs_with_their_steps(shell: Shell) -> None:
    (shell.folder / "batches.py").write_text(BATCHES)
    process = shell.start("dev", "batches:app")
    assert process.stderr is not None
    banner = ""
    while "Ctrl-C" not in banner:
        banner += process.stderr.readline()
    assert "its workflows:\n  batch(names: list[str])\n  nightly()\n" in banner
    assert "its schedules:\n  nightly: at 02:00 every day, in Europe/Berlin\n" in banner
    assert "  rota start batch names=… --wait\n  rota runs\n" in banner
    assert shell.ok("start", "batch", 'names=["a"]', "--wait").rows == ["a"]
    bad = shell.ok("start", "batch", 'names=["a", "b"]').out.strip()
    log = ""
    while not re.search(rf"rota.runs: batch …{bad[-8:]} ", log):
        log += process.stderr.readline()
    process.send_signal(signal.SIGINT)
    log += process.communicate(timeout=HANG_S)[1]
    assert re.search(r'INFO rota.runs: batch …[0-9a-f]{8} succeeded \["a"\]\n', log)
    failed = "failed: step publish failed: item 1: RuntimeError: no network"
    assert re.search(rf"ERROR rota.runs: batch …{bad[-8:]} {failed}\n", log)
    step = rf"publish [0-9a-f-]{{36}} \(step publish\[1\] of batch …{bad[-8:]}\) failed, attempt 1: RuntimeError"
    assert re.search(step, log)
    assert "uvicorn" not in log


@pytest.fixture
def started(shell: Shell) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a command that runs until it is stopped; after a failure it is killed."""
    processes: list[subprocess.Popen[str]] = []

    def start(*words: str, until: str) -> subprocess.Popen[str]:
        process = shell.start(*words)
        processes.append(process)
        assert process.stderr is not None
        while until not in process.stderr.readline():
            pass
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def worker_ids(shell: Shell) -> list[int]:
    return [int(row["workerId"]) for row in shell.ok("workers", "--json").rows]


def workers_of_the_app(shell: Shell) -> list[dict[str, Any]]:
    """Without the worker that runs jobs of the HTTP API."""
    return [row for row in shell.ok("workers", "--json").rows if row["app"] == "shop"]


def test_a_process_of_dev_that_is_replaced_does_not_undo_a_newer_deploy(
    shell: Shell, seed: Seed, started: Callable[..., subprocess.Popen[str]]
) -> None:
    dev = started("dev", "shop:app", until="Ctrl-C")
    (first,) = eventually(lambda: workers_of_the_app(shell), what="the worker of rota dev")
    start(seed, backup=HOURLY)
    os.kill(first["pid"], signal.SIGKILL)
    eventually(lambda: max(worker_ids(shell)) > int(first["workerId"]) + 1, what="another")
    assert schedules(seed) == ["backup"]
    dev.send_signal(signal.SIGTERM)
    dev.communicate(timeout=HANG_S)


def test_dev_serves_the_api_after_its_worker_was_drained(
    shell: Shell, started: Callable[..., subprocess.Popen[str]]
) -> None:
    dev = started("dev", "shop:app", "--port", "0", until="Ctrl-C")
    assert dev.stderr is not None
    (worker,) = eventually(lambda: workers_of_the_app(shell), what="the worker of rota dev")
    shell.ok("workers", "drain", worker["workerId"])
    while "the HTTP API still answers" not in dev.stderr.readline():
        pass
    assert dev.poll() is None
    dev.send_signal(signal.SIGINT)
    _, log = dev.communicate(timeout=HANG_S)
    assert (dev.returncode, log.splitlines()[-1]) == (0, "stopped; unfinished executions continue at the next start")


def test_a_worker_that_gets_many_stop_signals_ends_in_order(
    started: Callable[..., subprocess.Popen[str]],
) -> None:
    worker = started("worker", "shop:app", until="has loaded app")

    def tell_again() -> bool:
        worker.send_signal(signal.SIGTERM)
        return worker.poll() is not None

    eventually(tell_again, what="its end")
    assert worker.returncode == 0


def test_a_worker_that_crashes_says_where(started: Callable[..., subprocess.Popen[str]]) -> None:
    worker = started("worker", "shop:app", until="has loaded app")
    worker.send_signal(signal.SIGSEGV)
    _, log = worker.communicate(timeout=HANG_S)
    assert worker.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in log
    assert "(most recent call first):" in log  # Not all of it: other threads run on while theirs is written.
