"""Other sessions hold locks, snapshots or connections, or cause deadlocks."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from rota.domain.errors import StoreUnavailable
from rota.ops import fleet
from rota.store.port import Tx
from rota.store.postgres import link as postgres_link
from rota.store.postgres.store import PostgresStore
from tests.faults.scene import FIRST_CLAIM_S, Scene
from tests.support import postgres
from tests.support.postgres import PostgresServer
from tests.support.waiting import eventually


def test_nothing_is_lost_while_locks_queue_behind_an_alter_table(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Callers here time out soon and try again, those in the worker wait; both succeed."""
    monkeypatch.setitem(postgres_link.SETTINGS, "lock_timeout", "300ms")
    with Scene(tmp_path, url, lease_s=2) as scene:
        scene.fill(100)
        worker = scene.worker("--concurrency", "4")
        children = worker.children()
        callers = scene.callers(4)
        threading.Event().wait(0.3)
        with postgres.shared().connect(url.rpartition("/")[2]) as other:
            other.autocommit = False
            other.execute(
                "SET deadlock_timeout = '60s'"
            )  # In a deadlock with a worker that claims meanwhile, the worker's transaction is ended.
            other.execute("LOCK TABLE rota.execution, rota.ready IN ACCESS EXCLUSIVE MODE")
            other.execute("ALTER TABLE rota.ready SET (fillfactor = 90)")
            threading.Event().wait(3)  # Longer than the lease: heartbeats do not queue with the others.
        assert scene.first_claim_after(scene.now()) < FIRST_CLAIM_S
        scene.check()
        assert callers.refusals == []
        assert worker.children() == children
        assert worker.complaints() == []


def test_a_call_that_cannot_get_its_lock_is_refused_after_its_timeout(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(postgres_link.SETTINGS, "lock_timeout", "200ms")
    store = PostgresStore(url, busy_s=1)
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE rota.worker IN ACCESS EXCLUSIVE MODE")
        before = time.monotonic()
        with pytest.raises(StoreUnavailable, match="nothing was accepted"):
            store.transact(lambda tx: tx.run("set_worker_state", worker=0, state="live"))
        assert time.monotonic() - before < 5
    store.close()


def test_an_old_snapshot_only_slows_claims(url: str, tmp_path: Path) -> None:
    with Scene(tmp_path, url) as scene, psycopg.connect(url) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute("SELECT count(*) FROM rota.execution")
        worker = scene.worker("--concurrency", "8")
        scene.fill(300, body_s=0)
        scene.callers(4)
        threading.Event().wait(1)
        scene.check()
        assert worker.complaints() == []
        assert other.execute("SELECT count(*) FROM rota.execution").fetchone() == (0,)


def test_a_transaction_that_a_deadlock_ended_is_repeated(url: str) -> None:
    """The other side would wait for long, so PostgreSQL ends our transaction."""
    store = PostgresStore(url)
    first, second = (store.transact(_add_worker) for _ in range(2))
    has_first, may_go_on = threading.Event(), threading.Event()
    tries = []

    def both(tx: Tx) -> None:
        tries.append(1)
        tx.rows("lock_worker", worker=first)
        has_first.set()
        may_go_on.wait(20)
        tx.rows("lock_worker", worker=second)

    with postgres.shared().connect(url.rpartition("/")[2]) as other:
        other.autocommit = False
        other.execute("SET deadlock_timeout = '60s'")
        other.execute("SELECT 1 FROM rota.worker WHERE id = %s FOR UPDATE", (second,))
        future = store.submit(both)
        assert has_first.wait(20)
        waiting = threading.Thread(
            target=lambda: other.execute("SELECT 1 FROM rota.worker WHERE id = %s FOR UPDATE", (first,))
        )
        waiting.start()
        eventually(lambda: _is_waiting(url), what="the other one, who waits for us")
        may_go_on.set()
        waiting.join(20)
        other.rollback()
        future.result(20)
    assert len(tries) >= 2
    store.close()


def test_rota_waits_while_the_server_has_no_free_connection(tmp_path: Path) -> None:
    if reason := postgres.missing():
        pytest.skip(reason)
    settings = {"max_connections": 22, "superuser_reserved_connections": 3}
    with (
        PostgresServer(settings=settings) as server,
        Scene(tmp_path, server.create_database(), busy_s=3, lease_s=10) as scene,
    ):
        scene.direct = server.url(scene.url.rpartition("/")[2], postgres.SUPERUSER)
        scene.fill(50)
        worker = scene.worker("--concurrency", "4")
        scene.callers(4)
        with _all_taken(server, scene.url):
            before = time.monotonic()
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                PostgresStore(scene.url, busy_s=1)
            assert time.monotonic() - before < 5
            threading.Event().wait(3)
        assert scene.first_claim_after(scene.now()) < FIRST_CLAIM_S
        scene.check()
        assert len(worker.complaints()) <= 12, worker.log()


@contextlib.contextmanager
def _all_taken(server: PostgresServer, url: str) -> Iterator[None]:
    """Terminates other sessions until this test has all the connections for ordinary users."""
    with contextlib.ExitStack() as stack:
        quiet_rounds = 0
        while quiet_rounds < 3:  # A session that was just ended frees its connection a little later.
            taken = 0
            with contextlib.suppress(psycopg.OperationalError):
                while True:
                    stack.enter_context(psycopg.connect(server.url("postgres", postgres.USER)))
                    taken += 1
            is_quiet = not server.terminate_backends(url.rpartition("/")[2]) and not taken
            quiet_rounds = quiet_rounds + 1 if is_quiet else 0
            time.sleep(0.05)  # sleep: between two checks
        yield


def _add_worker(tx: Tx) -> int:
    known: dict[str, object] = {"app": "a", "name": "n", "host": "h", "version": "v", "queues": None, "jobs": []}
    return fleet.join(tx, fleet.Newcomer(namespace="default", pid=1, concurrency=1, **known), 1000.0)  # type: ignore[arg-type]


def _is_waiting(url: str) -> bool:
    """Asked as superuser: others do not see what a superuser waits for."""
    query = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return bool(postgres.shared().execute(query, database=url.rpartition("/")[2]))
