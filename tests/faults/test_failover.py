"""A standby takes over: the old server is read-only first, or simply gone, and the URL names both."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.scene import FIRST_CLAIM_S, Scene
from tests.support import postgres
from tests.support.daemons import LOCALHOST
from tests.support.postgres import USER, PostgresServer

QUICK = {"recovery_init_sync_method": "syncfs"}


@pytest.fixture
def pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    if reason := postgres.missing():
        pytest.skip(reason)
    with PostgresServer(durable=True, settings=QUICK) as primary:
        primary.create_database("shop")
        with primary.standby() as standby:
            yield primary, standby


def test_nothing_is_lost_in_a_planned_switch_to_a_standby(
    pair: tuple[PostgresServer, PostgresServer], tmp_path: Path
) -> None:
    """As operators do it: the old server takes no more writes, the standby catches up, then it is promoted."""
    primary, standby = pair
    with Scene(tmp_path, _both(primary, standby), direct=primary.url("shop")) as scene:
        scene.fill(100)
        worker = scene.worker("--concurrency", "4")
        scene.callers(4)
        threading.Event().wait(0.4)
        primary.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        primary.execute("SELECT pg_reload_conf()")
        threading.Event().wait(0.5)
        primary.wait_for_standby()
        standby.promote()
        scene.direct = standby.url("shop")
        assert scene.first_claim_after(scene.now()) < FIRST_CLAIM_S
        scene.check()
        assert len(worker.complaints()) <= 12, worker.log()


def test_nothing_is_lost_when_the_primary_dies_and_a_synchronous_standby_is_promoted(
    pair: tuple[PostgresServer, PostgresServer], tmp_path: Path
) -> None:
    """A commit is on both before it is acknowledged. A commit under way when the primary dies may be there or not."""
    primary, standby = pair
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.execute("SELECT pg_reload_conf()")
    standby.execute("SELECT 1")
    with Scene(tmp_path, _both(primary, standby), direct=primary.url("shop")) as scene:
        scene.fill(100)
        worker = scene.worker("--concurrency", "4")
        callers = scene.callers(12, pause_s=0.001)
        threading.Event().wait(1)
        primary.stop("immediate")
        # The new one must not wait for a standby of its own: it took the setting over with the data.
        standby.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
        standby.execute("SELECT pg_reload_conf()")
        standby.promote()
        scene.direct = standby.url("shop")
        assert scene.first_claim_after(scene.now()) < FIRST_CLAIM_S
        scene.check()
        assert callers.refusals == []
        assert len(worker.complaints()) <= 12, worker.log()


def _both(primary: PostgresServer, standby: PostgresServer) -> str:
    return f"postgresql://{USER}@{LOCALHOST}:{primary.port},{LOCALHOST}:{standby.port}/shop"
