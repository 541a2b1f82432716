"""Isolated jobs and commands under a real worker: their processes and their spawner."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from rota import App, Status
from rota.domain.lifecycle import Rules
from rota.executors.process.pool import Pool, ProcessExecutor
from rota.sdk.app import registry_of
from tests.kill.processes import spawners_of
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site, is_alive


def test_a_process_is_replaced_after_as_many_jobs_as_the_setting_says(file_site: Site) -> None:
    file_site.worker(recycle_jobs=2)
    pids = [file_site.enqueue("alone", number).result(PATIENCE_S)[1] for number in range(6)]
    assert pids[::2] == pids[1::2]
    assert len(set(pids)) == 3


def test_orphans_of_a_job_are_killed_while_its_worker_keeps_running(file_site: Site) -> None:
    file_site.worker()
    x = file_site.enqueue("leaves_behind", returns=True)
    left = file_site.wait_started(x, "left")
    file_site.wait_for(x, Status.SUCCESS)
    eventually(lambda: not is_alive(left), what="the end of what was left behind")


def test_jobs_that_die_with_the_spawner_are_not_charged(site: Site, tmp_path: Path) -> None:
    worker = site.worker()
    x = site.enqueue("alone_async", "soon")
    script = f"echo $$ >> {tmp_path}/command; while ! test -e {tmp_path}/go; do sleep 0.05; done"
    y = site.enqueue("shell", script=script)
    site.wait_started(x)
    eventually((tmp_path / "command").exists, what="the start of the command")
    (spawner,) = spawners_of(worker.pid)
    os.kill(spawner, signal.SIGKILL)
    site.wait_started(x, fence=2)
    eventually(lambda: len((tmp_path / "command").read_text().split()) == 2, what="the second start of the command")
    site.open("soon")
    (tmp_path / "go").touch()
    for one in (x, y):
        one.result(PATIENCE_S)
        assert (one.info().attempt_count, one.info().crashes) == (1, 0)
        assert [attempt.reason for attempt in one.attempts()] == ["suspected", "completed"]


def test_a_command_that_always_kills_the_spawner_is_a_crash_loop_and_no_other_is_charged(site: Site) -> None:
    site.worker("--concurrency", "4")
    innocent = [site.enqueue("alone_async", "soon") for _ in range(2)]
    for one in innocent:
        site.wait_started(one)
    x = site.enqueue("shell", script="kill -9 $PPID; sleep 600")
    site.wait_for(x, Status.FAILED)
    info = x.info()
    assert (info.reason, info.crashes, info.attempt_count) == ("crash_loop", 3, 0)
    assert "the spawner" in (x.attempts()[-1].error_message or "")
    site.open("soon")
    for one in innocent:
        assert one.result(PATIENCE_S) == "done"
        assert one.info().crashes == 0
        assert len(one.attempts()) <= 2, "in processes of their own they are not affected"


def test_a_spawner_that_a_command_stops_is_continued(file_site: Site) -> None:
    file_site.worker(lease_s=2)
    x = file_site.enqueue("shell", script='kill -STOP "$PPID"')
    file_site.wait_for(x, Status.SUCCESS)


def test_a_suspect_keeps_the_limits_of_its_job() -> None:
    app = App("limits", url="sqlite:///unused.db")

    @app.job(isolation="process", memory="200MB", grace="3s")
    def limited() -> None: ...

    @app.job
    def free() -> None: ...

    pool = Pool(["unused"], is_for_suspects=True)
    alone, wanted = registry_of(app).alone(pool), registry_of(app).targets(pool)["limited"]
    assert isinstance(wanted, ProcessExecutor)
    for name, executor in {"limited": wanted, "free": ProcessExecutor(pool, Rules())}.items():
        found = alone[name]
        assert isinstance(found, ProcessExecutor)
        assert (found.memory_bytes, found.grace_s) == (executor.memory_bytes, executor.grace_s)
    assert wanted.memory_bytes == 200 * 2**20
