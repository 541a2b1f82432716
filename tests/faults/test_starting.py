"""Starting against a database that is down, or that refuses the connection."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest
from psycopg import sql

from rota.domain.errors import StoreError, StoreUnavailable
from rota.store.postgres.store import PostgresStore
from tests.faults.holding import hold
from tests.faults.scene import Scene, Worker
from tests.faults.test_urls import require_password
from tests.support.databases import fresh_database
from tests.support.postgres import PostgresServer
from tests.support.proving import proof
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site

SECRET = "open-sesame"


def test_a_worker_waits_for_a_server_that_is_down_and_logs_it_once(server: PostgresServer, tmp_path: Path) -> None:
    with Scene(tmp_path, server.create_database(), busy_s=1) as scene:
        scene.fill(3)
        server.stop()
        worker = scene.worker("--concurrency", "4", wait=False)
        eventually(lambda: "waiting for the database" in worker.log(), what="a word about it")
        threading.Event().wait(1.5)  # Longer than a call waits: a worker waits for as long as it takes.
        worker.check()
        server.start()
        scene.wait_until_all_ended()
        said = [line for line in worker.complaints() if "cannot be reached" in line]
        assert [line.count("waiting for the database") for line in said] == [1, 0], worker.log()
        assert "cannot join yet" in said[1], worker.log()


@pytest.mark.parametrize("database", ["sqlite", proof("postgres")])
def test_a_worker_waits_for_a_lock_that_is_held_for_longer_than_a_call_waits(database: str, tmp_path: Path) -> None:
    """As when a stopped process holds it. The lock is held at the first write of the first child."""
    with Site(tmp_path, fresh_database() if database == "postgres" else "") as site:
        with hold(site.url, ["app"]):
            worker = site.start_worker(busy_s=0.5)
            eventually(lambda: worker.check() and "cannot join yet" in worker.log(), what="a word about the lock")
            threading.Event().wait(1)  # Longer than a call waits.
            worker.check()
        assert site.enqueue("echo", "hello").result(PATIENCE_S) == "hello"


def test_a_program_waits_for_a_server_that_is_down(server: PostgresServer, caplog: pytest.LogCaptureFixture) -> None:
    url = server.create_database()
    server.stop()
    threading.Timer(1.5, server.start).start()
    with caplog.at_level(logging.WARNING):
        PostgresStore(url, busy_s=20).close()
    assert len(caplog.records) == 1
    assert "waiting for the database" in caplog.text


def test_a_program_does_not_wait_for_ever(server: PostgresServer) -> None:
    url = server.create_database()
    server.stop()
    with pytest.raises(StoreUnavailable, match=r"cannot be reached: .*refused"):
        PostgresStore(url, busy_s=0.5)


def test_a_start_that_the_server_refuses_is_not_retried(server: PostgresServer, tmp_path: Path) -> None:
    """Wrong password, no such database, no right to make the schema, a schema from the future: said at once."""
    url = server.create_database("shop")
    server.execute(sql.SQL("CREATE ROLE stranger LOGIN PASSWORD {}").format(sql.Literal(SECRET)))
    server.execute("ALTER DATABASE shop OWNER TO postgres")
    require_password(server, "stranger")
    place = url.partition("@")[2]
    _refused(tmp_path, f"postgresql://stranger:not-{SECRET}@{place}", "password authentication failed")
    _refused(tmp_path, url.replace("/shop", "/nowhere"), 'database "nowhere" does not exist')
    _refused(tmp_path, url.replace("rota@", "missing@"), 'role "missing" does not exist')
    _refused(tmp_path, f"postgresql://stranger:{SECRET}@{place}", "may not create the schema rota")
    server.execute("ALTER DATABASE shop OWNER TO rota")
    PostgresStore(url).close()
    server.execute("INSERT INTO rota.migration VALUES (999, 'tomorrow', 'x', 0)", database="shop")
    _refused(tmp_path, url, "migration 999, which this version of Rota does not know: upgrade Rota")


def _refused(folder: Path, url: str, reason: str) -> None:
    """A worker and a program print the reason at once, on one line, without the password."""
    scene = Scene.__new__(Scene)
    scene.folder, scene.url, scene.settings = folder, url, {"busy_s": 60}
    worker = Worker(folder, (), scene.environment())
    try:
        assert worker.wait() == 2, worker.log()
    finally:
        worker.close()
    assert reason in worker.log()
    assert "Traceback" not in worker.log()
    assert SECRET not in worker.log()
    assert len(worker.log().splitlines()) == 1, worker.log()
    with pytest.raises(StoreError) as caught:
        PostgresStore(url, busy_s=60)
    assert reason in str(caught.value)
    assert SECRET not in str(caught.value)
