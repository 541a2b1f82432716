"""Hints through PostgreSQL: LISTEN and NOTIFY, on one connection for each process.

A thread sends the hints after the commit, many in one NOTIFY: a NOTIFY in every transaction would cost a quarter of the
throughput, and a listener in every worker process nearly all of it. The ends of executions are sent only if a process
has announced (`EndWanted`) that it waits for them. LISTEN does not work behind a pooler: there hints are sent and every
process polls, unless a direct URL is given for listening.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
from collections import deque
from collections.abc import Sequence

import msgspec
import psycopg
from psycopg.pq import Escaping

from rota.clock import MACHINE
from rota.store.hints import Ended, EndWanted, Hint, HintDecoder, Listener, merged
from rota.store.pipe_listener import PipeListener
from rota.store.postgres.errors import translated
from rota.store.postgres.link import Link, checked
from rota.store.postgres.url import Address

log = logging.getLogger("rota.store")

MOST_BYTES = 7000
MOST_IDS = 150
MOST_WANTED = 100_000
WANTED_S = 30.0
LATELY_S = 1.0
GATHER_S = 0.0025
"""On average a process sends at most one NOTIFY in this time. A caller that enqueues and waits for the result causes
two. With 3 ms, one in ten such calls, made one after the other, had to wait."""
EARLY_S = 0.001
"""`poll` takes whole milliseconds, so the wait is rounded down: hints may be sent this much early."""
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 0.5
LONGEST_WAIT_S = 30.0
ANSWER_S = 5.0
PATIENCE = 5
"""A warning is logged after this many failed connections in a row."""
_encode = msgspec.json.Encoder().encode


class PostgresBus:
    """One thread and one connection, opened at the first use."""

    def __init__(self, address: Address, *, is_apart: bool = False) -> None:
        """`is_apart` if the store uses another URL: then only the bus notices that this one cannot be reached."""
        self._address = address
        self._is_apart = is_apart
        self._channel = f"{address.schema}_hints"
        self._decoder = HintDecoder(MACHINE, f"the channel {self._channel}")
        self._lock = threading.Lock()
        self._outbox: list[Hint] = []
        self._listeners: list[PipeListener] = []
        self._wanted: dict[str, float] = {}
        self._send_at = 0.0
        self._ended: deque[tuple[float, Ended]] = deque()
        self._wake_out, self._wake_in = os.pipe()
        os.set_blocking(self._wake_in, False)
        os.set_blocking(self._wake_out, False)
        self._thread: threading.Thread | None = None
        self._link: Link | None = None
        self._is_closed = False
        self.is_live = False
        """Whether hints of other processes arrive now."""

    def send(self, hints: Sequence[Hint]) -> None:
        if hints:
            with self._lock:
                is_first = not self._outbox
                self._outbox.extend(hints)
            self._deliver(hints)
            if is_first:
                self._start()
                self._wake()

    def listen(self, *kinds: type[Hint]) -> Listener:
        listener = PipeListener(kinds, self._forget)
        with self._lock:
            self._listeners.append(listener)
        self._start()
        return listener

    def close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._wake()
        if self._thread is not None:
            self._thread.join(timeout=5.0)
        os.close(self._wake_in)
        os.close(self._wake_out)

    def abandon(self) -> None:
        """In the child of a fork: the thread and the connection belong to the parent."""
        self._is_closed = True

    def _forget(self, listener: PipeListener) -> None:
        with self._lock:
            self._listeners.remove(listener)

    def _start(self) -> None:
        with self._lock:
            is_running = self._thread is not None and self._thread.is_alive()
            if not is_running and not self._is_closed:
                self._thread = threading.Thread(target=self._serve, name="rota-hints", daemon=True)
                self._thread.start()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._wake_in, b"!")

    def _serve(self) -> None:
        pause_s, failures = FIRST_PAUSE_S, 0
        while not self._is_closed:
            try:
                self._work()
                pause_s, failures = FIRST_PAUSE_S, 0
            except BaseException as error:  # If this thread ended, the process would get no more wake-ups.
                failures += 1
                self._complain(error, failures)
                self._drop()
                # Meanwhile processes poll. The outbox is sent when the server is back.
                select.select([], [], [], pause_s)
                pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
        if pause_s == FIRST_PAUSE_S:
            # The last hints, also of a program that ended before it had a connection.
            with contextlib.suppress(psycopg.Error):
                self._flush()
        self._drop()

    def _complain(self, error: BaseException, failures: int) -> None:
        if not isinstance(error, psycopg.Error):
            if failures == 1:
                log.error("the thread for wake-ups failed and reconnects", exc_info=error)
            return
        if self._is_apart and failures == PATIENCE:
            shown = translated(error, self._address.shown)
            log.warning("no wake-ups come by listen_url, so work is found by polling only: %s", shown)
        log.debug("hints: %s", error)

    def _work(self) -> None:
        link = self._open()
        now = MACHINE.monotonic()
        if now >= self._send_at - EARLY_S:
            self._flush()
            self._receive(link)  # Notifications that arrived with the answer do not make the socket readable.
        wait_s = max(0.0, self._send_at - now) if self._outbox else LONGEST_WAIT_S
        # Not select.select, which refuses descriptors from 1024 on.
        poll = select.poll()
        for descriptor in (link.connection.pgconn.socket, self._wake_out):
            poll.register(descriptor, select.POLLIN)
        readable = poll.poll(int(wait_s * 1000))
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_out, 4096)
        if not readable and wait_s == LONGEST_WAIT_S:
            # No notification for long: check that the connection still works.
            self._ask(link, b"SELECT 1")
        self._receive(link)

    def _ask(self, link: Link, query: bytes) -> None:
        """Runs a query through libpq: a cursor would consume the notifications that arrive with the answer."""
        with link.within(ANSWER_S):
            checked(link.connection.pgconn.exec_(query))

    def _notify(self, link: Link, payload: bytes) -> None:
        """Uses the command NOTIFY. The function pg_notify must be planned, and took a third longer."""
        escape = Escaping(link.connection.pgconn)
        channel = escape.escape_identifier(self._channel.encode())
        self._ask(link, b"NOTIFY %b, %b" % (channel, escape.escape_literal(payload)))

    def _open(self) -> Link:
        if self._link is None:
            self._link = Link(self._address, "hints", planner=False)
            if not self._link.is_pooled:
                with self._link.within(ANSWER_S):
                    self._link.connection.execute("".join(("LISTEN ", '"', self._channel, '"')).encode(), prepare=False)
                    # A NOTIFY is a commit, but a lost one does no harm.
                    self._link.connection.execute("SET synchronous_commit = off", prepare=False)
                self.is_live = True
        return self._link

    def _drop(self) -> None:
        self.is_live = False
        link, self._link = self._link, None
        if link is not None:
            with contextlib.suppress(OSError):
                link.close()

    def _receive(self, link: Link) -> None:
        pgconn = link.connection.pgconn
        pgconn.consume_input()
        heard: list[Hint] = []
        while (notify := pgconn.notifies()) is not None:
            if notify.be_pid != pgconn.backend_pid:
                heard.extend(self._decoder.decode(notify.extra))
        if heard:
            self._deliver(merged(heard))

    def _deliver(self, hints: Sequence[Hint]) -> None:
        """Passes hints to the listeners in this process."""
        with self._lock:
            listeners = list(self._listeners)
            for hint in hints:
                if isinstance(hint, EndWanted):
                    self._remember(hint.ids)
        for listener in listeners:
            listener.put(hints)

    def _remember(self, ids: Sequence[str]) -> None:
        now = MACHINE.monotonic()
        if len(self._wanted) > MOST_WANTED:
            self._wanted = {id: until for id, until in self._wanted.items() if until > now}
            if len(self._wanted) > MOST_WANTED:
                return  # Callers that wait for an end also poll.
        self._wanted.update(dict.fromkeys(ids, now + WANTED_S))
        # Some may have ended before the announcement arrived.
        lately = set(ids).intersection(id for _, hint in self._ended for id in hint.ids)
        if lately:
            self._outbox.append(Ended(tuple(lately)))
            self._wake()  # Otherwise these and all later hints would wait: `send` wakes the thread for the first one.

    def _flush(self) -> None:
        """Sends the outbox: one NOTIFY for all hints since the last. There is at most one in `GATHER_S` on average.
        After a pause, two may follow each other at once: for an enqueue, and for the end that its caller waits for."""
        with self._lock:
            hints, self._outbox = self._outbox, []
            hints = self._worth_telling(hints)
        if not hints:
            return
        try:
            link = self._open()
            for payload in _payloads(merged(hints)):
                self._notify(link, payload)
        except psycopg.Error:
            with self._lock:
                self._outbox = hints[-1000:] + self._outbox
            raise
        self._send_at = max(self._send_at, MACHINE.monotonic() - GATHER_S) + GATHER_S

    def _worth_telling(self, hints: list[Hint]) -> list[Hint]:
        """Leaves out the ends that no process waits for."""
        wanted, now = self._wanted, MACHINE.monotonic()
        while self._ended and self._ended[0][0] < now - LATELY_S:
            self._ended.popleft()
        kept: list[Hint] = []
        for hint in hints:
            if isinstance(hint, Ended):
                self._ended.append((now, hint))
                ids = tuple(id for id in hint.ids if id in wanted) if wanted else ()
                if ids:
                    kept.append(Ended(ids))
            else:
                kept.append(hint)
        return kept


def _payloads(hints: Sequence[Hint]) -> list[bytes]:
    """Payloads for NOTIFY. A hint for too many lanes is dropped: the workers also poll."""
    pieces: list[list[Hint]] = [[hint for hint in hints if not isinstance(hint, Ended | EndWanted)]]
    for kind in (EndWanted, Ended):
        ids = [id for hint in hints if isinstance(hint, kind) for id in hint.ids]
        pieces += [[kind(tuple(ids[start : start + MOST_IDS]))] for start in range(0, len(ids), MOST_IDS)]
    return [payload for piece in pieces if piece and len(payload := _encode(piece)) <= MOST_BYTES]
