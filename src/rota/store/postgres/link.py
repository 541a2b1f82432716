"""One connection to PostgreSQL, set up for a queue.

The planner sees `ready` empty when statistics are taken, and would then sort the whole table when it is full. So it may
only use index scans here. Behind a pooler, session settings would reach other clients: there the settings are made for
each transaction, and no statement is prepared on the server. A pooler is recognised by the backend's process id: the
one that the pooler announces differs from the one that the server reports.

A server or a network that accepts a query and never answers is noticed by no TCP timeout, as long as the bytes are
acknowledged. So every wait for an answer has a deadline, and a watchdog thread shuts the connection down after it: the
waiting thread then gets the error of a broken connection.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import weakref
from collections.abc import Iterator

import psycopg
from psycopg import pq
from psycopg.rows import tuple_row
from psycopg.types.numeric import Int8Dumper

from rota.clock import MACHINE
from rota.store.postgres.errors import translated
from rota.store.postgres.url import Address

STATEMENT_TIMEOUT_S = 60
LOCK_TIMEOUT_S = 10
IDLE_TIMEOUT_S = 5
SET_UP_S = 5.0
ASK_S = 5.0
CANCEL_S = 2.0
LOOK_S = 0.5
_PLANNER = (
    *("enable_seqscan", "enable_bitmapscan", "enable_sort", "enable_hashjoin", "enable_mergejoin", "enable_material"),
    "jit",
)
SETTINGS: dict[str, str] = {
    **dict.fromkeys(_PLANNER, "off"),
    # The right plan is the same for every size of the tables.
    "plan_cache_mode": "force_generic_plan",
    "statement_timeout": f"{STATEMENT_TIMEOUT_S}s",
    "lock_timeout": f"{LOCK_TIMEOUT_S}s",
    # A process that is stopped inside a transaction must not keep its locks.
    "idle_in_transaction_session_timeout": f"{IDLE_TIMEOUT_S}s",
    "timezone": "UTC",
    "default_transaction_isolation": "read committed",
}
_ALWAYS = ("idle_in_transaction_session_timeout", "default_transaction_isolation")
CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_NOW = " ".join(("SELECT", CLOCK))
TIME_AND_XID = ", ".join((_NOW, "pg_current_xact_id()"))
_TEXT_OID = 25


# Identifies the run of a server within which a transaction id has one meaning: a server that crashes before an id is on
# the disk assigns it again. When one backend crashes, the server restarts the others without changing its own start
# time, but it resets the statistics.
_LIFE = """concat_ws(' ',
    CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END,
    pg_postmaster_start_time(), pg_stat_get_bgwriter_stat_reset_time())"""


class Link:
    """A connection in autocommit mode; transactions are begun and ended by explicit statements.

    While `give_up_at`, a monotonic time, is set, the watchdog shuts the connection down at that time.
    """

    def __init__(self, address: Address, purpose: str, *, planner: bool = True) -> None:
        """`planner` restricts the planner to index scans."""
        self.give_up_at: float | None = None
        self.connection = psycopg.connect(
            address.conninfo, autocommit=True, row_factory=tuple_row, application_name=f"rota {purpose}"
        )
        # A copy of the descriptor: libpq may close its own at any time, and another file may get the number.
        self._plug = socket.socket(fileno=os.dup(self.connection.fileno()))
        _watchdog.add(self)
        try:
            with self.within(SET_UP_S):
                self._set_up(planner)
        except BaseException:
            self.close()
            raise

    def _set_up(self, planner: bool) -> None:
        connection = self.connection
        settings = SETTINGS if planner else {name: SETTINGS[name] for name in _ALWAYS}
        # Ids are text everywhere else.
        text_loader = connection.adapters.get_loader(_TEXT_OID, pq.Format.TEXT)
        assert text_loader is not None
        connection.adapters.register_loader("uuid", text_loader)
        # One type for all numbers: otherwise numbers of different size would get different plans.
        connection.adapters.register_dumper(int, Int8Dumper)
        query = " ".join(("SELECT pg_backend_pid(),", _LIFE))
        pid, self.life = connection.execute(query.encode(), prepare=False).fetchone() or (0, "")
        self.is_pooled = pid != connection.info.backend_pid
        assign = "; ".join("".join(("SET LOCAL ", name, " = '", value, "'")) for name, value in settings.items())
        head, snapshot = BEGIN, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        if self.is_pooled:
            head, snapshot = "; ".join((head, assign)), "; ".join((snapshot, assign))
        self._begin = "; ".join((head, TIME_AND_XID)).encode()
        self._snapshot = snapshot.encode()
        self._begin_reading = "; ".join((snapshot, _NOW)).encode()
        if self.is_pooled:
            connection.prepare_threshold = None
        else:
            connection.prepare_threshold = 0
            connection.prepared_max = 500
            connection.execute(
                "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS s (name, value)",
                (list(settings), list(settings.values())),
                prepare=False,
            )

    @property
    def is_broken(self) -> bool:
        return self.connection.closed

    @property
    def is_in_transaction(self) -> bool:
        return self.connection.pgconn.transaction_status in (
            pq.TransactionStatus.INTRANS,
            pq.TransactionStatus.INERROR,
        )

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Shuts the connection down if the block takes longer."""
        self.give_up_at = MACHINE.monotonic() + seconds
        try:
            yield
        finally:
            self.give_up_at = None

    def begin(self) -> tuple[int, int]:
        """Begins a transaction; returns the database's time and the transaction's id."""
        return time_and_xid(self._say(self._begin))

    def begin_reading(self, statement_s: float | None = None) -> int:
        """Begins a read-only transaction with one snapshot; returns the database's time.

        No statement of the transaction may take longer than `statement_s`.
        """
        words = self._begin_reading
        if statement_s is not None:
            words = b"%b; SET LOCAL statement_timeout = %d; %b" % (self._snapshot, statement_s * 1000, _NOW.encode())
        return int(self._say(words).get_value(0, 0) or b"0")

    def commit(self) -> None:
        check_committed(self._say(b"COMMIT"))

    def rollback(self) -> None:
        self._say(b"ROLLBACK")

    def status_of(self, xid: int) -> str:
        """How a transaction ended: committed, aborted, in progress, or unknown to the server.

        A transaction stays in progress until the server notices that its connection is gone, so its backend is ended.
        """
        query = "SELECT coalesce(pg_xact_status(%s::text::xid8), 'unknown')"
        orphan = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid = %s::text::xid8::xid"
        try:
            with self.within(ASK_S):
                (status,) = self.connection.execute(query, (str(xid),), prepare=False).fetchone() or ("unknown",)
                if status == "in progress":
                    with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
                        self.connection.execute(orphan, (str(xid),), prepare=False)
        except psycopg.errors.InvalidParameterValue:
            return "aborted"  # The server has not assigned this id yet: it restarted without that transaction.
        return str(status)

    def cut(self) -> None:
        """From another thread: shuts the connection down, so that a thread that waits for an answer gets an error."""
        with contextlib.suppress(OSError):
            self._plug.shutdown(socket.SHUT_RDWR)

    def cancel(self) -> None:
        """From another thread: asks the server to cancel the statement that runs."""
        with contextlib.suppress(psycopg.Error):
            self.connection.cancel_safe(timeout=CANCEL_S)

    def close(self) -> None:
        _watchdog.remove(self)
        with contextlib.suppress(psycopg.Error):
            self.connection.close()
        self._plug.close()

    def _say(self, words: bytes) -> pq.abc.PGresult:
        """Sends several statements in one round trip; returns the result of the last one."""
        return checked(self.connection.pgconn.exec_(words))


