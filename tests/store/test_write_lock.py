"""One write lock for all processes on a file: which operations wait for it, and what is known without it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from rota.clock import SystemClock
from rota.engine.standstill import is_writing
from rota.ops import enqueue, submission
from rota.store.pending_call import LARGE
from rota.store.port import WRITER, Tx
from rota.store.sqlite.file import TurnLock
from rota.store.sqlite.store import SqliteStore
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.world import World


@pytest.fixture
def other(path: Path, store: SqliteStore) -> Iterator[SqliteStore]:
    other = SqliteStore(f"sqlite:///{path}")
    yield other
    other.close()


@pytest.fixture
def held(path: Path, other: SqliteStore, world: World) -> Iterator[TurnLock]:
    """The write lock, held by the test."""
    lock = TurnLock(str(path))
    assert lock.take(PATIENCE_S)
    yield lock
    lock.close()


def test_a_commit_of_another_process_is_seen_while_the_write_lock_is_held(
    store: SqliteStore, other: SqliteStore, path: Path
) -> None:
    world = World(other)
    before = store.commits()
    assert before is not None
    assert store.commits() == before
    world.enqueue()
    after = store.commits()
    assert after != before
    lock = TurnLock(str(path))
    assert lock.take(PATIENCE_S)
    assert store.commits() == after
    lock.close()


def test_only_one_of_several_large_submissions_waits_for_the_write_lock(
    store: SqliteStore, other: SqliteStore, world: World, path: Path, held: TurnLock
) -> None:
    """The others wait for that one, so another operation waits for at most one large submission."""
    waiting = [large(store, world), large(other, world)]
    eventually(lambda: waiters(path) == ["FLOCK", "OFDLCK"], what="two that wait, each for another lock")
    held.release()
    assert [len(future.result(PATIENCE_S)) for future in waiting] == [LARGE, LARGE]


def test_an_operation_reports_how_long_it_waited_before_it_read_the_clock(
    store: SqliteStore, path: Path, held: TurnLock
) -> None:
    """A lease counts from there."""
    clock = SystemClock()
    before = clock.monotonic()
    submitted = store.submit(lambda tx: tx.now)
    after = clock.monotonic()
    eventually(lambda: waiters(path) == ["FLOCK"], what="an operation that waits for the lock")
    free_at = clock.monotonic()
    now = clock.now()
    held.release()
    assert submitted.result(PATIENCE_S) >= now
    assert free_at - after <= submitted.waited_s <= clock.monotonic() - before


def test_operations_that_arrive_while_their_process_waits_for_the_write_lock_share_a_transaction(
    store: SqliteStore, world: World, path: Path, held: TurnLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Except for a large submission, which waits for the lock by itself."""
    begun: list[int] = []
    begin = store._begin

    def begin_and_count() -> None:
        begun.append(1)
        begin()

    monkeypatch.setattr(store, "_begin", begin_and_count)
    first = store.submit(transactions, begun)
    eventually(lambda: waiters(path) == ["FLOCK"], what="a wait for the lock")
    heartbeat, bulk, last = store.submit(transactions, begun), large(store, world), store.submit(transactions, begun)
    held.release()
    assert (first.result(PATIENCE_S), heartbeat.result(PATIENCE_S)) == (1, 1)
    assert len(bulk.result(PATIENCE_S)) == LARGE
    assert last.result(PATIENCE_S) == 2


def test_a_thread_that_writes_is_distinguished_from_one_that_waits(
    store: SqliteStore, held: TurnLock, path: Path
) -> None:
    busy = store.submit(count_to, store, 3_000_000)
    eventually(lambda: waiters(path) == ["FLOCK"], what="a wait for the lock")
    assert not is_writing(os.getpid(), WRITER)
    held.release()
    eventually(lambda: is_writing(os.getpid(), WRITER) or busy.done(), what="a thread that writes")
    assert busy.result(PATIENCE_S) == 3_000_000


def transactions(tx: Tx, begun: list[int]) -> int:
    return len(begun)


def large(store: SqliteStore, world: World) -> Future[list[submission.Accepted]]:
    return store.submit(enqueue.enqueue, world.header(), [world.item() for _ in range(LARGE)])


def count_to(tx: Tx, store: SqliteStore, last: int) -> int:
    """Keeps SQLite busy, without the interpreter."""
    text = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?) SELECT count(*) FROM n"
    return int(store._connection.execute(text, (last,)).fetchone()[0])


def waiters(path: Path) -> list[str]:
    """The kinds of locks on the lock file that threads wait for, as the kernel tells."""
    inode = str(Path(f"{path}-turn").stat().st_ino)
    lines = map(str.split, Path("/proc/locks").read_text().splitlines())
    return sorted(line[2] for line in lines if line[1] == "->" and line[6].rpartition(":")[2] == inode)
