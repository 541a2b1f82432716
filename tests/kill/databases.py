"""The database that a fleet works on: a file in its folder, or a server of its own that flushes to the disk."""

from __future__ import annotations

import fcntl
import signal
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg

from rota.clock import SystemClock
from rota.store.hints import CancelAsked, Due, Ended, Ready
from rota.store.sqlite.bus import SqliteBus
from tests.kill.processes import Process, wait_until
from tests.support.postgres import PostgresServer

DATABASES = ("sqlite", "postgres")
PATIENCE_S = 30.0


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """The URL of a database with nothing in it."""
    if kind == "sqlite":
        yield f"sqlite:///{folder}/rota.db"
    else:
        with PostgresServer(durable=True) as server:
            yield server.create_database()


def leftovers(url: str) -> list[str]:
    """Files that killed processes left and no process has removed."""
    path = _file(url)
    if path is not None:
        return _sockets(path)
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        query = (
            "SELECT application_name, state FROM pg_stat_activity "
            "WHERE application_name LIKE 'rota %' AND datname = current_database()"
        )
        left = connection.execute(query).fetchall()
        return [f"a connection of a process that is gone: {name} ({state})" for name, state in left]


def stop(processes: Sequence[Process], url: str) -> None:
    """Stops them all, but on SQLite never during a write, which would block all other processes."""
    path = _file(url)

    def is_stopped() -> bool:
        for process in processes:
            process.signal(signal.SIGSTOP)
        for process in processes:
            wait_until(process.stands_still, PATIENCE_S, f"process {process.pid} to stop")
        if path is None or _has_no_writer(path):
            return True
        for process in processes:
            process.signal(signal.SIGCONT)
        return False

    wait_until(is_stopped, PATIENCE_S, "a moment without a transaction")


def _has_no_writer(path: Path) -> bool:
    with path.with_name(f"{path.name}-turn").open() as turn:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _sockets(path: Path) -> list[str]:
    """The sockets of the killed go at the next hint of each kind; the others took theirs along."""
    bus = SqliteBus(str(path), SystemClock())
    bus.send([Ready({1: 0}), Due(1), CancelAsked(1), Ended(("nobody",))])
    bus.close()
    return [f"left in the hints folder: {left.name}" for left in path.with_name(f"{path.name}-hints").iterdir()]


def _file(url: str) -> Path | None:
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else None
