"""The checks of `rota doctor` for SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from rota.cli.database import Database
from rota.cli.doctor_checks import Check, Finding, check, durable_write, fail, ok, warn
from rota.domain.errors import StoreUnavailable
from rota.domain.size import words as size
from rota.store.sqlite import health
from rota.store.sqlite.file import file_of
from rota.store.sqlite.health import Health

LARGE_WAL = 256 * 1024 * 1024
LITTLE_SPACE, NO_SPACE = 1024 * 1024 * 1024, 50 * 1024 * 1024
LEAST_TO_WRITE = 64 * 1024


@lru_cache(maxsize=1)
def _health(database: Database) -> Health:
    """Examined once for all checks."""
    path = file_of(database.settings.url)
    if not Path(path).exists():
        raise StoreUnavailable(f"there is no database at {path} yet: start `rota dev MODULE:APP` or set ROTA_URL")
    return health.examine(database.settings.url, database.clock)


@check("database")
def database(database: Database) -> list[Finding]:
    """Raises if there is no database; has no line of its own otherwise."""
    _health(database)
    return []


@check("write")
def write(database: Database) -> Iterator[Finding]:
    found = _health(database)
    if found.write_s is None:
        is_full = found.is_full or found.free_bytes < LEAST_TO_WRITE
        advice = "free some space on its disk" if is_full else "make the file and its folder writable"
        if found.is_locked:
            advice = "let that process finish, or end it: until then nothing can be written"
        yield fail(found.write_error, advice)
    else:
        yield durable_write(found.path, found.write_s)


@check("files", "the database and its side files are closed to other users of the machine")
def files(database: Database) -> Iterator[Finding]:
    if exposed := _health(database).exposed:
        names = ", ".join(Path(path).name for path in exposed)
        yield warn(f"every user of this machine can open {names}", f"chmod o= {' '.join(exposed)}")


@check("journal")
def journal(database: Database) -> Iterator[Finding]:
    found = _health(database)
    words = f"journal mode {found.journal_mode}, WAL of {size(found.wal_bytes)}, database of {size(found.bytes)}"
    if found.is_remote:
        words = f"the database is on {found.file_system}, where SQLite's locks do not work between machines"
        yield fail(words, "move it to a local disk")
    elif found.journal_mode != "wal":
        yield warn(words, "a worker sets it to wal when it starts")
    elif found.wal_bytes > LARGE_WAL:
        yield warn(words, "find the program that keeps a read open on the database")
    else:
        yield ok(words)


@check("disk")
def disk(database: Database) -> Iterator[Finding]:
    free_bytes = _health(database).free_bytes
    words = f"{size(free_bytes)} free"
    if free_bytes < NO_SPACE:
        yield fail(words, "free some space: soon nothing can be accepted")
    else:
        yield warn(words) if free_bytes < LITTLE_SPACE else ok(words)


@check("sqlite")
def sqlite(database: Database) -> Iterator[Finding]:
    yield ok(_health(database).sqlite_version)


CHECKS: tuple[Check, ...] = (database, write, files, journal, disk, sqlite)
