"""Reads the health of a SQLite file for `rota doctor`."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import msgspec

from rota.clock import Clock
from rota.store.sqlite import side_files
from rota.store.sqlite.file import TurnLock, connect, file_of, is_busy, translated

LOCK_WAIT_S = 5.0
# WAL needs locks and shared memory, which do not work between machines on these.
REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs"})


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """How long a durable commit took, or why it failed."""

    write_s: float | None = None
    write_error: str = ""
    is_full: bool = False
    """Whether the write failed because the disk is full."""
    is_locked: bool = False
    """Whether the write failed because another process held the lock."""


class Health(Written, frozen=True, kw_only=True):
    """The findings."""

    path: str
    sqlite_version: str
    journal_mode: str
    bytes: int
    wal_bytes: int
    free_bytes: int
    file_system: str
    exposed: list[str] = []
    """Files that every user of the machine can read or write."""

    @property
    def is_remote(self) -> bool:
        return self.file_system in REMOTE


def examine(url: str, clock: Clock) -> Health:
    """Examines an existing database and commits one write that changes nothing."""
    path = side_files.real(file_of(url))
    journal_mode = _journal_mode(path)
    written = _write(path, clock)
    space = os.statvfs(Path(path).parent)
    return Health(
        **msgspec.structs.asdict(written),
        path=path,
        sqlite_version=sqlite3.sqlite_version,
        journal_mode=journal_mode,
        bytes=_size(path),
        wal_bytes=_size(path + "-wal"),
        free_bytes=space.f_bavail * space.f_frsize,
        file_system=_file_system(path),
        exposed=side_files.exposed(path),
    )


def _journal_mode(path: str) -> str:
    connection = connect(path, write=False)
    try:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0])
    except sqlite3.Error as error:
        raise translated(error, path) from error
    finally:
        connection.close()


def _write(path: str, clock: Clock) -> Written:
    """Times a durable commit under the turn lock. It rewrites a header value."""
    try:
        turn = TurnLock(path, create=False)
    except FileNotFoundError:
        return _committed(path, clock)  # No worker has used this database yet.
    try:
        if not turn.take(LOCK_WAIT_S):
            return Written(write_error=str(turn.busy(path, LOCK_WAIT_S)), is_locked=True)
        return _committed(path, clock)
    finally:
        turn.close()


def _committed(path: str, clock: Clock) -> Written:
    connection = sqlite3.connect(path, timeout=5.0, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        started_at = clock.monotonic()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("PRAGMA user_version = 0")
        connection.execute("COMMIT")
        return Written(write_s=clock.monotonic() - started_at)
    except sqlite3.Error as error:
        is_full = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
        return Written(write_error=str(translated(error, path)), is_full=is_full, is_locked=is_busy(error))
    finally:
        connection.close()


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _file_system(path: str) -> str:
    """The type of the file system of `path`, from /proc/mounts."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except (OSError, UnicodeDecodeError):
        return ""
    above = [(mount[1], mount[2]) for mount in mounts if len(mount) > 2 and Path(path).is_relative_to(mount[1])]
    return max(above, key=lambda mount: len(mount[0]), default=("", ""))[1]
