"""The cluster store: a PostgreSQL database that any number of processes and machines share.

Whole operations are passed to a few threads, each with a connection of its own. Waiting calls of one operation share
one transaction; heartbeats have a connection of their own. A future is done only after the commit, so an answer is
durable.

`inline=True` runs everything in the calling thread instead: for tests and the simulator, which need no threads.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Concatenate, ParamSpec, TypeVar, cast

import psycopg

from rota.clock import MACHINE, Clock, SystemClock
from rota.domain.errors import ReadStopped, StoreUnavailable
from rota.store.hints import Bus
from rota.store.pending_call import FIRST_PAUSE_S, PendingCall
from rota.store.port import Submitted, Tx, View, declared
from rota.store.postgres import migrate as postgres_migrate
from rota.store.postgres import url as postgres_url
from rota.store.postgres.bus import PostgresBus
from rota.store.postgres.errors import Remedy, remedy, translated
from rota.store.postgres.inbox import Inbox
from rota.store.postgres.link import Link
from rota.store.postgres.session import PostgresSession
from rota.store.postgres.writer import Patience, Writer
from rota.store.watch import Watch

log = logging.getLogger("rota.store")

P = ParamSpec("P")
T = TypeVar("T")
_CANCELLED = psycopg.errors.QueryCanceled
MOST_WRITERS = 4
MOST_IDLE_READERS = 2
APART_S = 3.0
"""How long one try of a heartbeat may take. A hanging connection would cost the lease; a new one may work."""


class PostgresStore:
    """Implements `rota.store.port.Store`."""

    def __init__(
        self,
        url: str,
        clock: Clock | None = None,
        *,
        busy_s: float = 30.0,
        inline: bool = False,
        listen_url: str | None = None,
        purpose: str = "",
    ) -> None:
        self._address = postgres_url.parse(url)
        self.patience_s: float | None = None
        self.clock = clock or SystemClock()
        self._busy_s = busy_s
        self._inline = inline
        self._purpose = purpose or f"pid {os.getpid()}"
        self._closing = threading.Event()
        self._lock = threading.RLock()
        self._calling = threading.Lock()
        """Held by the caller that writes in its own thread."""
        self._direct: Writer | None = None
        self._writers: list[Writer] = []
        self._threads: list[threading.Thread] = []
        self._readers: queue.LifoQueue[tuple[Link, PostgresSession]] = queue.LifoQueue()
        self._inbox = Inbox(lambda: self._start_writer(self._inbox, MOST_WRITERS))
        self._apart = Inbox(lambda: self._start_writer(self._apart, 1))
        self._counts: dict[Inbox, int] = {self._inbox: 0, self._apart: 0}
        listening = postgres_url.parse(listen_url) if listen_url else self._address
        self._own_bus = PostgresBus(listening, is_apart=listening != self._address)
        self.bus: Bus = self._own_bus
        self._prepare()
        _open_stores.add(self)

    def submit(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> Submitted[T]:
        call = PendingCall(op, args, kwargs, Submitted())
        self._send(call)
        assert call.future is not None
        return call.future

    def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        call = PendingCall(op, args, kwargs)
        if not self._write_here(call):
            self._send(call)
            if not call.wait(self._busy_s):
                raise self.too_busy()
        return cast("T", call.answer())

    def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self.read_watched(Watch(), query, *args, **kwargs)

    def read_watched(
        self, watch: Watch, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if self._closing.is_set():
            raise StoreUnavailable("the store is closed")
        patience = Patience(self._busy_s, self._closing)
        while True:
            try:
                with self._reader(patience.until, declared(query).is_repeatable, watch) as session:
                    return query(session, *args, **kwargs)
            except psycopg.Error as error:
                if watch.is_stopped or (watch.statement_s is not None and isinstance(error, _CANCELLED)):
                    raise ReadStopped("the read took too long: narrow it with filters, or read it in parts") from error
                if remedy(error) is Remedy.NONE or not patience.lasts():
                    raise translated(error, self._address.shown) from error
            patience.pause()

    def too_busy(self) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self._address.shown} was busy for {self._busy_s:g} s; nothing was accepted: see `rota doctor`",
            may_pass=True,
        )

    def blocker(self) -> int | None:
        return None

    def commits(self) -> int | None:
        return None

    def trouble(self) -> str | None:
        return None

    def close(self) -> None:
        if self._closing.is_set():
            return
        self._closing.set()
        rest = [*self._inbox.close(), *self._apart.close()]
        for call in rest:
            if call.is_begun or call.begin():
                call.error = StoreUnavailable("the store is closed")
                call.end()
        for writer in self._writers:
            writer.closing.set()
        until = MACHINE.monotonic() + self._busy_s
        for thread in self._threads:
            thread.join(max(0.0, until - MACHINE.monotonic()))
        for writer in self._writers:
            writer.let_go()
        with contextlib.suppress(queue.Empty):
            while True:
                self._readers.get_nowait()[0].close()
        self.bus.close()
        _open_stores.discard(self)

    def abandon(self) -> None:
        """In the child of a fork: the threads and connections belong to the parent."""
        self._closing.set()
        self._own_bus.abandon()

    def _write_here(self, call: PendingCall) -> bool:
        """Runs the call in the caller's thread if no other call waits: two thread switches cost a third of the time.

        Several callers at once are served faster together, by the writer threads.
        """
        if self._inline or not self._inbox.is_empty or not self._calling.acquire(blocking=False):
            return False
        try:
            if self._closing.is_set():
                raise StoreUnavailable("the store is closed")
            return not self._direct_writer().perform([call])
        finally:
            self._calling.release()

    def _send(self, call: PendingCall) -> None:
        if self._closing.is_set():
            raise StoreUnavailable("the store is closed")
        if self._inline:
            with self._lock:
                while self._direct_writer().perform([call]):
                    self._closing.wait(FIRST_PAUSE_S)
        elif not (self._apart if declared(call.op).is_urgent else self._inbox).put(call):
            raise StoreUnavailable("the store is closed")

    def _direct_writer(self) -> Writer:
        """The writer for calls that run in the thread of their caller."""
        if self._direct is None:
            with self._lock:
                self._direct = self._new_writer()
                self._writers.append(self._direct)
        return self._direct

    def _prepare(self) -> None:
        patience = Patience(self._busy_s, self._closing)
        is_logged = False
        while True:
            try:
                link = Link(self._address, self._purpose, planner=False)
                try:
                    postgres_migrate.apply(link, self._address.schema, self.clock)
                finally:
                    link.close()
            except psycopg.Error as error:
                if remedy(error) is Remedy.NONE or not patience.lasts():
                    raise translated(error, self._address.shown) from error
                if not is_logged:
                    log.warning("waiting for the database: %s", translated(error, self._address.shown))
                    is_logged = True
                patience.pause()
            else:
                return

    def _new_writer(self, cut_s: float | None = None) -> Writer:
        return Writer(self._address, self.clock, self._purpose, self._busy_s, lambda hints: self.bus.send(hints), cut_s)

    def _start_writer(self, inbox: Inbox, most: int) -> None:
        """Starts another writer thread for an inbox, up to a number."""
        with self._lock:
            if self._counts[inbox] >= most or self._closing.is_set():
                return
            self._counts[inbox] += 1
            writer = self._new_writer(cut_s=APART_S if inbox is self._apart else None)
            self._writers.append(writer)
            thread = threading.Thread(target=_serve, args=(inbox, writer), name="rota-writer", daemon=True)
            self._threads.append(thread)
            thread.start()

    @contextlib.contextmanager
    def _reader(self, until: float, is_repeatable: bool, watch: Watch) -> Iterator[View]:
        link, session = self._idle_reader()
        try:
            link.give_up_at = until
            with watch.by(link.cancel):
                if is_repeatable and not link.is_pooled:
                    session.begin_autocommit()
                    yield session
                else:
                    session.begin(link.begin_reading(watch.statement_s))
                    yield session
                    link.rollback()
            link.give_up_at = None
        except BaseException:
            link.close()
            raise
        # A cancel request may arrive late, and would hit the next statement of the connection.
        if watch.is_stopped or self._closing.is_set() or self._readers.qsize() >= MOST_IDLE_READERS:
            link.close()
        else:
            self._readers.put((link, session))

    def _idle_reader(self) -> tuple[Link, PostgresSession]:
        with contextlib.suppress(queue.Empty):
            return self._readers.get_nowait()
        link = Link(self._address, self._purpose)
        return link, PostgresSession(link, self._address.schema, self.clock)


def _serve(inbox: Inbox, writer: Writer) -> None:
    while group := inbox.take():
        try:
            postponed = writer.perform(group)
        finally:
            inbox.done(group)
        for call in postponed:
            if not inbox.put(call):
                call.error = StoreUnavailable("the store is closed")
                call.end()


_open_stores: weakref.WeakSet[PostgresStore] = weakref.WeakSet()


def _abandon_all() -> None:
    for store in list(_open_stores):
        store.abandon()


os.register_at_fork(after_in_child=_abandon_all)
