"""The embedded store: one SQLite file, one writer thread per process, group commit.

Whole operations are shipped to the writer thread. Those that wait together share one transaction and one fsync, each in
a savepoint of its own, so that one refused operation does not undo its neighbours. A future is done only after
the commit, so what a caller was told is on the disk.

`inline=True` runs everything in the calling thread instead: for tests and the simulator, which want no threads.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from rota.clock import Clock, SystemClock
from rota.domain.errors import StoreUnavailable
from rota.store import migrate, sqlite_fork
from rota.store.hints import Bus, Hint
from rota.store.port import Together, Tx, View, together_of
from rota.store.sqlite_bus import SilentBus, SqliteBus
from rota.store.sqlite_file import MEMORY, TurnLock, connect, is_busy, path_of, translated
from rota.store.sqlite_session import SqliteSession

P = ParamSpec("P")
T = TypeVar("T")
MOST_IN_GROUP = 256
MOST_IDLE_READERS = 4


class _Work:
    """One operation on its way, and what became of it before the commit."""

    __slots__ = ("args", "error", "future", "hints", "kwargs", "op", "result")

    def __init__(self, op: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.op, self.args, self.kwargs = op, args, kwargs
        self.future: Future[Any] = Future()
        self.result: Any = None
        self.error: BaseException | None = None
        self.hints: list[Hint] = []

    def tell_caller(self) -> None:
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class SqliteStore:
    """Implements `rota.store.port.Store`."""

    def __init__(self, url: str, clock: Clock | None = None, *, busy_s: float = 30.0, inline: bool = False) -> None:
        self.path = path_of(url)
        self.clock = clock or SystemClock()
        self._busy_s = busy_s
        self._inline = inline
        self._lock = threading.RLock()
        self.gate = sqlite_fork.Gate()
        self._open()
        self._readers: queue.LifoQueue[tuple[sqlite3.Connection, SqliteSession]] = queue.LifoQueue()
        self._inbox: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._closed = False
        self.bus: Bus = SilentBus() if self.path == MEMORY else SqliteBus(Path(self.path), self.clock)
        self._prepare()
        self._thread = threading.Thread(target=self._serve, name="rota-sqlite-writer", daemon=True)
        if not inline:
            self._thread.start()
        if self.path != MEMORY:
            sqlite_fork.watch(self)

    def submit(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if self._closed:
            raise StoreUnavailable("the store is closed")
        work = _Work(op, args, kwargs)
        if self._inline:
            with self._lock:
                self._commit([work])
        else:
            self._inbox.put(work)
        return work.future

    def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        future = self.submit(op, *args, **kwargs)
        try:
            return future.result(self._busy_s)
        except TimeoutError:
            if future.done() and not future.cancelled():
                return future.result()
            if future.cancel():
                raise self._too_busy() from None
            # It began at the last moment: its end is near and must be known, or a caller could not tell what happened.
            return future.result()

    def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._inline or self.path == MEMORY:
            return self.transact(cast("Callable[Concatenate[Tx, P], T]", query), *args, **kwargs)
        if self._closed:
            raise StoreUnavailable("the store is closed")
        with self.gate.inside(), self._reader() as session:
            return query(session, *args, **kwargs)

    def blocker(self) -> int | None:
        return self._turn.holder()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if not self._inline:
            self._inbox.put(None)
            self._thread.join()
            self._refuse_the_rest()
        sqlite_fork.forget(self)
        self.let_go()
        self.bus.close()

    def let_go(self) -> None:
        """Closes every connection; the next use opens them again."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._readers.get_nowait()[0].close()
        self._connection.close()
        self._turn.close()
        self._is_open = False

    def _refuse_the_rest(self) -> None:
        """Whoever submitted in the moment of the close gets an answer too."""
        with contextlib.suppress(queue.Empty):
            while True:
                work = self._inbox.get_nowait()
                if work is not None and work.future.set_running_or_notify_cancel():
                    work.future.set_exception(StoreUnavailable("the store is closed"))

    def abandon(self) -> None:
        """This is a copy that came through a fork: the store belongs to the parent."""
        self._closed = True

    def _open(self) -> None:
        self._connection = connect(self.path, write=True, patience_s=min(5.0, self._busy_s))
        self._turn = TurnLock(self.path)
        self._session = SqliteSession(self._connection, self.clock)
        self._is_open = True

    def _prepare(self) -> None:
        try:
            with self._turn:
                migrate.apply_sqlite(self._connection, self.clock.now())
        except BaseException as error:
            self._connection.close()
            self._turn.close()
            raise (translated(error, self.path) if isinstance(error, sqlite3.Error) else error) from error

    def _serve(self) -> None:
        while (first := self._inbox.get()) is not None:
            group = [first]
            with contextlib.suppress(queue.Empty):
                while len(group) < MOST_IN_GROUP:
                    work = self._inbox.get_nowait()
                    if work is None:
                        self._commit(group)
                        return
                    group.append(work)
            self._commit(group)

    def _commit(self, group: list[_Work]) -> None:
        """Runs the group in one transaction and tells every caller how its operation ended."""
        with self.gate.inside():
            self._commit_inside(group)
        for work in group:
            with contextlib.suppress(InvalidStateError):  # It was cancelled before it began.
                work.tell_caller()

    def _commit_inside(self, group: list[_Work]) -> None:
        started: list[_Work] = []
        try:
            if not self._is_open:
                self._open()
            with self._turn:
                started = [work for work in group if work.future.set_running_or_notify_cancel()]
                if not started:
                    return
                self._begin()
                self._perform_all(started)
                if self._connection.in_transaction:
                    self._connection.execute("COMMIT")
        except BaseException as error:
            self._undo()
            failure = translated(error, self.path) if isinstance(error, sqlite3.Error) else error
            for work in started or group:
                work.error = failure
        else:
            with contextlib.suppress(Exception):  # Hints may be lost, and no caller may pay for one.
                self.bus.send([hint for work in started for hint in work.hints])

    def _begin(self) -> None:
        give_up_at = self.clock.monotonic() + self._busy_s
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                # Another program, one that does not take turns, holds the file.
                if not is_busy(error) or self.clock.monotonic() >= give_up_at:
                    raise
            else:
                return

    def _perform_all(self, group: list[_Work]) -> None:
        if len(group) == 1:
            self._perform(group[0], alone=True)
            return
        for together, members in itertools.groupby(group, key=lambda work: together_of(work.op)):
            works = list(members)
            if together is None or len(works) == 1 or not self._perform_together(together, works):
                for work in works:
                    self._perform(work, alone=False)

    def _perform_together(self, together: Together, works: list[_Work]) -> bool:
        """Runs many calls of one operation as one; False if that failed and nothing was done."""
        self._session.begin()
        self._connection.execute("SAVEPOINT operation")
        try:
            results = together(self._session, [work.args for work in works])
        except Exception as error:
            if isinstance(error, sqlite3.Error) and not self._connection.in_transaction:
                raise
            self._session.forget()
            self._connection.execute("ROLLBACK TO operation")
            self._connection.execute("RELEASE operation")
            return False
        self._connection.execute("RELEASE operation")
        works[0].hints = self._session.hints
        for work, result in zip(works, results, strict=True):
            work.result = result
        return True

    def _perform(self, work: _Work, *, alone: bool) -> None:
        self._session.begin()
        if not alone:
            self._connection.execute("SAVEPOINT operation")
        try:
            work.result = work.op(self._session, *work.args, **work.kwargs)
        except BaseException as error:
            if isinstance(error, sqlite3.Error) and not self._connection.in_transaction:
                raise  # SQLite has undone the whole transaction (disk full, I/O error): nobody was served.
            work.error = translated(error, self.path) if isinstance(error, sqlite3.Error) else error
            self._session.forget()
            self._connection.execute("ROLLBACK" if alone else "ROLLBACK TO operation")
        else:
            work.hints = self._session.hints
        if not alone:
            self._connection.execute("RELEASE operation")

    def _undo(self) -> None:
        self._session.forget()
        if self._connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def _reader(self) -> Iterator[View]:
        try:
            connection, session = self._readers.get_nowait()
        except queue.Empty:
            connection = connect(self.path, write=False)
            session = SqliteSession(connection, self.clock)
        try:
            session.begin()
            connection.execute("BEGIN")
            yield session
        except sqlite3.Error as error:
            raise translated(error, self.path) from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if self._closed or self._readers.qsize() >= MOST_IDLE_READERS:
                connection.close()
            else:
                self._readers.put((connection, session))

    def _too_busy(self) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self.path} was busy for {self._busy_s:g} s; nothing was accepted. "
            "Another process holds its lock: see `rota doctor`."
        )
