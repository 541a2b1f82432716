"""Opening a SQLite database: the file, its settings, and the lock by which several processes take turns to write."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import sqlite3
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from rota.domain.errors import DefinitionError, StoreError, StoreFull, StoreMismatch, StoreUnavailable
from rota.domain.url import masked
from rota.store.sqlite import side_files

OLDEST = (3, 38, 0)
MEMORY = ":memory:"
HEAD_START_S = 0.25
"""The kernel wakes all processes that wait for a lock at once; a busy machine runs them in any order for this long."""


def path_of(url: str) -> str:
    """The file behind `sqlite:///relative.db`, `sqlite:////absolute.db` or `sqlite://:memory:`."""
    if not url.startswith("sqlite://"):
        raise DefinitionError(
            "the URL of a database is sqlite:///file.db (relative), sqlite:////folder/file.db (absolute) "
            f"or postgresql://…, not {masked(url)!r}"
        )
    rest = url.removeprefix("sqlite://")
    if rest in (MEMORY, "/" + MEMORY):
        return MEMORY
    if not rest.startswith("/") or len(rest) < 2 or "\x00" in rest:
        raise DefinitionError("a SQLite URL is sqlite:///file.db (relative) or sqlite:////folder/file.db (absolute)")
    return os.path.abspath(rest[1:])


def file_of(url: str) -> str:
    """The file behind a URL; refuses a database in memory."""
    path = path_of(url)
    if path == MEMORY:
        raise DefinitionError("a database in memory belongs to one process: use sqlite:///file.db (ROTA_URL or --url)")
    return path


def connect(path: str, *, write: bool, patience_s: float = 5.0) -> sqlite3.Connection:
    """A connection with Rota's settings; every commit of a writer is on the disk when it returns."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise StoreMismatch(f"SQLite {sqlite3.sqlite_version} is too old: Rota needs {'.'.join(map(str, OLDEST))}")
    if path != MEMORY:
        path = side_files.real(path)
        if not Path(path).parent.is_dir():
            raise StoreUnavailable(f"the folder {Path(path).parent} does not exist: create it or change the URL")
        side_files.check(path, write=write)
    try:
        if path != MEMORY and write:
            side_files.create_database(path)
        connection = sqlite3.connect(
            path, timeout=patience_s, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        if write:
            connection.execute("PRAGMA schema_version")  # Fails now if the file is no database.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA wal_autocheckpoint = 8000")
        else:
            connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA cache_size = -32000")
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA temp_store = MEMORY")
    except sqlite3.Error as error:
        raise translated(error, path) from error
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be created ({error.strerror}): {_advice(path)}") from None
    return connection


def switch_to_wal(connection: sqlite3.Connection) -> None:
    """Called under the turn lock: SQLite does not wait while another process switches the same new file."""
    connection.execute("PRAGMA journal_mode = WAL")


def identity(path: str) -> tuple[int, int] | None:
    """Identifies a file even if another one takes its name; None if there is none."""
    try:
        file = Path(path).stat()
    except OSError:
        return None
    return file.st_dev, file.st_ino


class TurnLock:
    """An advisory lock beside the file, taken before each write transaction.

    SQLite waits for its own write lock with a back-off, which can starve a process. The kernel's queue for this lock is
    fair, and the kernel releases the lock of a dead process.

    The first byte of the file is a mark: `0` if the table `arrival` is empty, anything else if it may have rows. It is
    read in a fraction of the time of a query, written only by the holder of the lock, and not flushed to the disk.
    """

    def __init__(self, path: str, *, create: bool = True) -> None:
        """`path` is the database's, without links. `create=False` raises FileNotFoundError if there is no lock yet."""
        try:
            self._fd = -1 if path == MEMORY else side_files.open_lock(path, create=create)
        except PermissionError as error:
            raise StoreUnavailable(f"{path}-turn cannot be opened ({error.strerror}): {_advice(path)}") from None
        self._inode = "" if self._fd < 0 else str(os.fstat(self._fd).st_ino)

    def take(self, patience_s: float) -> bool:
        """Takes the lock, waiting for at most `patience_s`; False if it was not free in time, and then it is closed.

        The kernel has no lock with a timeout, so a thread waits. If it gets the lock too late, it releases it.
        """
        if self.take_now():
            return True
        fd, guard, taken = self._fd, threading.Lock(), threading.Event()

        def wait() -> None:
            fcntl.flock(fd, fcntl.LOCK_EX)
            with guard:
                if self._fd == fd:
                    taken.set()
                else:
                    os.close(fd)

        threading.Thread(target=wait, name="rota-sqlite-turn", daemon=True).start()
        taken.wait(patience_s)
        with guard:
            if not taken.is_set():
                self._fd = -1  # The thread closes it.
            return taken.is_set()

    def take_now(self) -> bool:
        """Takes the lock if it is free; False if it is not."""
        if self._fd >= 0:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    def release(self) -> None:
        if self._fd >= 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    @property
    def is_there(self) -> bool:
        """Whether other processes find the file. If it was deleted, they do not see the mark."""
        return self._fd < 0 or os.fstat(self._fd).st_nlink > 0

    def is_marked(self) -> bool:
        """Whether there may be arrivals; also true of a new file, and if there is none."""
        try:
            return self._fd < 0 or os.pread(self._fd, 1, 0) != b"0"
        except OSError:
            return True  # Another thread has closed the file.

    def mark(self, *, is_set: bool) -> None:
        if self._fd >= 0:
            os.pwrite(self._fd, b"1" if is_set else b"0", 0)

    def __enter__(self) -> None:
        if self._fd >= 0:
            fcntl.flock(self._fd, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self.release()

    @contextlib.contextmanager
    def for_large(self) -> Iterator[None]:
        """The lock for a large write. Such writes queue among themselves first, at a second lock on the same file.

        So at most one of them is in the queue of the lock proper, and a heartbeat waits for one large write at most.
        """
        if self._fd < 0 or not sys.platform.startswith("linux"):
            with self:
                yield
            return
        try:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _range_lock(fcntl.F_WRLCK))
        except OSError:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLKW, _range_lock(fcntl.F_WRLCK))
            # The processes that waited for the last large write were woken at the same time: let them go first.
            threading.Event().wait(HEAD_START_S)
        try:
            with self:
                yield
        finally:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _range_lock(fcntl.F_UNLCK))

    def holder(self) -> int | None:
        """The process that holds the lock, from /proc/locks; None if there is none, or it is not known."""
        try:
            lines = Path("/proc/locks").read_text().splitlines()
        except OSError:
            return None
        for fields in map(str.split, lines):
            # "1: FLOCK  ADVISORY  WRITE 4321 fe:00:131074 0 EOF"; a waiting process has an arrow after the number.
            if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == self._inode:
                return int(fields[4])
        return None

    def busy(self, path: str, waited_s: float) -> StoreUnavailable:
        """The error for a caller that did not get the lock in time."""
        holder = self.holder()
        if holder == os.getpid():
            who = "This process is writing, or waits for a program that has locked the file without Rota"
        else:
            who = f"{f'Process {holder}' if holder else 'Another process'} holds its lock, {path}{side_files.LOCK}"
        words = f"{path} was busy for {waited_s:g} s; nothing was accepted. {who}: see `rota doctor`"
        return StoreUnavailable(words, may_pass=True)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _range_lock(kind: int) -> bytes:
    """The `struct flock` of Linux, for the first byte of the file."""
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 1, 0)


