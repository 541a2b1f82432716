"""The files beside a SQLite database: created for their owner only; links and files of other users are refused.

Another user who may write into the folder (/tmp, for example) could plant a symbolic link or a file in place of the
lock, the WAL or the folder of sockets. Rota opens none of these through a symbolic link, and accepts only files of the
effective user, of root, or of the owner of the database. If the database itself is writable by its group or by
everyone, its owner has shared it on purpose, and files of other users are accepted too.

The database itself may be a link; its side files are beside the target of the link.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from rota.domain.errors import StoreUnavailable

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
LOCK, HINTS = "-turn", "-hints"
OF_SQLITE = ("-wal", "-shm", "-journal")
_OTHERS = stat.S_IRWXO


def real(path: str) -> str:
    """The file behind links. Resolved once, so that a database and its side files are always neighbours."""
    return os.path.realpath(path)


def create_database(path: str) -> None:
    """Creates an empty file that only its owner can read; SQLite gives `-wal` and `-shm` the same mode.

    An existing file is not opened: closing it would release the locks that SQLite has on it in this process.
    """
    if not os.path.lexists(path):
        with contextlib.suppress(FileExistsError):
            os.close(_created(path))


def check(path: str, *, write: bool) -> None:
    """Refuses a link or another user's file in place of a file of SQLite or, to write, of the folder of sockets."""
    for suffix in (*OF_SQLITE, HINTS) if write else OF_SQLITE:
        with contextlib.suppress(FileNotFoundError):
            is_kind = stat.S_ISDIR if suffix == HINTS else stat.S_ISREG
            _check(path, path + suffix, os.lstat(path + suffix), is_kind)


def open_lock(path: str, *, create: bool = True) -> int:
    """A descriptor of the lock file beside the database."""
    file = path + LOCK
    while True:
        try:
            fd = os.open(file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            break
        except FileNotFoundError:
            if not create:
                raise
            with contextlib.suppress(FileExistsError):  # Another process was faster.
                fd = _created(file)
                _give_to_owner(path, fd)
                break
        except OSError:
            _check(path, file, os.lstat(file), stat.S_ISREG)
            raise
    return _checked(path, file, fd, stat.S_ISREG)


def open_folder(path: str, *, create: bool) -> int:
    """A descriptor of the folder of sockets beside the database."""
    folder = path + HINTS
    is_new = False
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, PRIVATE_FOLDER)  # noqa: PTH102
            is_new = True
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except NotADirectoryError:
        _check(path, folder, os.lstat(folder), stat.S_ISDIR)
        raise
    _checked(path, folder, fd, stat.S_ISDIR)
    if is_new:
        os.fchmod(fd, PRIVATE_FOLDER)
        _give_to_owner(path, fd)
    return fd


def exposed(path: str) -> list[str]:
    """The database and those of its side files that every user of the machine can read or write."""
    found = []
    for suffix in ("", *OF_SQLITE, LOCK, HINTS):
        with contextlib.suppress(OSError):
            if os.lstat(path + suffix).st_mode & _OTHERS:
                found.append(path + suffix)
    return found


def _created(file: str) -> int:
    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
    os.fchmod(fd, PRIVATE_FILE)  # Whatever the umask is.
    return fd


def _give_to_owner(path: str, fd: int) -> None:
    """A file that root creates beside another user's database must be usable by that user."""
    with contextlib.suppress(OSError):
        if os.geteuid() == 0:
            owner = Path(path).stat()
            os.fchown(fd, owner.st_uid, owner.st_gid)


def _checked(path: str, file: str, fd: int, is_kind: Callable[[int], bool]) -> int:
    try:
        _check(path, file, os.fstat(fd), is_kind)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _check(path: str, file: str, found: os.stat_result, is_kind: Callable[[int], bool]) -> None:
    if not is_kind(found.st_mode):
        wanted = "folder" if is_kind is stat.S_ISDIR else "regular file"
        kind = "a link" if stat.S_ISLNK(found.st_mode) else f"no {wanted}"
        raise StoreUnavailable(f"{file} is {kind}, which Rota does not use: find out who made it, and remove it")
    if found.st_uid in (os.geteuid(), 0):
        return
    try:
        database = Path(path).stat()
    except FileNotFoundError:
        database = None
    is_shared = database is not None and database.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not is_shared and (database is None or found.st_uid != database.st_uid):
        raise StoreUnavailable(
            f"{file} belongs to user {found.st_uid}, who is neither this user nor the owner of the database: find out "
            "who made it, and remove it; or let a group share the database (chmod g+w)"
        )
