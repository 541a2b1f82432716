"""The embedded store: one SQLite file, one writer thread per process, group commit.

Whole operations are shipped to the writer thread. Those that wait together share one transaction and one fsync, each in
a savepoint of its own, so that one refused operation does not undo its neighbours. A future is done only after
the commit, so what a caller was told is on the disk. A caller that waits for a small operation writes in its own
thread, if no other operation waits and the write lock is free: two hops between threads cost as much as the operation.

`inline=True` runs everything in the calling thread instead: for tests and the simulator, which want no threads.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from typing import Concatenate, ParamSpec, TypeVar, cast

from rota.clock import Clock, SystemClock
from rota.domain.errors import StoreError, StoreUnavailable
from rota.store import migrate
from rota.store.hints import Bus
from rota.store.pending_call import MOST_ROWS, PendingCall
from rota.store.port import WRITER, Submitted, Together, Tx, View, declared
from rota.store.sqlite import fork, side_files
from rota.store.sqlite.bus import SilentBus, SqliteBus
from rota.store.sqlite.file import (
    MEMORY,
    TurnLock,
    connect,
    identity,
    is_busy,
    name_thread,
    path_of,
    switch_to_wal,
    translated,
)
from rota.store.sqlite.session import SqliteSession

P = ParamSpec("P")
T = TypeVar("T")
MOST_IN_GROUP = 256
LONGEST_PATIENCE_S = 0.001
MOST_IDLE_READERS = 4


class SqliteStore:
    """Implements `rota.store.port.Store`."""

    def __init__(
        self,
        url: str,
        clock: Clock | None = None,
        *,
        busy_s: float = 30.0,
        inline: bool = False,
        callers_write: bool = True,
    ) -> None:
        """With `callers_write` a small operation may be written in the thread of its caller."""
        self.path = path_of(url)
        self._file = MEMORY if self.path == MEMORY else side_files.real(self.path)
        self.clock = clock or SystemClock()
        self.patience_s: float | None = busy_s
        self._busy_s = busy_s
        self._inline = inline
        self._callers_write = callers_write and not inline
        self._lock = threading.RLock()
        self._writing = threading.Lock()
        """Held by the thread that uses the writing connection."""
        self._caller_that_writes: int | None = None
        self.gate = fork.Gate()
        self._open()
        self._readers: queue.LifoQueue[tuple[sqlite3.Connection, SqliteSession]] = queue.LifoQueue()
        self._inbox: queue.SimpleQueue[PendingCall | None] = queue.SimpleQueue()
        self._company = 0
        self._patience_s = 0.0
        self._closed = False
        self._awaits_turn = False
        self._set_aside: PendingCall | None = None
        self._probe: sqlite3.Connection | None = None
        self._probes = 0
        self.bus: Bus = SilentBus() if self.path == MEMORY else SqliteBus(self._file, self.clock)
        self._prepare()
        self._thread = threading.Thread(target=self._serve, name="rota-sqlite-writer", daemon=True)
        if not inline:
            self._thread.start()
        if self.path != MEMORY:
            fork.watch(self)

    def submit(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> Submitted[T]:
        if self._closed:
            raise StoreUnavailable("the store is closed")
        work = PendingCall(op, args, kwargs, Submitted())
        self._send(work)
        assert work.future is not None
        return work.future

    def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._inline:
            return self.submit(op, *args, **kwargs).result()
        if self._closed:
            raise StoreUnavailable("the store is closed")
        work = PendingCall(op, args, kwargs)
        if not self._write_here(work):
            self._refuse_reentry()
            self._send(work)
            if not work.wait(self._busy_s):
                raise self.too_busy()
        return cast("T", work.answer())

    def _write_here(self, work: PendingCall) -> bool:
        """Runs the operation in the calling thread; False if it must wait, or would keep others waiting."""
        if not self._callers_write or self._writing.locked() or not self._inbox.empty() or work.is_large:
            return False
        # A signal handler may raise in the main thread at any point: `with` lets go of this lock even then.
        with self._writing:
            try:
                self._caller_that_writes = threading.get_ident()
                if not self._turn.take_now():
                    return False
                self._commit([work])
            finally:
                self._turn.release()
                self._caller_that_writes = None
        return True

    def _refuse_reentry(self) -> None:
        """A call from a signal handler that has interrupted a write of its own thread would wait for itself."""
        if self._caller_that_writes == threading.get_ident():
            raise StoreUnavailable(
                "a signal handler has interrupted an operation of the same thread, which must end first; nothing was "
                "accepted. Set a flag in the handler, and enqueue when it has returned"
            )

    def _send(self, work: PendingCall) -> None:
        if self._inline:
            with self._lock:
                self._commit([work])
        else:
            self._inbox.put(work)

    def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._inline or self.path == MEMORY:
            return self.transact(cast("Callable[Concatenate[Tx, P], T]", query), *args, **kwargs)
        if self._closed:
            raise StoreUnavailable("the store is closed")
        with self.gate.inside(), self._reader() as session:
            return query(session, *args, **kwargs)

    def blocker(self) -> int | None:
        return self._turn.holder()

    def commits(self) -> int | None:
        if self._closed or self.path == MEMORY:
            return None
        with self.gate.inside():
            try:
                if self._probe is None:
                    self._probe = connect(self._file, write=False, patience_s=0.0)
                    self._probes += 1
                version: int = self._probe.execute("PRAGMA data_version").fetchone()[0]
            except (sqlite3.Error, StoreError):
                return None
        # SQLite counts for each connection anew.
        return self._probes << 32 | version

    def too_busy(self) -> StoreUnavailable:
        return self._turn.busy(self.path, self._busy_s)

    def trouble(self) -> str | None:
        if self.path == MEMORY or identity(self.path) == self._identity:
            return None
        return (
            f"{self.path} was removed or replaced while it was in use; what was written since is lost with the old file"
        )

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if not self._inline:
            self._stop_writer()
        fork.forget(self)
        self.bus.close()
        if not self._awaits_turn:
            with self._writing:
                self.let_go()

    def _stop_writer(self) -> None:
        self._inbox.put(None)
        self._thread.join(self._busy_s)
        if not self._awaits_turn:
            self._thread.join()
        self._refuse_the_rest()
        self._inbox.put(None)  # For a writer that another process still keeps waiting for the lock.

    def let_go(self) -> None:
        """Closes every connection; the next use opens them again."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._readers.get_nowait()[0].close()
        if self._probe is not None:
            self._probe.close()
            self._probe = None
        self._connection.close()
        self._turn.close()
        self._is_open = False

    def _refuse_the_rest(self) -> None:
        """Whoever submitted in the moment of the close gets an answer too."""
        with contextlib.suppress(queue.Empty):
            while True:
                work = self._inbox.get_nowait()
                if work is not None and work.begin():
                    work.error = StoreUnavailable("the store is closed")
                    work.end()

    def abandon(self) -> None:
        """This is a copy that came through a fork: the store belongs to the parent."""
        self._closed = True

    def _open(self) -> None:
        self._connection = connect(self._file, write=True, patience_s=min(5.0, self._busy_s))
        try:
            self._turn = TurnLock(self._file)
        except BaseException:
            self._connection.close()
            raise
        self._session = SqliteSession(self._connection, self.clock)
        self._identity = identity(self.path)
        self._is_open = True

    def _prepare(self) -> None:
        try:
            if not self._turn.take(self._busy_s):
                raise self.too_busy()
            switch_to_wal(self._connection)
            migrate.apply_sqlite(self._connection, self.clock.now())
            self._turn.release()
        except BaseException as error:
            self._connection.close()
            self._turn.close()
            raise (translated(error, self.path) if isinstance(error, sqlite3.Error) else error) from error

    def _serve(self) -> None:
        name_thread(WRITER)
        while (first := self._next()) is not None:
            group = [first]
            self._gather(group)
            started_at = self.clock.monotonic()
            with self._writing:
                self._commit(group, self._gather_late)
            self._patience_s = min(LONGEST_PATIENCE_S, self.clock.monotonic() - started_at)

    def _next(self) -> PendingCall | None:
        work, self._set_aside = self._set_aside, None
        return work or self._inbox.get()

    def _gather(self, group: list[PendingCall]) -> None:
        """Adds the operations in the inbox, and for operations that run together also those about to be submitted.

        A caller that was answered a moment ago is likely to call again at once. A commit costs the same for one call as
        for all of them, so it pays to wait for them for up to the time that a commit takes.
        """
        give_up_at = self.clock.monotonic() + self._patience_s if declared(group[0].op).together is not None else 0.0
        rows = group[0].rows
        while len(group) < MOST_IN_GROUP and rows < MOST_ROWS:
            try:
                work = self._inbox.get_nowait()
            except queue.Empty:
                left_s = give_up_at - self.clock.monotonic() if len(group) < self._company else 0.0
                if left_s <= 0:
                    return
                try:
                    work = self._inbox.get(timeout=left_s)
                except queue.Empty:
                    return
            if work is None:
                self._inbox.put(None)  # The end, after this group.
                return
            group.append(work)
            rows += work.rows

    def _gather_late(self, group: list[PendingCall]) -> None:
        """Adds the operations that were submitted while the group waited for the write lock, heartbeats for example.

        A large submission is left for the next transaction, because it must not wait in the queue with others like it.
        """
        rows = sum(work.rows for work in group)
        while len(group) < MOST_IN_GROUP and rows < MOST_ROWS and self._set_aside is None:
            try:
                work = self._inbox.get_nowait()
            except queue.Empty:
                return
            if work is None:
                self._inbox.put(None)
                return
            if work.is_large:
                self._set_aside = work
            else:
                group.append(work)
                rows += work.rows

    def _commit(
        self, group: list[PendingCall], gather: Callable[[list[PendingCall]], None] = lambda group: None
    ) -> None:
        """Runs the group in one transaction and tells every caller how its operation ended.

        `gather` may add operations to the group when the write lock is taken.
        """
        with self.gate.inside():
            started = self._commit_inside(group, gather)
        # Those who are answered now and those who wait already: as many may come together the next time.
        self._company = len(started) + self._inbox.qsize()
        for work in started:
            work.end()

    def _commit_inside(
        self, group: list[PendingCall], gather: Callable[[list[PendingCall]], None]
    ) -> list[PendingCall]:
        """Returns those that were begun; callers who lost their patience have taken the others back."""
        started: list[PendingCall] = []
        try:
            if not self._is_open:
                self._open()
            self._awaits_turn = True
            with self._turn.for_large() if any(work.is_large for work in group) else self._turn:
                self._awaits_turn = False
                gather(group)
                started = [work for work in group if work.begin()]
                if not started:
                    return started
                self._begin()
                self._perform_all(started)
                if self._connection.in_transaction:
                    self._connection.execute("COMMIT")
        except BaseException as error:
            self._undo()
            self._awaits_turn = False
            failure = translated(error, self.path) if isinstance(error, sqlite3.Error) else error
            started = started or [work for work in group if work.begin()]
            for work in started:
                work.error = failure
        else:
            with contextlib.suppress(Exception):  # Hints may be lost, and no caller may pay for one.
                self.bus.send([hint for work in started for hint in work.hints])
        return started

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

    def _perform_all(self, group: list[PendingCall]) -> None:
        if len(group) == 1:
            self._perform(group[0], alone=True)
            return
        whole = declared(group[0].op).together
        if whole is not None and all(work.op is group[0].op for work in group):
            if self._perform_together(whole, group, alone=True):
                return
            self._begin()
        for together, members in itertools.groupby(group, key=lambda work: declared(work.op).together):
            works = list(members)
            tried = whole is not None and len(works) == len(group)
            if together is None or tried or len(works) == 1 or not self._perform_together(together, works, alone=False):
                for work in works:
                    self._perform(work, alone=False)

    def _perform_together(self, together: Together, works: list[PendingCall], *, alone: bool) -> bool:
        """Runs many calls of one operation as one; False if that failed and nothing was done."""
        self._session.begin()
        if not alone:
            self._connection.execute("SAVEPOINT operation")
        try:
            results = together(self._session, [work.args for work in works])
        except Exception as error:
            if isinstance(error, sqlite3.Error) and not self._connection.in_transaction:
                raise
            self._session.forget()
            self._connection.execute("ROLLBACK" if alone else "ROLLBACK TO operation")
            if not alone:
                self._connection.execute("RELEASE operation")
            return False
        if not alone:
            self._connection.execute("RELEASE operation")
        works[0].hints = self._session.hints
        for work, result in zip(works, results, strict=True):
            work.result = result
        return True

    def _perform(self, work: PendingCall, *, alone: bool) -> None:
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
            connection = connect(self._file, write=False)
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
