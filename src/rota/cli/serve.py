"""Runs the HTTP API: this process holds the socket, and processes that it starts answer the requests.

The socket stays open while the processes are replaced, so no connection is refused: SIGHUP starts new processes, waits
until they answer, and then lets the old ones finish their requests. A process that ends by itself is replaced.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import msgspec

from rota import config
from rota.api.guard import is_loopback
from rota.cli.database import Database
from rota.clock import MACHINE
from rota.config import Settings
from rota.domain.errors import UsageError
from rota.store import access_reader
from rota.store.opening import open_store

BACKLOG = 2048
START_S = 60.0
"""How long a new process may take until it answers."""
PAUSES_S = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Between the tries to replace a process that has ended."""
REPLACED = signal.SIGUSR1
"""Says to a process that others answer on its socket already. Python handles it before SIGTERM."""
SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
log = logging.getLogger("rota.api")


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server listens, with how many processes, and with which certificate."""

    host: str = "127.0.0.1"
    port: int = 8080
    uds: str | None = None
    processes: int = 1
    cert: str | None = None
    key: str | None = None
    is_auth_off: bool = False

    @property
    def is_local(self) -> bool:
        return self.uds is not None or is_loopback(self.host)

    @property
    def shown(self) -> str:
        if self.uds is not None:
            return f"unix:{self.uds}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.cert else 'http'}://{host}:{self.port}"


def serve(database: Database, where: Listening) -> None:
    """Serves until a signal."""
    check(database, config.load(**database.given), where)
    database.export()  # The processes read the URL from their environment: every user can read their arguments.
    bound = bind(where)
    if where.uds is None:
        where = msgspec.structs.replace(where, port=bound.getsockname()[1])
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        _Crew(where, bound).run()
    finally:
        bound.close()
        if where.uds is not None:
            Path(where.uds).unlink(missing_ok=True)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def check(database: Database, settings: Settings, where: Listening) -> None:
    """Refuses to serve on other addresses than this machine's without tokens."""
    if where.is_auth_off and not where.is_local:
        raise UsageError("--no-auth is only for 127.0.0.1, ::1 or --uds: otherwise every host could use the server")
    if (where.cert is None) != (where.key is None):
        raise UsageError("--tls-cert and --tls-key belong together")
    store = open_store(settings.url, database.clock, busy_s=settings.busy_s)
    try:
        has_tokens = store.read(access_reader.has_tokens)
    finally:
        store.close()
    if has_tokens:
        return
    if not where.is_local:
        raise UsageError(
            f"without tokens the server listens only on this machine, not on {where.host}: "
            "`rota tokens create NAME --role admin` makes the first one"
        )
    log.warning("there are no tokens yet: every user of this machine can use the server")


def bind(where: Listening) -> socket.socket:
    if where.uds is not None:
        bound = socket.socket(socket.AF_UNIX)
        if Path(where.uds).is_socket():  # The socket of a server that was killed.
            Path(where.uds).unlink()
        mask = os.umask(0o177)
        try:
            bound.bind(where.uds)
        except OSError as error:
            bound.close()
            raise UsageError(f"cannot listen on {where.shown}: {error.strerror}") from None
        finally:
            os.umask(mask)
    else:
        bound = socket.socket(socket.AF_INET6 if ":" in where.host else socket.AF_INET)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((where.host, where.port))
        except OSError as error:
            bound.close()
            words = f"cannot listen on {where.shown}: {error.strerror}; choose another --port or --host"
            raise UsageError(words) from None
    bound.listen(BACKLOG)
    return bound


class _Process:
    """A process that answers requests."""

    def __init__(self, where: Listening, bound: socket.socket) -> None:
        answers, says = os.pipe()
        about = msgspec.json.encode(where).decode()
        self.child = subprocess.Popen(
            [sys.executable, "-P", "-m", "rota.cli.server_process", str(bound.fileno()), str(says), about],
            pass_fds=[bound.fileno(), says],
        )
        os.close(says)
        self._answers = answers

    def is_ready(self) -> bool:
        """Waits until the process answers requests; False if it ended or takes too long."""
        until = MACHINE.monotonic() + START_S
        try:
            readable, _, _ = select.select([self._answers], [], [], max(0.0, until - MACHINE.monotonic()))
            return bool(readable) and os.read(self._answers, 1) == b"1"
        finally:
            os.close(self._answers)

    def stop(self, *, is_replaced: bool = False) -> None:
        """A process that is replaced learns it first: the server as a whole does not stop."""
        if self.child.poll() is None:
            if is_replaced:
                self.child.send_signal(REPLACED)
            self.child.send_signal(signal.SIGTERM)


class _Crew:
    """The processes of one server."""

    def __init__(self, where: Listening, bound: socket.socket) -> None:
        self._where, self._bound = where, bound
        self._serving: list[_Process] = []
        self._leaving: list[_Process] = []
        self._is_stopping = False

    def run(self) -> None:
        self._serving = self._started()
        if not self._serving:
            raise UsageError("the server could not start; the lines above say why")
        log.info("listening on %s", self._where.shown)
        while self._serving or self._leaving:
            match signal.sigwait(SIGNALS):
                case signal.SIGCHLD:
                    self._reap()
                case signal.SIGHUP:
                    self._replace()
                case _:
                    self._stop()

    def _started(self) -> list[_Process]:
        """New processes that answer; none of them if one could not start."""
        new = [_Process(self._where, self._bound) for _ in range(self._where.processes)]
        ready = [process.is_ready() for process in new]
        if all(ready):
            return new
        for process in new:
            process.stop()
            process.child.wait()
        return []

    def _replace(self) -> None:
        new = self._started()
        if not new:
            log.error("new processes could not start; the old ones stay")
            return
        for process in self._serving:
            process.stop(is_replaced=True)
        self._leaving += self._serving
        self._serving = new
        log.info("%d new processes answer; the old ones finish their requests", len(new))

    def _reap(self) -> None:
        self._leaving = [process for process in self._leaving if process.child.poll() is None]
        ended = [process for process in self._serving if process.child.poll() is not None]
        for process in ended:
            self._serving.remove(process)
            if not self._is_stopping:
                log.error("a process of the server ended with code %d; starting another", process.child.returncode)
                self._start_another()

    def _start_another(self) -> None:
        """Tries for some seconds: the next process may end for the same reason."""
        for pause_s in PAUSES_S:
            if pause_s:
                threading.Event().wait(pause_s)
            process = _Process(self._where, self._bound)
            if process.is_ready():
                self._serving.append(process)
                return
            process.child.kill()
            process.child.wait()
        log.error("no process of the server could be started")
        if not self._serving:
            raise UsageError("the server has no process left that answers; the lines above say why")

    def _stop(self) -> None:
        """At the first signal the processes finish their requests; at the second they are killed."""
        for process in [*self._serving, *self._leaving]:
            process.child.kill() if self._is_stopping else process.stop()
        self._is_stopping = True
