"""Behind a real PgBouncer in transaction mode: everything works, with hints and without, and nothing leaks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from rota import ExecutionCancelled
from rota.ops import calendars
from rota.store.hints import Ready
from rota.store.postgres import url as postgres_url
from rota.store.postgres.link import SETTINGS, Link
from rota.store.postgres.store import PostgresStore
from tests.faults.scene import FIRST_CLAIM_S, Scene
from tests.support import pgbouncer, postgres
from tests.support.pgbouncer import PgBouncer
from tests.support.waiting import eventually


@pytest.fixture
def pooler() -> Iterator[PgBouncer]:
    pgbouncer.require()
    with PgBouncer(postgres.shared(), pool_size=4) as pooler:
        yield pooler


def test_a_pooler_is_recognised(url: str, pooler: PgBouncer) -> None:
    for way, is_pooled in ((url, False), (pooler.through(url), True)):
        link = Link(postgres_url.parse(way), "test")
        assert link.is_pooled is is_pooled
        link.close()


def test_the_engine_works_through_a_pooler_alone(url: str, pooler: PgBouncer, tmp_path: Path) -> None:
    """Without a single hint: no process can LISTEN, and all of them poll."""
    with Scene(tmp_path, pooler.through(url), direct=url) as scene:
        worker = scene.worker("--concurrency", "4")
        scene.callers(8, pause_s=0.01)
        endless = scene.app.jobs["endless"].enqueue()
        eventually(lambda: endless.status() == "running", what="a start")
        endless.cancel()
        with pytest.raises(ExecutionCancelled):
            endless.result(10)
        handle = scene.app.jobs["work"].enqueue("last")
        assert handle.result(20) == "last"
        assert scene.value("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'") == 0
        scene.app.dead.list()
        scene.stop_calling()
        scene.wait_until_all_ended()
        assert not [*scene.stored_problems()][1:], "more than the one that was not in a journal"
        assert worker.complaints() == []


def test_hints_arrive_over_a_direct_listen_url(url: str, pooler: PgBouncer, tmp_path: Path) -> None:
    """A worker that polls only every half minute would be late without them."""
    with Scene(tmp_path, pooler.through(url), direct=url, listen_url=url, poll_s=30) as scene:
        scene.worker("--concurrency", "4")
        eventually(lambda: scene.value(_LISTENERS) >= 1, what="a session that listens")
        scene.app.jobs["work"].enqueue("first").result(20)
        before = time.monotonic()
        for number in range(5):
            scene.app.jobs["work"].enqueue(f"more {number}").result(20)
        assert time.monotonic() - before < 10
        assert scene.value(_LISTENERS) <= 2, "one for the node, one for this process"


def test_no_setting_or_statement_is_left_in_pooled_connections(url: str, pooler: PgBouncer, tmp_path: Path) -> None:
    """Others share the connections: our settings and statements end with our transactions."""
    with PgBouncer(postgres.shared(), pool_size=1) as narrow:
        with psycopg.connect(narrow.through(url), autocommit=True, prepare_threshold=None) as other:
            before = _seen(other)
        with Scene(tmp_path, narrow.through(url), direct=url) as scene:
            for number in range(10):
                scene.app.jobs["work"].enqueue(f"ticket {number}").status()
            with psycopg.connect(narrow.through(url), autocommit=True, prepare_threshold=None) as other:
                assert _seen(other) == before
                assert other.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)


def test_a_pooler_that_is_killed_loses_nothing(url: str, pooler: PgBouncer, tmp_path: Path) -> None:
    with Scene(tmp_path, pooler.through(url), direct=url) as scene:
        scene.fill(100)
        worker = scene.worker("--concurrency", "4")
        scene.callers(4)
        for _ in range(2):
            pooler.kill()
            pooler.start()
            assert scene.first_claim_after(scene.now()) < FIRST_CLAIM_S
        scene.check()
        assert len(worker.complaints()) <= 12, worker.log()


_LISTENERS = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'rota hints'"""


def _seen(connection: psycopg.Connection[tuple[object, ...]]) -> list[tuple[object, ...]]:
    query = "SELECT name, setting FROM pg_settings WHERE name = ANY(%s) ORDER BY name"
    return connection.execute(query, ([*SETTINGS, "search_path"],)).fetchall()


def test_an_unreachable_listen_url_is_logged_once(url: str, caplog: pytest.LogCaptureFixture) -> None:
    store = PostgresStore(url, listen_url="postgresql://rota:hunter2@127.0.0.1:1/none")
    try:
        store.bus.listen(Ready)
        eventually(lambda: "no wake-ups come by listen_url" in caplog.text, what="a word about it")
        store.transact(calendars.put, "default", "days", ["2026-01-01"], "test")
    finally:
        store.close()
    assert caplog.text.count("no wake-ups") == 1
    assert "hunter2" not in caplog.text