def name_thread(name: str) -> None:
    """Gives the calling thread a name that the kernel shows; Python 3.14 does so by itself."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


_PR_SET_NAME = 15
_EFFECTIVE = os.access in os.supports_effective_ids
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_UNAVAILABLE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}


def is_busy(error: BaseException) -> bool:
    """Whether the same call is worth repeating on the same connection."""
    return isinstance(error, sqlite3.Error) and (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _BUSY


def translated(error: sqlite3.Error, path: str) -> StoreError:
    """A SQLite error as a StoreError with a message that says what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _BUSY:
        return StoreUnavailable(f"{path} is locked by another program: {error}", may_pass=True)
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(f"no space left to write {path}; nothing was accepted. Free some space and try again")
    if code in _UNAVAILABLE:
        name = getattr(error, "sqlite_errorname", "no code")
        return StoreUnavailable(f"{path} cannot be read or written ({error}, {name}): {_advice(path)}")
    if code == sqlite3.SQLITE_NOTADB:
        return StoreMismatch(f"{path} is not a SQLite database")
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreMismatch(f"{path} is damaged: restore it from a backup, or try `sqlite3 {path} .recover`")
    return StoreError(f"{path}: {error}")


def _advice(path: str) -> str:
    """Names the file or folder whose permissions are the cause, if one is found."""
    for each in (path, f"{path}-turn", f"{path}-wal", f"{path}-shm", os.path.dirname(path) or "."):  # noqa: PTH120
        if os.path.exists(each) and not os.access(each, os.R_OK | os.W_OK, effective_ids=_EFFECTIVE):  # noqa: PTH110
            return f"make {each} readable and writable for this user"
    return "check that it exists and its permissions"
