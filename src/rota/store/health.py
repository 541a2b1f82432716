"""How the database file is doing: what `rota doctor` asks of the machine below the tables."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import msgspec

from rota.clock import Clock
from rota.store.readonly import file_of
from rota.store.sqlite_file import connect, translated

# Locks and shared memory do not work between machines there, and WAL needs both.
REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs"})


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. `write_s` is how long a durable commit took; `write_error` says why there was none."""

    path: str
    sqlite_version: str
    journal_mode: str
    bytes: int
    wal_bytes: int
    free_bytes: int
    file_system: str
    write_s: float | None
    write_error: str
    is_full: bool = False
    """Whether there was none because the disk is full."""

    @property
    def is_remote(self) -> bool:
        return self.file_system in REMOTE


def examine(url: str, clock: Clock) -> Health:
    """Looks at an existing database and commits one write that changes nothing."""
    path = file_of(url)
    journal_mode = _journal_mode(path)
    write_s, write_error, is_full = _write(path, clock)
    space = os.statvfs(Path(path).parent)
    return Health(
        path=path,
        sqlite_version=sqlite3.sqlite_version,
        journal_mode=journal_mode,
        bytes=_size(path),
        wal_bytes=_size(path + "-wal"),
        free_bytes=space.f_bavail * space.f_frsize,
        file_system=_file_system(path),
        write_s=write_s,
        write_error=write_error,
        is_full=is_full,
    )


def _journal_mode(path: str) -> str:
    connection = connect(path, write=False)
    try:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0])
    except sqlite3.Error as error:
        raise translated(error, path) from error
    finally:
        connection.close()


def _write(path: str, clock: Clock) -> tuple[float | None, str, bool]:
    """Seconds that a durable commit takes. The same value again in the header: a page is written, nothing changes."""
    connection = sqlite3.connect(path, timeout=5.0, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        started_at = clock.monotonic()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("PRAGMA user_version = 0")
        connection.execute("COMMIT")
        return clock.monotonic() - started_at, "", False
    except sqlite3.Error as error:
        return None, str(translated(error, path)), getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
    finally:
        connection.close()


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _file_system(path: str) -> str:
    """The type of the file system that holds `path`, where the kernel tells."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except (OSError, UnicodeDecodeError):
        return ""
    above = [(mount[1], mount[2]) for mount in mounts if len(mount) > 2 and Path(path).is_relative_to(mount[1])]
    return max(above, key=lambda mount: len(mount[0]), default=("", ""))[1]
