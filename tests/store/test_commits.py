"""The writer thread: group commit, waiting for other programs, and the errors after a timeout."""

from __future__ import annotations

import fcntl
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from rota.domain.errors import StoreUnavailable
from rota.ops import enqueue, submission
from rota.store.port import Tx
from rota.store.sqlite.store import MOST_IN_GROUP, SqliteStore
from tests.store.running import foreign
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.world import World


@contextmanager
def held(store: SqliteStore) -> Iterator[None]:
    """Keeps the writer thread busy meanwhile."""
    entered, release = threading.Event(), threading.Event()

    def hold(tx: Tx) -> None:
        entered.set()
        assert release.wait(PATIENCE_S)

    future = store.submit(hold)
    assert entered.wait(PATIENCE_S)
    try:
        yield
    finally:
        release.set()
        future.result(PATIENCE_S)


@contextmanager
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    """Another program in the middle of a write."""
    with foreign(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("ROLLBACK")


def submit(world: World) -> Future[list[submission.Accepted]]:
    return world.store.submit(enqueue.enqueue, world.header(), [world.item()])


def statements(store: SqliteStore) -> list[str]:
    seen: list[str] = []
    store._connection.set_trace_callback(seen.append)
    return seen


def test_waiting_operations_share_one_commit(world: World, store: SqliteStore) -> None:
    seen = statements(store)
    with held(store):
        futures = [submit(world) for _ in range(100)]
        assert not any(future.done() for future in futures)
    assert len({future.result(PATIENCE_S)[0].id for future in futures}) == 100
    # One commit for the operation that held the writer, one for the hundred.
    assert seen.count("COMMIT") == 2


def test_a_thread_that_writes_itself_does_not_overtake_the_writer_thread(path: Path) -> None:
    """Otherwise one busy thread keeps the lock, and the calls of all other threads wait for it."""
    entered, release, order = threading.Event(), threading.Event(), list[str]()

    def first(tx: Tx) -> None:
        entered.set()
        assert release.wait(PATIENCE_S)

    def write(tx: Tx, name: str) -> None:
        order.append(name)

    with closing(SqliteStore(f"sqlite:///{path}")) as store:

        def busy() -> None:
            store.transact(first)
            store.transact(write, "next")

        caller = threading.Thread(target=busy, name="caller")
        caller.start()
        assert entered.wait(PATIENCE_S)
        other = store.submit(write, "other")
        eventually(lambda: store._has_group)
        release.set()
        other.result(PATIENCE_S)
        caller.join(PATIENCE_S)
    assert order == ["other", "next"]


def test_a_group_commit_has_a_limited_size(world: World, store: SqliteStore) -> None:
    seen = statements(store)
    with held(store):
        futures = [submit(world) for _ in range(MOST_IN_GROUP + 1)]
    for future in futures:
        future.result(PATIENCE_S)
    assert seen.count("COMMIT") == 3


def test_every_commit_is_on_the_disk_before_its_callers_get_the_answer(store: SqliteStore) -> None:
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_write_waits_for_another_program_that_writes(world: World, path: Path) -> None:
    with locked(path):
        future = submit(world)
        with pytest.raises(TimeoutError):
            future.result(1)
    assert future.result(PATIENCE_S)[0].created


def test_reads_do_not_wait_while_another_program_writes(world: World, path: Path) -> None:
    id = world.enqueue()
    with locked(path):
        assert world.executions() == [id]


def test_a_call_on_a_file_that_stays_locked_fails_and_accepts_nothing(path: Path) -> None:
    store = SqliteStore(f"sqlite:///{path}", busy_s=0.3)
    try:
        world = World(store)
        with locked(path), pytest.raises(StoreUnavailable):
            world.enqueue()
        assert world.executions() == []
        id = world.enqueue()
        assert world.executions() == [id]
    finally:
        store.close()


def test_a_call_that_never_gets_the_turn_lock_fails_and_accepts_nothing(path: Path) -> None:
    store = SqliteStore(f"sqlite:///{path}", busy_s=0.3)
    try:
        world = World(store)
        with Path(f"{path}-turn").open("rb") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            with pytest.raises(StoreUnavailable, match="nothing was accepted"):
                world.enqueue()
        id = world.enqueue()
        assert world.executions() == [id]
    finally:
        store.close()


def test_an_operation_that_waited_too_long_fails_and_never_runs(path: Path) -> None:
    store = SqliteStore(f"sqlite:///{path}", busy_s=0.3)
    try:
        world = World(store)
        with held(store), pytest.raises(StoreUnavailable, match=r"was busy for 0\.3 s; nothing was accepted"):
            world.enqueue()
        assert world.executions() == []
    finally:
        store.close()


def test_an_operation_that_has_started_is_waited_for(path: Path) -> None:
    """Its outcome must be known, or the caller could not get the right answer."""
    store = SqliteStore(f"sqlite:///{path}", busy_s=0.2)
    try:

        def slow(tx: Tx) -> str:
            assert not threading.Event().wait(0.6)
            return "done"

        assert store.transact(slow) == "done"
    finally:
        store.close()


def test_closing_finishes_submitted_operations(path: Path) -> None:
    store = SqliteStore(f"sqlite:///{path}")
    world = World(store)
    futures = [submit(world) for _ in range(300)]
    store.close()
    assert all(future.done() for future in futures)
    assert len({future.result()[0].id for future in futures}) == 300
    store.close()
    again = SqliteStore(f"sqlite:///{path}")
    try:
        assert len(World(again).executions(limit=1000)) == 300
    finally:
        again.close()


def test_closing_leaves_one_file_that_others_can_copy(path: Path) -> None:
    store = SqliteStore(f"sqlite:///{path}")
    World(store).enqueue()
    store.close()
    assert not Path(f"{path}-wal").exists()


def test_two_stores_of_one_process_share_a_file(path: Path, world: World) -> None:
    other = SqliteStore(f"sqlite:///{path}")
    try:
        elsewhere = World(other)
        elsewhere.ids = world.ids
        ids = {world.enqueue(), elsewhere.enqueue()}
        assert set(world.executions()) == set(elsewhere.executions()) == ids
    finally:
        other.close()
