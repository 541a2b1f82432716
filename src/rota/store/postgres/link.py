"""One connection to PostgreSQL, set up for a queue.

The planner sees `ready` empty when statistics are taken and then sorts everything when it is full, so here it may only
walk indexes. Behind a pooler a session's settings would be somebody else's: there they are set for each
transaction, and nothing is prepared on the server. A pooler gives itself away, because the process number that it
announces is not the one of the server's process.
"""

from __future__ import annotations

import contextlib
import os
import socket

import psycopg
from psycopg import pq
from psycopg.rows import tuple_row
from psycopg.types.numeric import Int8Dumper

from rota.store.postgres import watch
from rota.store.postgres.url import Address

STATEMENT_TIMEOUT_S = 60
LOCK_TIMEOUT_S = 10
IDLE_TIMEOUT_S = 5
SET_UP_S = 5.0
ASK_S = 5.0
_PLANNER = ("enable_seqscan", "enable_bitmapscan", "enable_sort", "enable_hashjoin", "enable_mergejoin", "jit")
SETTINGS: dict[str, str] = {
    **dict.fromkeys(_PLANNER, "off"),
    # Fixed plans: the tables are as small or as large as they happen to be, the right plan is always the same.
    "plan_cache_mode": "force_generic_plan",
    "statement_timeout": f"{STATEMENT_TIMEOUT_S}s",
    "lock_timeout": f"{LOCK_TIMEOUT_S}s",
    # A process that was stopped in the middle of a transaction must not hold its locks for ever.
    "idle_in_transaction_session_timeout": f"{IDLE_TIMEOUT_S}s",
    "timezone": "UTC",
    "default_transaction_isolation": "read committed",
}
_ALWAYS = ("idle_in_transaction_session_timeout", "default_transaction_isolation")
CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_NOW = " ".join(("SELECT", CLOCK))
_TEXT_OID, _UUID_OID = 25, 2950


# Transactions have numbers, which a server gives out anew if it crashed before the first use was on the disk. So
# a number tells something only as long as the server has not been started again and no other has taken its place. After
# the crash of one of its processes a server starts the others again and keeps its own start; that resets statistics.
_LIFE = """concat_ws(' ',
    CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END,
    pg_postmaster_start_time(), pg_stat_get_bgwriter_stat_reset_time())"""


class Link:
    """A connection in autocommit mode; transactions are opened and ended in words.

    Whoever waits for an answer sets `give_up_at` before, and clears it afterwards.
    """

    def __init__(self, address: Address, purpose: str, *, planner: bool = True) -> None:
        self.give_up_at: float | None = None
        self.connection = psycopg.connect(
            address.conninfo, autocommit=True, row_factory=tuple_row, application_name=f"rota {purpose}"
        )
        # A copy of the descriptor: libpq closes its own when it likes, and the number may then be somebody else's.
        self._plug = socket.socket(fileno=os.dup(self.connection.fileno()))
        watch.watch(self)
        try:
            self.give_up_at = watch.in_seconds(SET_UP_S)
            self._set_up(planner)
            self.give_up_at = None
        except BaseException:
            self.close()
            raise

    def _set_up(self, planner: bool) -> None:
        connection = self.connection
        settings = SETTINGS if planner else {name: SETTINGS[name] for name in _ALWAYS}
        connection.adapters.register_loader("uuid", _text_loader(connection))
        # Always the same type, or every magnitude of a number would have a plan of its own.
        connection.adapters.register_dumper(int, Int8Dumper)
        query = " ".join(("SELECT pg_backend_pid(),", _LIFE))
        pid, self.life = connection.execute(query.encode(), prepare=False).fetchone() or (0, "")
        self.is_pooled = pid != connection.info.backend_pid
        assign = "; ".join("".join(("SET LOCAL ", name, " = '", value, "'")) for name, value in settings.items())
        head, snapshot = "BEGIN ISOLATION LEVEL READ COMMITTED", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        if self.is_pooled:
            head, snapshot = "; ".join((head, assign)), "; ".join((snapshot, assign))
        self._begin = "; ".join((head, "".join((_NOW, ", pg_current_xact_id()")))).encode()
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

    def begin(self) -> tuple[int, int]:
        """Opens a transaction; returns the database's time and the transaction's number."""
        result = self._say(self._begin)
        return int(result.get_value(0, 0) or b"0"), int(result.get_value(0, 1) or b"0")

    def begin_reading(self) -> int:
        """Opens a transaction that sees one state and changes nothing; returns the database's time."""
        return int(self._say(self._begin_reading).get_value(0, 0) or b"0")

    def commit(self) -> None:
        result = self._say(b"COMMIT")
        if (
            result.command_status != b"COMMIT"
        ):  # A transaction that had failed answers with ROLLBACK, not with an error.
            raise psycopg.errors.InFailedSqlTransaction("the transaction had failed and was rolled back")

    def rollback(self) -> None:
        self._say(b"ROLLBACK")

    def status_of(self, xid: int) -> str:
        """What became of a transaction: committed, aborted, in progress, or that the server cannot tell.

        One whose connection is gone may stay in progress for as long as the server does not notice; it is ended.
        """
        query = "SELECT coalesce(pg_xact_status(%s::text::xid8), 'unknown')"
        orphan = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid = %s::text::xid8::xid"
        self.give_up_at = watch.in_seconds(ASK_S)
        try:
            (status,) = self.connection.execute(query, (str(xid),), prepare=False).fetchone() or ("unknown",)
            if status == "in progress":
                with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
                    self.connection.execute(orphan, (str(xid),), prepare=False)
        except psycopg.errors.InvalidParameterValue:
            return "aborted"  # A number that the server has not given out yet: it came back without that transaction.
        finally:
            self.give_up_at = None
        return str(status)

    def cut(self) -> None:
        """From another thread: whoever waits for an answer on this connection gets an error instead."""
        with contextlib.suppress(OSError):
            self._plug.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        watch.forget(self)
        with contextlib.suppress(psycopg.Error):
            self.connection.close()
        self._plug.close()

    def _say(self, words: bytes) -> pq.abc.PGresult:
        """Several statements in one round trip; the result of the last one."""
        return checked(self.connection.pgconn.exec_(words))


def checked(result: pq.abc.PGresult) -> pq.abc.PGresult:
    """`result`, unless it is an error."""
    if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        raise psycopg.errors.error_from_result(result, encoding="utf-8")
    return result


def _text_loader(connection: psycopg.Connection[tuple[object, ...]]) -> type[psycopg.abc.Loader]:
    """The fast loader for text, which serves for ids as well: they are text everywhere else."""
    loader = connection.adapters.get_loader(_TEXT_OID, pq.Format.TEXT)
    assert loader is not None
    return loader
