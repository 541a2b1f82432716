"""A real PgBouncer in transaction mode: every transaction of a client may run on another connection of the server."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest

from tests.support import daemons
from tests.support.daemons import LOCALHOST, OwnedFolder
from tests.support.postgres import SUPERUSER, USER, PostgresServer
from tests.support.waiting import eventually


class PgBouncer:
    """PgBouncer in front of one server, for all its databases."""

    def __init__(
        self, server: PostgresServer, *, pool_size: int = 5, settings: Mapping[str, str | int] | None = None
    ) -> None:
        self._binary = _binary()
        self._server = server
        self._settings: dict[str, str | int] = {"default_pool_size": pool_size, **(settings or {})}
        self._folder = OwnedFolder("pgbouncer")
        self._workplace = self._folder.make("run")
        self._process: subprocess.Popen[bytes] | None = None
        self.port = daemons.free_port()
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def url(self, database: str, user: str = USER) -> str:
        return f"postgresql://{user}@{LOCALHOST}:{self.port}/{database}"

    def through(self, url: str) -> str:
        """The URL of a database of the server, by way of PgBouncer."""
        return self.url(url.rpartition("/")[2])

    @functools.cached_property
    def version(self) -> tuple[int, int]:
        """From 1.21 on it can be told to keep prepared statements (`max_prepared_statements`)."""
        answer = daemons.run([self._binary, "--version"], self._folder.path).stdout.split()[1]
        major, minor = answer.split(".")[:2]
        return int(major), int(minor)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts where it was before, so that clients can come back."""
        config = self._workplace / "pgbouncer.ini"
        config.write_text(self._config(), "utf-8")
        (self._workplace / "users.txt").write_text(f'"{USER}" ""\n"{SUPERUSER}" ""\n', "utf-8")
        servant = daemons.account()
        with (self._workplace / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._binary), str(config)],
                cwd=self._workplace,
                env=daemons.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=servant.user,
                group=servant.group,
                extra_groups=servant.groups,
            )
        eventually(self._answers, what="PgBouncer")

    def stop(self) -> None:
        """Ends it at once, as an operator would: clients lose their connections."""
        self._end(kill=False)

    def kill(self) -> None:
        """Ends it without giving it the time to say so."""
        self._end(kill=True)

    def show(self, what: str) -> list[dict[str, Any]]:
        """The answer of its console to SHOW, such as POOLS, SERVERS or STATS."""
        with psycopg.connect(self.url("pgbouncer", SUPERUSER), autocommit=True) as connection:
            cursor = connection.execute(f"SHOW {what}".encode())
            names = [column.name for column in cursor.description or []]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def log(self) -> str:
        return (self._workplace / "log").read_text("utf-8", "replace")

    def close(self) -> None:
        self._end(kill=True)
        self._folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _config(self) -> str:
        settings = {
            "listen_addr": LOCALHOST,
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": self._workplace / "users.txt",
            "admin_users": SUPERUSER,
            "pool_mode": "transaction",
            "max_client_conn": 1000,
            # A server that comes back after a restart is tried again soon, not after the default of 15 seconds.
            "server_login_retry": 1,
            **self._settings,
        }
        lines = [f"{name} = {value}" for name, value in settings.items()]
        return "\n".join(["[databases]", f"* = host={LOCALHOST} port={self._server.port}", "[pgbouncer]", *lines, ""])

    def _answers(self) -> bool:
        if not self.is_running:
            raise RuntimeError(f"PgBouncer did not start:\n{self.log()[-4000:]}")
        try:
            return bool(self.show("VERSION"))
        except psycopg.OperationalError:
            return False

    def _end(self, *, kill: bool) -> None:
        if self._process is None:
            return
        if kill:
            self._process.kill()
        else:
            self._process.terminate()
        self._process.wait(timeout=30)
        self._process = None


def missing() -> str | None:
    """Why there can be no PgBouncer on this machine; `None` if there can."""
    return None if _found() else "no PgBouncer: run scripts/test-servers as root, or install the package pgbouncer"


def require() -> None:
    """Skips the test that cannot have a PgBouncer."""
    if reason := missing():
        pytest.skip(reason)


def _binary() -> Path:
    require()
    found = _found()
    assert found is not None
    return found


def _found() -> Path | None:
    # Debian puts it where the PATH of an ordinary user does not look.
    path = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
    return Path(path) if path else None
