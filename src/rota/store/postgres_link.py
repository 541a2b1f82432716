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

from rota.store.postgres_url import Address

STATEMENT_TIMEOUT_S = 60
LOCK_TIMEOUT_S = 10
IDLE_TIMEOUT_S = 20
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
}
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_TEXT_OID, _UUID_OID = 25, 2950


class Link:
    """A connection in autocommit mode; transactions are opened and ended in words."""

    def __init__(self, address: Address, purpose: str, *, planner: bool = True) -> None:
        self.connection = psycopg.connect(
            address.conninfo, autocommit=True, row_factory=tuple_row, application_name=f"rota {purpose}"
        )
        try:
            self._set_up(planner)
        except BaseException:
            self.connection.close()
            raise

    def _set_up(self, planner: bool) -> None:
        connection = self.connection
        settings = SETTINGS if planner else {name: SETTINGS[name] for name in ("idle_in_transaction_session_timeout",)}
        connection.adapters.register_loader("uuid", _text_loader(connection))
        # Always the same type, or every magnitude of a number would have a plan of its own.
        connection.adapters.register_dumper(int, Int8Dumper)
        asked = connection.execute(
            "SELECT pg_backend_pid(), substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)", prepare=False
        )
        pid, self.timeline = asked.fetchone() or (0, "")
        self.is_pooled = pid != connection.info.backend_pid
        assign = "; ".join("".join(("SET LOCAL ", name, " = '", value, "'")) for name, value in settings.items())
        head = "; ".join(("BEGIN", assign)) if self.is_pooled else "BEGIN"
        snapshot = head.replace("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", 1)
        self._begin = "; ".join((head, "".join((_NOW, ", pg_current_xact_id()")))).encode()
        self._begin_reading = "; ".join((snapshot, _NOW)).encode()
        if self.is_pooled:
            connection.prepare_threshold = None
        else:
            connection.prepare_threshold = 0
            connection.prepared_max = 500
            for name, value in settings.items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, value), prepare=False)

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
        self._say(b"COMMIT")

    def rollback(self) -> None:
        self._say(b"ROLLBACK")

    def status_of(self, xid: int) -> str:
        """What became of a transaction: committed, aborted, in progress, or that the server cannot tell."""
        query = "SELECT coalesce(pg_xact_status(%s::text::xid8), 'unknown')"
        try:
            (status,) = self.connection.execute(query, (str(xid),), prepare=False).fetchone() or ("unknown",)
        except psycopg.errors.InvalidParameterValue:
            return "aborted"  # A number that the server has not given out yet: it came back without that transaction.
        return str(status)

    def cut(self) -> None:
        """From another thread: whoever waits for an answer on this connection gets an error instead."""
        with contextlib.suppress(OSError, psycopg.Error):
            fd = os.dup(self.connection.pgconn.socket)
            with socket.socket(fileno=fd) as end:
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(psycopg.Error):
            self.connection.close()

    def _say(self, words: bytes) -> pq.abc.PGresult:
        """Several statements in one round trip; the result of the last one."""
        pgconn = self.connection.pgconn
        result = pgconn.exec_(words)
        if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            raise psycopg.errors.error_from_result(result, encoding="utf-8")
        return result


def _text_loader(connection: psycopg.Connection[tuple[object, ...]]) -> type[psycopg.abc.Loader]:
    """The fast loader for text, which serves for ids as well: they are text everywhere else."""
    loader = connection.adapters.get_loader(_TEXT_OID, pq.Format.TEXT)
    assert loader is not None
    return loader
