"""A full disk: calls are refused, and accepted executions wait and resume when there is space."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg import sql

from rota.domain.errors import StoreUnavailable
from tests.faults.scene import Scene
from tests.support import daemons
from tests.support.daemons import OwnedFolder
from tests.support.postgres import USER, PostgresServer
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site, Worker, is_alive


@pytest.fixture
def disk() -> Iterator[Path]:
    """A disk of a few megabytes, if we may make one."""
    folder = OwnedFolder("disk")
    room = folder.make("room")
    servant = daemons.account()
    options = f"size=40m,mode=0700,uid={servant.user},gid={servant.group}"
    mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(room)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        folder.close()
        pytest.skip("only root may make a small disk")
    yield room
    subprocess.run(["umount", "--lazy", str(room)], check=True)
    folder.close()


def test_a_full_disk_loses_nothing(server: PostgresServer, disk: Path, tmp_path: Path) -> None:
    place = disk / "tables"
    place.mkdir(mode=0o700)
    servant = daemons.account()
    os.chown(place, servant.user or 0, servant.group or 0)
    server.execute(sql.SQL("CREATE TABLESPACE small LOCATION {}").format(sql.Literal(str(place))))
    server.execute(sql.SQL("CREATE DATABASE small OWNER {} TABLESPACE small").format(sql.Identifier(USER)))
    with Scene(tmp_path, server.url("small"), busy_s=3) as scene:
        worker = scene.worker("--concurrency", "4")
        scene.fill(300)
        callers = scene.callers(4, pause_s=0.005)
        _fill(disk / "filler")
        eventually(lambda: len(callers.refusals) > 10, what="refusals")
        threading.Event().wait(1)
        assert all("no room left" in refusal for refusal in callers.refusals), callers.refusals
        (disk / "filler").unlink()
        scene.check()
        assert len(worker.complaints()) <= 12, worker.log()
    server.drop_database("small")
    server.execute("DROP TABLESPACE small")


def test_a_disk_that_is_full_for_longer_than_the_lease_charges_no_crash(disk: Path, tmp_path: Path) -> None:
    """The worker process and its supervisor both notice that the lease has ended; either may be first."""
    with Site(tmp_path, f"sqlite:///{disk}/rota.db") as site:
        worker = site.worker(lease_s=1, busy_s=1)
        x = site.enqueue("gated", "go")
        child = site.wait_started(x)
        _fill(disk / "filler")
        with contextlib.suppress(StoreUnavailable):
            while True:
                site.app.jobs["echo"].options(delay="1d").enqueue("x" * 20_000)
        eventually(lambda: not is_alive(child), what="the end of a process without a lease")
        (disk / "filler").unlink()
        site.wait_started(x, fence=2)
        site.open("go")
        assert x.result(PATIENCE_S) == "done"
        assert (x.info().crashes, x.attempts()[0].status, x.attempts()[0].reason) == (0, "given_back", "lease_lost")
        lost = [line for line in worker.log().splitlines() if " lease " in line and "ERROR" in line]
        # The worker process may notice before its supervisor could tell it why.
        assert any("no space left" in line for line in lost), lost


def test_a_worker_that_cannot_join_because_the_disk_is_full_can_be_stopped(disk: Path, tmp_path: Path) -> None:
    site = Site(disk)
    _fill(disk / "filler")
    with contextlib.suppress(StoreUnavailable):
        while True:
            site.enqueue("echo", "x" * 20_000)
    worker = Worker(tmp_path, site.url, (), {"ROTA_BUSY_S": "1"})
    try:
        eventually(lambda: worker.check() and "cannot join yet" in worker.log(), what="a worker without room to join")
        words = [sys.executable, "-m", "rota", "--url", site.url, "doctor", "--json"]
        found = json.loads(subprocess.run(words, capture_output=True, check=False).stdout)
        assert [one["advice"] for one in found if one["check"] == "write"] == ["free some space on its disk"]
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.log()
    finally:
        worker.close()
        site.close()


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 4096)
