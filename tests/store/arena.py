"""Two transactions on PostgreSQL in an order that the test decides.

An operation is a plain function inside a transaction, so it can be held open before its commit; who must wait for its
locks is seen in the server's own list of activities.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg

from rota.clock import ManualClock
from rota.store.port import Tx
from rota.store.postgres.store import PostgresStore
from tests.support.databases import fresh_database
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.world import World

T = TypeVar("T")
MOST_THREADS = 64


class Undone(Exception):
    """How an operation ends whose transaction is to be rolled back."""


class Arena:
    """One database, one clock, and any number of stores with a connection each."""

    def __init__(self) -> None:
        self.url = fresh_database()
        self.clock = ManualClock()
        self._stores: list[PostgresStore] = []
        self._threads = ThreadPoolExecutor(MOST_THREADS)
        self._watch = psycopg.connect(self.url, autocommit=True)
        self.world = World(self.store(), self.clock)

    def store(self, *, inline: bool = True) -> PostgresStore:
        store = PostgresStore(self.url, self.clock, inline=inline)
        self._stores.append(store)
        return store

    def start(self, op: Callable[..., T], *args: Any) -> Future[T]:
        """The operation, on a connection and in a thread of its own."""
        store = self.store()
        return self._threads.submit(lambda: store.transact(op, *args))

    def all_at_once(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """Every call in a thread of its own, none before all are ready."""
        barrier = threading.Barrier(len(calls))

        def wait_and_call(call: Callable[[], T]) -> T:
            barrier.wait(PATIENCE_S)
            return call()

        futures = [self._threads.submit(wait_and_call, call) for call in calls]
        return [future.result(2 * PATIENCE_S) for future in futures]

    @contextmanager
    def held_open(self, op: Callable[..., T], *args: Any, undo: bool = False) -> Iterator[Future[T]]:
        """Inside the block the operation has done everything but the commit; after it, it is committed, or undone."""
        done, go = threading.Event(), threading.Event()

        def and_wait(tx: Tx) -> T:
            answer = op(tx, *args)
            done.set()
            assert go.wait(PATIENCE_S), "a transaction was not released"
            if undo:
                raise Undone
            return answer

        future = self.start(and_wait)
        eventually(lambda: done.is_set() or future.done(), what="an operation before its commit")
        if future.done():
            future.result()
        try:
            yield future
        finally:
            go.set()
            with suppress(Undone):
                future.result(PATIENCE_S)

    def wait_until_blocked(self, *futures: Future[Any]) -> None:
        """Returns when so many connections wait for locks of others; fails if a call has ended instead."""
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

        def are_blocked() -> bool:
            for future in futures:
                assert not future.done(), f"it did not wait, but answered {future.result()!r}"
            (count,) = self._watch.execute(query).fetchone() or (0,)
            return int(count) >= len(futures)

        eventually(are_blocked, what="calls that wait for a lock")

    def deadlocks(self) -> int:
        """How many transactions the server has ended because they waited for each other."""
        query = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        (count,) = self._watch.execute(query).fetchone() or (0,)
        return int(count)

    def place(self, id: str) -> list[str]:
        """The state tables that contain an execution; there must be exactly one."""
        found = []
        for table in ("scheduled", "waiting", "ready", "running"):
            row = self._watch.execute(f"SELECT 1 FROM rota.{table} WHERE id = %s".encode(), (id,)).fetchone()
            found += [table] if row else []
        ends = self._watch.execute("SELECT status FROM rota.finished WHERE id = %s AND final = 1", (id,)).fetchall()
        return found + [str(status) for (status,) in ends]

    def haunt(self, id: str) -> None:
        """Adds a stale `ready` row for an execution that has ended."""
        query = "INSERT INTO rota.ready (lane, rank, id, fence, attempts, crashes) SELECT lane, run_at, id, 0, 0, 0"
        self._watch.execute(f"{query} FROM rota.execution WHERE id = %s".encode(), (id,))

    def __enter__(self) -> Arena:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()
        self._watch.close()
        for store in self._stores:
            store.close()
