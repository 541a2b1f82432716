"""Commits whose answer is lost: the store looks up their outcome, and no execution is lost or doubled."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rota import Unique
from rota.domain.errors import CommitUnknown, RotaError
from rota.store.postgres import url as postgres_url
from rota.store.postgres import writer as postgres_writer
from rota.store.postgres.link import Link
from rota.store.postgres.url import Address
from tests.faults.scene import FIRST_CLAIM_S, Scene
from tests.support.postgres import PostgresServer
from tests.support.proving import proof
from tests.support.proxy import Proxy, When
from tests.support.waiting import eventually


@pytest.mark.parametrize("threads", [proof(1), 16])
def test_broken_commits_are_neither_lost_nor_doubled(url: str, proxy: Proxy, tmp_path: Path, threads: int) -> None:
    """With one thread each call is a transaction, with sixteen they share some. Claims and outcomes break as well."""
    with Scene(tmp_path, proxy.through(url), direct=url) as scene:
        worker = scene.worker("--concurrency", "4")
        callers = scene.callers(threads, pause_s=0.01)
        proxy.drop_commits("before", probability=0.2)
        proxy.drop_commits("after", probability=0.2)
        eventually(lambda: min(proxy.counts.dropped_before, proxy.counts.dropped_after) > 6, what="lost commits")
        proxy.heal()
        scene.check()
        assert not scene.told().unknown
        assert callers.refusals == []
        assert worker.complaints() == []


def test_keys_survive_broken_commits(url: str, proxy: Proxy, tmp_path: Path) -> None:
    with Scene(tmp_path, proxy.through(url), direct=url) as scene:
        scene.callers(4, pause_s=0.002, keyed=True)
        proxy.drop_commits("before", probability=0.2)
        proxy.drop_commits("after", probability=0.2)
        eventually(lambda: min(proxy.counts.dropped_before, proxy.counts.dropped_after) > 6, what="lost commits")
        proxy.heal()
        scene.stop_calling()
        assert not scene.told().unknown | scene.told().refused
        assert not [*scene.stored_problems()]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_caller_gets_commit_unknown_if_the_outcome_cannot_be_looked_up(
    url: str, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: When
) -> None:
    monkeypatch.setattr(postgres_writer, "LAST_LOOK_S", 1)
    with Scene(tmp_path, proxy.through(url), direct=url, busy_s=1) as scene:
        scene.app.jobs["work"].enqueue("first")
        proxy.drop_commits(when, count=1)
        proxy.refuse()
        with pytest.raises(CommitUnknown, match="look before you try again"):
            _in_a_transaction(scene).enqueue("second")
        proxy.heal()
        assert scene.value("SELECT count(*) FROM execution") == (1 if when == "before" else 2)


def test_a_transaction_id_that_a_crashed_server_reuses_is_not_trusted(server: PostgresServer, tmp_path: Path) -> None:
    """The server forgets the transaction and gives its id to another one, which is committed."""
    url = server.create_database()
    # What was not committed must not reach the disk before the crash.
    server.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
    server.execute("ALTER SYSTEM SET autovacuum = off")
    server.restart()
    with Proxy(server.port) as proxy, Scene(tmp_path, proxy.through(url), direct=url) as scene:
        scene.app.jobs["work"].enqueue("first")
        ours = int(scene.value("SELECT pg_snapshot_xmax(pg_current_snapshot())::text"))
        proxy.refuse()
        proxy.drop_commits("before", count=1)
        call = _Call(lambda: _in_a_transaction(scene).enqueue("second"))
        eventually(lambda: proxy.counts.dropped_before == 1, what="the lost commit")
        server.restart("immediate")
        while int(scene.value("SELECT pg_current_xact_id()::text")) <= ours:
            pass
        assert scene.value("SELECT pg_xact_status(%s::text::xid8)", str(ours)) == "committed"
        proxy.heal()
        handle = call.result()
        assert scene.rows("SELECT id::text FROM execution ORDER BY id")[1:] == [(handle.id,)]


def test_a_repeated_call_that_finds_its_own_key_returns_its_own_execution(
    server: PostgresServer, tmp_path: Path
) -> None:
    """The first try was committed and holds the unique key; after the crash this is unknown, so it is repeated."""
    url = server.create_database()
    with Proxy(server.port) as proxy, Scene(tmp_path, proxy.through(url), direct=url) as scene:
        job = scene.app.jobs["work"].options(unique=Unique(key="one", on_conflict="reject"))
        scene.app.jobs["work"].enqueue("first")
        proxy.refuse()
        proxy.drop_commits("after", count=1)
        call = _Call(lambda: job.enqueue("second"))
        eventually(lambda: proxy.counts.dropped_after == 1, what="the lost commit")
        server.restart("immediate")
        proxy.heal()
        handle = call.result()
        assert handle.created
        assert scene.rows("SELECT id::text FROM execution ORDER BY id")[1:] == [(handle.id,)]


def test_a_repeated_emit_without_a_key_returns_its_own_event(server: PostgresServer, tmp_path: Path) -> None:
    """The repeat has the same id, so it finds the event of the first try."""
    url = server.create_database()
    with Proxy(server.port) as proxy, Scene(tmp_path, proxy.through(url), direct=url) as scene:
        scene.app.emit("first")
        proxy.refuse()
        proxy.drop_commits("after", count=1)
        call = _Call(lambda: scene.app.emit("second", {"n": 1}))
        eventually(lambda: proxy.counts.dropped_after == 1, what="the lost commit")
        server.restart("immediate")
        proxy.heal()
        event = call.result()
        assert event.created
        assert scene.rows("SELECT id::text FROM event WHERE name = 'second'") == [(event.id,)]


def test_a_repeated_call_that_its_own_execution_blocks_is_not_reported_as_refused(
    server: PostgresServer, tmp_path: Path
) -> None:
    """The first try may have been committed and have filled the queue; the repeated call cannot know."""
    url = server.create_database()
    with Proxy(server.port) as proxy, Scene(tmp_path, proxy.through(url), direct=url) as scene:
        scene.app.queue("small", max_depth=1)
        job = scene.app.jobs["work"].options(queue="small")
        scene.app.jobs["work"].enqueue("first")
        proxy.refuse()
        proxy.drop_commits("after", count=1)
        call = _Call(lambda: job.enqueue("second"))
        eventually(lambda: proxy.counts.dropped_after == 1, what="the lost commit")
        server.restart("immediate")
        proxy.heal()
        with pytest.raises(CommitUnknown):
            call.result()
        assert scene.value("SELECT count(*) FROM execution") == 2


def test_the_crash_of_a_backend_counts_as_a_crash_of_the_server(server: PostgresServer) -> None:
    """The server keeps running, restarts its processes, and may reuse transaction ids."""
    address = postgres_url.parse(server.create_database())
    before, again, victim = (Link(address, "test") for _ in range(3))
    assert before.life == again.life
    os.kill(victim.connection.info.backend_pid, signal.SIGKILL)
    eventually(lambda: _is_cut(before), what="the end of all connections")
    after = eventually(lambda: _link(address), what="a server that is back")
    assert after is not None
    assert after.life != before.life
    for link in (before, again, victim, after):
        link.close()


def _is_cut(link: Link) -> bool:
    try:
        link.begin_reading()
        link.rollback()
    except psycopg.Error:
        return True
    return False


def _link(address: Address) -> Link | None:
    try:
        return Link(address, "test")
    except psycopg.Error:
        return None


def test_a_slow_commit_is_waited_for(server: PostgresServer, tmp_path: Path) -> None:
    """The server waits for a standby that does not exist: commits hang, and callers get no wrong answer."""
    with Scene(tmp_path, server.create_database()) as scene:
        worker = scene.worker("--concurrency", "4")
        scene.callers(4)
        with _commits_hang(server):
            threading.Event().wait(1.5)
        assert scene.first_claim_after(scene.now()) < FIRST_CLAIM_S
        scene.check()
        assert worker.complaints() == []


def test_a_commit_that_takes_too_long_is_cancelled_and_its_outcome_is_known(
    server: PostgresServer, tmp_path: Path
) -> None:
    with Scene(tmp_path, server.create_database(), busy_s=1.5) as scene:
        scene.app.jobs["work"].enqueue("first")
        with _commits_hang(server):
            # It is on the disk of the only server: the caller gets that answer when the wait is cancelled.
            handle = _in_a_transaction(scene).enqueue("second")
        assert scene.value("SELECT count(*) FROM execution WHERE id = %s", handle.id) == 1


def _in_a_transaction(scene: Scene) -> Any:
    """A plain enqueue is one statement and has no COMMIT of its own; one with a key has."""
    return scene.app.jobs["work"].options(key="a key")


class _Call:
    """A call in a thread of its own."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._answer: Any = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._answer = self._call()
        except RotaError as error:
            self._answer = error

    def result(self) -> Any:
        self._thread.join(30)
        assert not self._thread.is_alive(), "the call hangs"
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@contextlib.contextmanager
def _commits_hang(server: PostgresServer) -> Iterator[None]:
    _wait_for_standby(server, "missing")
    try:
        yield
    finally:
        _wait_for_standby(server, "")


def _wait_for_standby(server: PostgresServer, name: str) -> None:
    with server.connect() as connection:
        connection.execute("SET synchronous_commit = local")
        connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'".encode())
        connection.execute("SELECT pg_reload_conf()")
