"""The store behind an app: opened when first needed, registered once, and opened again after a fork."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from rota.clock import Clock, SystemClock
from rota.config import Settings
from rota.domain.errors import UsageError
from rota.domain.job import Definition, Queue
from rota.ids import IdSource
from rota.ops import define
from rota.store.opening import open_store
from rota.store.port import Store, Tx

P = ParamSpec("P")
T = TypeVar("T")


class Connection:
    """One process's way to the database."""

    has_supervisor = False
    """Whether this process has a supervisor, which watches the writer thread to tell a slow write from a stuck one."""

    def __init__(
        self, settings: Settings, app: str, declared: Callable[[], tuple[Sequence[Definition], Sequence[Queue]]]
    ) -> None:
        self.settings = settings
        self.clock: Clock = SystemClock()
        self.ids = IdSource(self.clock)
        self._app = app
        self._declared = declared
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._is_borrowed = False
        self._pid = 0
        self._registered = (-1, -1)
        os.register_at_fork(after_in_child=self._reset_after_fork)

    def store(self) -> Store:
        """The open store, which knows every job and queue that the app has declared."""
        if self._store is None or self._pid != os.getpid():
            self._open()
        assert self._store is not None
        definitions, queues = self._declared()
        if self._registered != (len(definitions), len(queues)):
            self._store.transact(define.register, self.settings.namespace, self._app, definitions, queues)
            self._registered = (len(definitions), len(queues))
        return self._store

    @contextlib.contextmanager
    def borrowed(self, store: Store, clock: Clock) -> Iterator[None]:
        """Uses another store in the block, and closes it at the end; for tests."""
        before = (self._store, self._pid, self.clock, self.ids, self._registered, self._is_borrowed)
        self._store, self._pid, self.clock, self.ids = store, os.getpid(), clock, IdSource(clock)
        self._registered, self._is_borrowed = (-1, -1), True
        try:
            self.store()
            yield
        finally:
            self._store, self._pid, self.clock, self.ids, self._registered, self._is_borrowed = before
            store.close()

    async def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`Store.transact` without blocking the event loop, and with the same timeout."""
        store = await asyncio.to_thread(self.store)
        future = store.submit(op, *args, **kwargs)
        waiting = asyncio.wrap_future(future)
        done, _ = await asyncio.wait([waiting], timeout=self.settings.busy_s)
        if not done and future.cancel():
            raise store.too_busy()
        return await waiting

    def close(self) -> None:
        """Closes the store. A borrowed one stays open: the next use would open the real database during a test."""
        with self._lock:
            if self._is_borrowed:
                return
            if self._store is not None and self._pid == os.getpid():
                self._store.close()
            self._store = None
            self._registered = (-1, -1)

    def _open(self) -> None:
        if self._is_borrowed:
            raise UsageError(
                "the database of a harness is in the memory of the process that entered the harness, and this process "
                "was forked from that one: use the app in the process of the test, or enter a harness here"
            )
        with self._lock:
            if self._store is None or self._pid != os.getpid():
                settings = self.settings
                self._store = open_store(
                    settings.url,
                    self.clock,
                    busy_s=settings.busy_s,
                    listen_url=settings.listen_url,
                    purpose=self._app,
                    callers_write=not Connection.has_supervisor,
                )
                self._pid = os.getpid()
                self._registered = (-1, -1)
                atexit.register(self.close)

    def _reset_after_fork(self) -> None:
        """After a fork: the open store belongs to the parent, and one of its threads may hold the lock."""
        self._lock = threading.Lock()
        self.ids = IdSource(self.clock)
        self._store = None
