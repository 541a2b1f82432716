"""A caller that waits for a small operation on SQLite writes it in its own thread, if no other operation waits."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rota.domain.errors import StoreUnavailable
from rota.ops import enqueue
from rota.store.pending_call import LARGE
from rota.store.port import Tx
from rota.store.sqlite.file import TurnLock
from rota.store.sqlite.store import SqliteStore
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.world import World


def writing_thread(tx: Tx) -> int:
    tx.run("ask_to_drain", worker=0, namespace="", asked="")
    return threading.get_ident()


@pytest.fixture
def held(path: Path, store: SqliteStore) -> Iterator[TurnLock]:
    """The write lock, held by the test."""
    lock = TurnLock(str(path))
    assert lock.take(PATIENCE_S)
    yield lock
    lock.close()


def test_a_small_operation_is_written_by_its_caller(store: SqliteStore) -> None:
    assert store.transact(writing_thread) == threading.get_ident()


def test_an_operation_with_a_future_is_left_to_the_writer(store: SqliteStore) -> None:
    assert store.submit(writing_thread).result(PATIENCE_S) != threading.get_ident()


def test_only_the_writer_thread_writes_where_a_supervisor_watches_it(path: Path) -> None:
    store = SqliteStore(f"sqlite:///{path}", callers_write=False)
    assert store.transact(writing_thread) != threading.get_ident()
    store.close()


def test_a_large_operation_is_left_to_the_writer(
    store: SqliteStore, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    begin = store._begin

    def noted() -> None:
        begun.append(threading.get_ident())
        begin()

    monkeypatch.setattr(store, "_begin", noted)
    store.transact(enqueue.enqueue, world.header(), [world.item() for _ in range(LARGE)])
    assert len(begun) == 1
    assert begun != [threading.get_ident()]


def test_callers_share_one_commit_while_another_process_holds_the_lock(store: SqliteStore, held: TurnLock) -> None:
    with ThreadPoolExecutor(3) as callers:
        waiting = [callers.submit(store.transact, writing_thread) for _ in range(3)]
        eventually(lambda: store._awaits_turn, what="a writer that waits for the lock")
        held.release()
        assert len({one.result(PATIENCE_S) for one in waiting}) == 1


def test_an_interrupt_during_a_write_rolls_back_and_releases_the_lock(store: SqliteStore, path: Path) -> None:
    def interrupted(tx: Tx) -> None:
        tx.run("add_queues", namespace="default", queues=[("half",)])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.transact(interrupted)
    lock = TurnLock(str(path))
    assert lock.take_now()
    lock.close()
    assert store.transact(lambda tx: tx.rows("queues", namespace="default", every=True, name="")) == []


def test_a_signal_handler_that_interrupts_a_write_and_enqueues_is_refused(
    store: SqliteStore, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would wait for the operation that it has interrupted."""
    refused: list[str] = []

    def handler(*_: object) -> None:
        with pytest.raises(StoreUnavailable) as error:
            world.enqueue()
        refused.append(str(error.value))

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        store.transact(lambda tx: signal.raise_signal(signal.SIGUSR1))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(refused) == 1
    assert "Set a flag in the handler" in refused[0]
    world.enqueue()
