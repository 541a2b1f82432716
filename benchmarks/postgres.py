"""The PostgreSQL server that a run brings along: durable, and the same one for Rota and for the peers.

It is the tests' server with other settings: PostgreSQL 18 from a wheel, or what ROTA_TEST_POSTGRES_BIN names. Nothing
that makes a commit safe is switched off. Its memory and its connections are those of a small production server, and
the log may grow to 4 GB, so that no measurement is cut in half by a forced checkpoint.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from benchmarks import processes
from tests.support.postgres import USER, PostgresServer, Setting

SETTINGS: dict[str, Setting] = {
    "shared_buffers": "512MB",
    "max_connections": 300,
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "logging_collector": False,
    "log_line_prefix": "%d|",
}
DURABILITY = ("fsync", "synchronous_commit", "full_page_writes")
FLUSHED_S = 0.2
# BEGIN, COMMIT and the like are not counted, as on SQLite, unless the statement also queries something.
_FRAME = r"(?!(?:BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE)[^;]*;?$)"


class Server:
    """A server, and what it is doing."""

    def __init__(self) -> None:
        self._server = PostgresServer(durable=True, settings=SETTINGS)
        self._names = itertools.count(1)
        safe = {name: self.one(f"SHOW {name}") for name in DURABILITY}
        assert set(safe.values()) == {"on"}, f"this would be no durable measurement: {safe}"
        self.folder = Path(self.one("SHOW data_directory"))
        self._pid = int(self.one("SELECT pg_read_file('postmaster.pid')").split()[0])

    def close(self) -> None:
        self._server.close()

    def describe(self) -> str:
        settings = ", ".join(f"{name} {self.one(f'SHOW {name}')}" for name in (*DURABILITY, *list(SETTINGS)[:3]))
        return f"PostgreSQL {self.one('SHOW server_version').split()[0]} ({settings})"

    def create_database(self) -> str:
        """The name of a new one, owned by the ordinary role."""
        name = f"bench_{os.getpid()}_{next(self._names)}"
        self._server.create_database(name)
        return name

    def drop_database(self, name: str) -> None:
        self._server.drop_database(name)

    def url(self, database: str) -> str:
        return self._server.url(database, USER)

    def connect(self, database: str) -> psycopg.Connection:
        """As superuser; every statement commits at once."""
        return psycopg.connect(self._server.url(database, "postgres"), autocommit=True)

    def settle(self, database: str) -> None:
        """Vacuums, analyses and checkpoints, so that the server is like one that has run for a while.

        Without statistics a peer's drain of 110,000 was two to three times slower than that of 60,000.
        """
        with self.connect(database) as session:
            session.execute("VACUUM (ANALYZE)")
            session.execute("CHECKPOINT")

    def one(self, statement: str) -> Any:
        return self._server.execute(statement)[0][0]

    def cpu_s(self) -> float:
        """Processor time of the server and the sessions that are open now."""
        return processes.cpu_s(processes.family(self._pid))

    def log_statements(self, database: str) -> None:
        """Sessions that begin from now on have their statements written to the log, to be counted."""
        command = sql.SQL("ALTER DATABASE {} SET log_statement = 'all'")
        self._server.execute(command.format(sql.Identifier(database)))

    def statements(self, database: str) -> int:
        """How many statements were logged for `database` so far, without BEGIN, COMMIT and the like."""
        time.sleep(FLUSHED_S)
        pattern = rf"^{re.escape(database)}\|LOG:  (?:statement|execute [^:]*): \s*{_FRAME}"
        return len(re.findall(pattern, self._server.log(), re.MULTILINE | re.IGNORECASE))


@contextlib.contextmanager
def running() -> Iterator[Server]:
    server = Server()
    try:
        yield server
    finally:
        server.close()
