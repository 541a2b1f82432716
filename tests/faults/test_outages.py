"""The server goes away and comes back: restarts, crashes, outages shorter and longer than a lease, cut connections."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.faults.scene import FIRST_CLAIM_S, Scene
from tests.support import postgres
from tests.support.postgres import PostgresServer, StopMode
from tests.support.proving import proof
from tests.support.waiting import eventually

OUTAGE_S = float(os.environ.get("ROTA_TESTS_OUTAGE_S", "5"))
"""How long the long outage is; the issue asks for a minute, which is for those who have the time."""
LOOPS = 6
"""Loops that may each say once that the store is away and once that it is back."""


@pytest.mark.parametrize("mode", [proof("fast"), "immediate"])
def test_a_restart_loses_nothing_and_doubles_nothing(server: PostgresServer, tmp_path: Path, mode: StopMode) -> None:
    with Scene(tmp_path, server.create_database()) as scene:
        scene.fill(300)
        worker = scene.worker("--concurrency", "4")
        scene.callers(4)
        scene.caller_process()
        for _ in range(3):
            _wait(0.4)
            server.restart(mode)
            assert scene.first_claim_after(scene.now()) < FIRST_CLAIM_S
        scene.check()
        assert len(worker.complaints()) <= 2 * LOOPS, worker.log()


def test_an_outage_longer_than_the_lease_costs_no_attempt_and_no_crash(server: PostgresServer, tmp_path: Path) -> None:
    """The supervisor must end the child, which holds executions; that is not the fault of what they run.

    Calls give up before the server is back: the supervisor must go on trying to give back what the child held.
    """
    with Scene(tmp_path, server.create_database(), lease_s=2, busy_s=OUTAGE_S / 2) as scene:
        worker = scene.worker("--concurrency", "4")
        held = scene.app.jobs["endless"].enqueue_many([{}] * 3)
        eventually(lambda: scene.value("SELECT count(*) FROM running") == 3, what="executions that run")
        scene.fill(100)
        scene.callers(2)
        _wait(0.3)
        server.stop()
        _wait(OUTAGE_S)
        during = worker.complaints()
        server.start()
        assert scene.first_claim_after(scene.now()) < FIRST_CLAIM_S
        eventually(lambda: all(handle.info().fence == 2 for handle in held), what="a second start")
        for handle in held:
            (attempt,) = handle.attempts()
            assert (attempt.status, attempt.reason) == ("given_back", "lease_lost")
            handle.cancel()
        scene.check()
        assert scene.value("SELECT count(*) FROM finished WHERE status = 'lost' OR crashes > 0") == 0
        assert len(during) <= 2 * LOOPS, worker.log()


def test_an_outage_shorter_than_the_lease_interrupts_no_execution(server: PostgresServer, tmp_path: Path) -> None:
    with Scene(tmp_path, server.create_database(), lease_s=20) as scene:
        worker = scene.worker("--concurrency", "4")
        scene.fill(3, body_s=1.5)
        eventually(lambda: scene.value("SELECT count(*) FROM running") == 3, what="executions that run")
        scene.fill(100)
        children = worker.children()
        scene.callers(2)
        server.stop()
        _wait(2)
        server.start()
        assert scene.first_claim_after(scene.now()) < FIRST_CLAIM_S
        scene.check()
        assert worker.children() == children
        assert scene.value("SELECT max(fence) FROM finished") == 1, "something ran twice"
        assert worker.complaints() == []


def test_connections_that_break_all_the_time_lose_nothing(url: str, tmp_path: Path) -> None:
    server, database = postgres.shared(), url.rpartition("/")[2]
    with Scene(tmp_path, url) as scene:
        worker = scene.worker("--concurrency", "4")
        scene.fill(200)
        scene.callers(6, pause_s=0.01)
        scene.caller_process()
        cut = 0
        for _ in range(40):
            cut += server.terminate_backends(database)
            _wait(0.05)
        assert cut > 40
        assert scene.first_claim_after(scene.now()) < FIRST_CLAIM_S
        scene.check()
        assert len(worker.complaints()) <= 2 * LOOPS, worker.log()


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)
