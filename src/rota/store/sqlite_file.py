"""Opening a SQLite database: the file, its settings, and the lock by which several processes take turns to write."""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
from pathlib import Path

from rota.domain.errors import DefinitionError, StoreError, StoreMismatch, StoreUnavailable

OLDEST = (3, 38, 0)
MEMORY = ":memory:"


def path_of(url: str) -> str:
    """The file behind `sqlite:///relative.db`, `sqlite:////absolute.db` or `sqlite://:memory:`."""
    if not url.startswith("sqlite://"):
        begins = re.match(r"[\w+.-]*:?/{0,3}", url)  # What follows may be a password.
        raise DefinitionError(
            "the URL of a database is sqlite:///file.db (relative), sqlite:////folder/file.db (absolute) "
            f"or postgresql://…, but this one begins with {begins[0] if begins else ''!r}"
        )
    rest = url.removeprefix("sqlite://")
    if rest in (MEMORY, "/" + MEMORY):
        return MEMORY
    if not rest.startswith("/") or len(rest) < 2 or "\x00" in rest:
        raise DefinitionError("a SQLite URL is sqlite:///file.db (relative) or sqlite:////folder/file.db (absolute)")
    return os.path.abspath(rest[1:])


def connect(path: str, *, write: bool, patience_s: float = 5.0) -> sqlite3.Connection:
    """A connection with Rota's settings; every commit of a writer is on the disk when it returns."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise StoreMismatch(f"SQLite {sqlite3.sqlite_version} is too old: Rota needs {'.'.join(map(str, OLDEST))}")
    if path != MEMORY and not Path(path).parent.is_dir():
        raise StoreUnavailable(f"the folder {Path(path).parent} does not exist: create it or change the URL")
    try:
        connection = sqlite3.connect(
            path, timeout=patience_s, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        if write:
            connection.execute("PRAGMA schema_version")  # Refuses now what is no database.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA wal_autocheckpoint = 8000")
        else:
            connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA cache_size = -32000")
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA temp_store = MEMORY")
    except sqlite3.Error as error:
        raise translated(error, path) from error
    return connection


def switch_to_wal(connection: sqlite3.Connection) -> None:
    """To be called in one's turn: SQLite does not wait while another process switches the same new file."""
    connection.execute("PRAGMA journal_mode = WAL")


def identity(path: str) -> tuple[int, int] | None:
    """What tells a file from another of the same name; None if there is none."""
    try:
        file = Path(path).stat()
    except OSError:
        return None
    return file.st_dev, file.st_ino


class TurnLock:
    """An advisory lock beside the file, taken before each write transaction.

    SQLite's own waiting for the write lock is a back-off that starves the unlucky; the kernel's queue for this lock is
    fair. A dead process holds no lock.
    """

    def __init__(self, path: str) -> None:
        try:
            self._fd = -1 if path == MEMORY else os.open(path + "-turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except PermissionError as error:
            raise StoreUnavailable(f"{path}-turn cannot be opened ({error.strerror}): {_advice(path)}") from None

    def __enter__(self) -> None:
        if self._fd >= 0:
            fcntl.flock(self._fd, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def holder(self) -> int | None:
        """The process whose turn it is, as the kernel tells; None if nobody's, or if it does not tell."""
        try:
            file, lines = os.fstat(self._fd), Path("/proc/locks").read_text().splitlines()
        except OSError:
            return None
        for fields in map(str.split, lines):
            # "1: FLOCK  ADVISORY  WRITE 4321 fe:00:131074 0 EOF"; those who only wait have an arrow after the number.
            if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == str(file.st_ino):
                return int(fields[4])
        return None

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


_EFFECTIVE = os.access in os.supports_effective_ids
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_UNAVAILABLE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}


def is_busy(error: BaseException) -> bool:
    """Whether the same call is worth repeating on the same connection."""
    return isinstance(error, sqlite3.Error) and (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _BUSY


def translated(error: sqlite3.Error, path: str) -> StoreError:
    """An error of SQLite as one of ours, in words that say what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _BUSY:
        return StoreUnavailable(f"{path} is locked by another program: {error}")
    if code == sqlite3.SQLITE_FULL:
        return StoreUnavailable(f"no space left to write {path}; nothing was accepted. Free some space and try again")
    if code in _UNAVAILABLE:
        return StoreUnavailable(f"{path} cannot be read or written ({error}): {_advice(path)}")
    if code == sqlite3.SQLITE_NOTADB:
        return StoreMismatch(f"{path} is not a SQLite database")
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreMismatch(f"{path} is damaged: restore it from a backup, or try `sqlite3 {path} .recover`")
    return StoreError(f"{path}: {error}")


def _advice(path: str) -> str:
    """Names what is in the way, if that shows: the file, its folder, or one of those that SQLite keeps beside it."""
    for each in (path, f"{path}-turn", f"{path}-wal", f"{path}-shm", os.path.dirname(path) or "."):  # noqa: PTH120
        if os.path.exists(each) and not os.access(each, os.R_OK | os.W_OK, effective_ids=_EFFECTIVE):  # noqa: PTH110
            return f"make {each} readable and writable for this user"
    return "check that it exists and its permissions"
