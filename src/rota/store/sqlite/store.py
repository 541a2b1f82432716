"""The embedded store: one SQLite file, one writer thread per process, group commit.

Whole operations are passed to the writer thread. Operations that wait at the same time share one transaction and one
fsync, each in a savepoint of its own, so that one refused operation does not undo the others. A future is done only
after the commit, so an answer is durable. A caller that waits for a small operation writes in its own thread, if no
other operation waits and the write lock is free: two thread switches cost as much as the operation.

`inline=True` runs everything in the calling thread instead: for tests and the simulator, which need no threads.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from rota.clock import Clock, SystemClock
from rota.domain.errors import StoreError, StoreUnavailable
from rota.store import migrate
from rota.store.hints import Bus, Hint
from rota.store.pending_call import MOST_ROWS, PendingCall, is_large
from rota.store.port import WRITER, Submitted, Together, Tx, View, declared
from rota.store.sqlite import fork, side_files
from rota.store.sqlite.arrivals import Arrivals
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
from rota.store.sqlite.readers import Readers
from rota.store.sqlite.session import SqliteSession
from rota.store.watch import Watch

P = ParamSpec("P")
T = TypeVar("T")
MOST_IN_GROUP = 256
LONGEST_PATIENCE_S = 0.001


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
        self._readers = Readers(self._file, self.clock, lambda: not self._closed)
        self._inbox: queue.SimpleQueue[PendingCall | None] = queue.SimpleQueue()
        self._company = 0
        self._has_group = False
        """Whether the writer thread has taken calls out of the inbox that are not committed yet."""
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
            fork.stores.add(self)

    def submit(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> Submitted[T]:
        if self._closed:
            raise StoreUnavailable("the store is closed")
        future: Submitted[T] = Submitted()
        self._send(PendingCall(op, args, kwargs, future))
        return future

    def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._inline:
            return self.submit(op, *args, **kwargs).result()
        if self._closed:
            raise StoreUnavailable("the store is closed")
        if self._may_write_here(op, args) and (written := self._write_here(op, args, kwargs)) is not None:
            result, hints = written
            self._send_hints(hints)
            if hints and not self._arrivals.has_added:
                os.sched_yield()  # Lets a woken worker run, which the kernel may have put behind this thread.
            return result
        self._refuse_reentry()
        call = PendingCall(op, args, kwargs)
        self._send(call)
        if not call.wait(self._busy_s):
            raise self.too_busy()
        return cast("T", call.answer())

    def _may_write_here(self, op: Callable[..., Any], args: tuple[Any, ...]) -> bool:
        """Whether a call may be run in the calling thread; False if it must wait, or would make others wait.

        Where several threads call at once, the writer thread commits their calls together. A caller that wrote before a
        group of the writer thread would take the lock from it again and again.
        """
        is_shared = self._company > 1 or self._has_group or self._writing.locked() or not self._inbox.empty()
        return self._callers_write and not is_shared and not is_large(op, args)

    def _write_here(
        self, op: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[T, list[Hint]] | None:
        """Runs an operation as an arrival or in a transaction of its own; None if another process has the lock."""
        # A signal handler may raise in the main thread at any point: `with` releases the locks even then.
        with self._writing, self.gate:
            try:
                self._caller_that_writes = threading.get_ident()
                if not self._is_open:
                    self._open()
                if not self._turn.take_now():
                    return None
                result = None if kwargs else self._arrivals.add(op, args)
                if result is None:
                    self._begin()
                    self._session.begin()
                    result = op(self._session, *args, **kwargs)
                    self._connection.execute("COMMIT")
                    self._arrivals.committed(op)
                return result, self._session.hints
            except BaseException as error:
                self._undo()
                if isinstance(error, sqlite3.Error):
                    raise translated(error, self.path) from error
                raise
            finally:
                self._turn.release()
                self._caller_that_writes = None
                # This caller, and those that wait already: so many may arrive together the next time.
                self._company = 1 + self._inbox.qsize()

    def _send_hints(self, hints: list[Hint]) -> None:
        with contextlib.suppress(Exception):  # Hints may be lost, and no call may fail because of one.
            self.bus.send(hints)

    def _refuse_reentry(self) -> None:
        """Refuses a call from a signal handler that has interrupted a write of its own thread: it would deadlock."""
        if self._caller_that_writes == threading.get_ident():
            raise StoreUnavailable(
                "a signal handler has interrupted an operation of the same thread, which must end first; nothing was "
                "accepted. Set a flag in the handler, and enqueue when it has returned"
            )

    def _send(self, call: PendingCall) -> None:
        if self._inline:
            with self._lock:
                self._commit([call])
        else:
            self._inbox.put(call)

    def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self.read_watched(Watch(), query, *args, **kwargs)

    def read_watched(
        self, watch: Watch, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if self._inline or self.path == MEMORY:
            return self.transact(cast("Callable[Concatenate[Tx, P], T]", query), *args, **kwargs)
        if self._closed:
            raise StoreUnavailable("the store is closed")
        # A signal handler may have interrupted a write of its own thread, which must end first.
        is_free = self._caller_that_writes != threading.get_ident()
        are_placed = is_free and self._arrivals.are_placed(self.submit)
        with self.gate, self._readers.session(watch, shows_arrivals=not are_placed) as session:
            return query(session, *args, **kwargs)

    def blocker(self) -> int | None:
        return self._turn.holder()

    def commits(self) -> int | None:
        if self._closed or self.path == MEMORY:
            return None
        with self.gate:
            try:
                if self._probe is None:
                    self._probe = connect(self._file, write=False, patience_s=0.0)
                    self._probes += 1
                version: int = self._probe.execute("PRAGMA data_version").fetchone()[0]
            except (sqlite3.Error, StoreError):
                return None
        # SQLite counts separately for each connection.
        return self._probes << 32 | version

    def too_busy(self) -> StoreUnavailable:
        return self._turn.busy(self.path, self._busy_s)

    def trouble(self) -> str | None:
        if self.path == MEMORY or identity(self.path) == self._identity:
            return None
        lost = "what was written since is lost with the old file"
        return f"{self.path} was removed or replaced while it was in use; {lost}"

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if not self._inline:
            self._stop_writer()
        fork.stores.discard(self)
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
        self._inbox.put(None)  # For a writer thread that still waits for another process to release the lock.

    def let_go(self) -> None:
        """Closes every connection; the next use opens them again."""
        self._readers.let_go()
        if self._probe is not None:
            self._probe.close()
            self._probe = None
        self._connection.close()
        self._turn.close()
        self._is_open = False

    def _refuse_the_rest(self) -> None:
        """Answers the calls that were submitted while the store was being closed."""
        with contextlib.suppress(queue.Empty):
            while True:
                call = self._inbox.get_nowait()
                if call is not None and call.begin():
                    call.error = StoreUnavailable("the store is closed")
                    call.end()

    def abandon(self) -> None:
        """In the child of a fork: the store belongs to the parent."""
        self._closed = True

    def _open(self) -> None:
        self._connection = connect(self._file, write=True, patience_s=min(5.0, self._busy_s))
        try:
            self._turn = TurnLock(self._file)
        except BaseException:
            self._connection.close()
            raise
        self._session = SqliteSession(self._connection, self.clock)
        self._arrivals = Arrivals(self._connection, self._session, self._turn)
        self._identity = identity(self.path)
        self._is_open = True

    def _prepare(self) -> None:
        try:
            if not self._turn.take(self._busy_s):
                raise self.too_busy()
            switch_to_wal(self._connection)
            migrate.apply_sqlite(self._connection, self.clock.now())
            self._arrivals.check_mark()
            self._turn.release()
        except BaseException as error:
            self._connection.close()
            self._turn.close()
            raise self._translated(error) from error

    def _serve(self) -> None:
        name_thread(WRITER)
        while (first := self._set_aside or self._inbox.get()) is not None:
            self._set_aside, self._has_group = None, True
            group = [first]
            # A caller that was answered a moment ago is likely to call again at once. A commit costs the same for one
            # call as for many, so it pays to wait for more calls for up to the time that a commit takes.
            self._gather(group, self._patience_s if declared(first.op).together is not None else 0.0)
            started_at = self.clock.monotonic()
            with self._writing:
                self._commit(group, is_writer=True)
                self._has_group = False
            self._patience_s = min(LONGEST_PATIENCE_S, self.clock.monotonic() - started_at)

    def _gather(self, group: list[PendingCall], patience_s: float = 0.0, *, leaves_large: bool = False) -> None:
        """Adds the calls in the inbox, and those that arrive within `patience_s` while fewer came than the last time.

        With `leaves_large`, a large call is left for the next transaction.
        """
        if not patience_s and self._inbox.empty():
            return
        rows = sum(call.rows for call in group)
        give_up_at = self.clock.monotonic() + patience_s
        while len(group) < MOST_IN_GROUP and rows < MOST_ROWS and self._set_aside is None:
            call = self._taken(give_up_at if patience_s and len(group) < self._company else None)
            if call is None:
                return
            if leaves_large and call.is_large:
                self._set_aside = call
            else:
                group.append(call)
                rows += call.rows

    def _taken(self, until: float | None) -> PendingCall | None:
        """The next call in the inbox, waiting until a time if one is given; None if there is none."""
        try:
            call = self._inbox.get_nowait()
        except queue.Empty:
            left_s = 0.0 if until is None else until - self.clock.monotonic()
            if left_s <= 0:
                return None
            try:
                call = self._inbox.get(timeout=left_s)
            except queue.Empty:
                return None
        if call is None:
            self._inbox.put(None)  # The end mark of the inbox: the thread stops after this group.
        return call

    def _commit(self, group: list[PendingCall], *, is_writer: bool = False) -> None:
        """Runs the group in one transaction and answers every caller."""
        with self.gate:
            started = self._commit_inside(group, is_writer)
        # The answered callers and those that wait already: so many may arrive together the next time.
        self._company = len(started) + self._inbox.qsize()
        for call in started:
            call.end()

    def _commit_inside(self, group: list[PendingCall], is_writer: bool) -> list[PendingCall]:
        """Returns the calls that were begun; callers who gave up have taken the others back."""
        started: list[PendingCall] = []
        try:
            if not self._is_open:
                self._open()
            self._awaits_turn = True
            with self._turn.for_large() if any(call.is_large for call in group) else self._turn:
                self._awaits_turn = False
                if is_writer:
                    # The calls that arrived while the group waited for the write lock, heartbeats for example.
                    self._gather(group, leaves_large=True)
                started = [call for call in group if call.begin()]
                if not started:
                    return started
                self._begin()
                self._perform_all(started)
                if self._connection.in_transaction:
                    self._connection.execute("COMMIT")
                    self._arrivals.committed()
        except BaseException as error:
            self._undo()
            self._awaits_turn = False
            started = started or [call for call in group if call.begin()]
            for call in started:
                call.error = self._translated(error)
        else:
            self._send_hints([hint for call in started for hint in call.hints])
        return started

    def _begin(self) -> None:
        give_up_at = self.clock.monotonic() + self._busy_s
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                break
            except sqlite3.OperationalError as error:
                # A program that does not use the turn lock has locked the file.
                if not is_busy(error) or self.clock.monotonic() >= give_up_at:
                    raise
        self._arrivals.place()

    def _perform_all(self, group: list[PendingCall]) -> None:
        for together, members in itertools.groupby(group, key=lambda call: declared(call.op).together):
            calls = list(members)
            is_whole = len(calls) == len(group)
            if together is not None and len(calls) > 1 and self._perform_together(together, calls, alone=is_whole):
                continue
            if not self._connection.in_transaction:
                self._begin()  # The whole group failed together, and the transaction was rolled back.
            for call in calls:
                self._perform(call, alone=len(group) == 1)

    def _perform_together(self, together: Together, calls: list[PendingCall], *, alone: bool) -> bool:
        """Runs many calls of one operation as one; False if that failed and was undone."""

        def run() -> None:
            results = together(self._session, [call.args for call in calls])
            for call, result in zip(calls, results, strict=True):
                call.result = result

        if self._error_of(run, alone=alone) is not None:
            return False
        calls[0].hints = self._session.hints
        return True

    def _perform(self, call: PendingCall, *, alone: bool) -> None:
        def run() -> None:
            call.result = call.op(self._session, *call.args, **call.kwargs)

        error = self._error_of(run, alone=alone)
        if error is None:
            call.hints = self._session.hints
        else:
            call.error = self._translated(error)

    def _error_of(self, run: Callable[[], None], *, alone: bool) -> BaseException | None:
        """Runs a function, in a savepoint unless it is `alone` in its transaction. If it raises, it is undone."""
        self._session.begin()
        if not alone:
            self._connection.execute("SAVEPOINT operation")
        failure: BaseException | None = None
        try:
            run()
        except BaseException as error:
            if isinstance(error, sqlite3.Error) and not self._connection.in_transaction:
                raise  # SQLite has rolled back the whole transaction: the disk is full, or an I/O error.
            failure = error
            self._session.forget()
            self._connection.execute("ROLLBACK" if alone else "ROLLBACK TO operation")
        if not alone:
            self._connection.execute("RELEASE operation")
        return failure

    def _translated(self, error: BaseException) -> BaseException:
        return translated(error, self.path) if isinstance(error, sqlite3.Error) else error

    def _undo(self) -> None:
        self._session.forget()
        if self._connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