@contextlib.contextmanager
def connected(address: Address, purpose: str) -> Iterator[Link]:
    """A connection for one task, with the usual planner. Database errors are raised as StoreErrors."""
    try:
        link = Link(address, purpose, planner=False)
        try:
            yield link
        finally:
            link.close()
    except psycopg.Error as error:
        raise translated(error, address.shown) from error


def checked(result: pq.abc.PGresult) -> pq.abc.PGresult:
    """Raises if the result is an error."""
    if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        raise psycopg.errors.error_from_result(result, encoding="utf-8")
    return result


def check_committed(result: pq.abc.PGresult) -> None:
    """Raises if the transaction was rolled back: PostgreSQL answers COMMIT with ROLLBACK then, not with an error."""
    if result.command_status != b"COMMIT":
        raise psycopg.errors.InFailedSqlTransaction("the transaction had failed and was rolled back")


def time_and_xid(result: pq.abc.PGresult) -> tuple[int, int]:
    """The answer to `TIME_AND_XID`."""
    return int(result.get_value(0, 0) or b"0"), int(result.get_value(0, 1) or b"0")


class _Watchdog:
    """Shuts down connections after their deadline. Its thread runs as long as there are connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._links: weakref.WeakSet[Link] = weakref.WeakSet()
        self._thread: threading.Thread | None = None

    def add(self, link: Link) -> None:
        with self._lock:
            self._links.add(link)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rota-watch", daemon=True)
                self._thread.start()

    def remove(self, link: Link) -> None:
        with self._lock:
            self._links.discard(link)

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            with self._lock:
                links = list(self._links)
                if not links:
                    self._thread = None
                    return
            now = MACHINE.monotonic()
            for link in links:
                if link.give_up_at is not None and now >= link.give_up_at:
                    link.cut()
            del links, link  # A connection that is no longer used can be collected.
            pause.wait(LOOK_S)


_watchdog = _Watchdog()


def _reset_after_fork() -> None:
    """After a fork: the child has no watchdog thread, and the connections belong to the parent."""
    global _watchdog
    _watchdog = _Watchdog()


os.register_at_fork(after_in_child=_reset_after_fork)
