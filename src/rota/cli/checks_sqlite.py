"""What `rota doctor` looks at on SQLite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rota.cli import text
from rota.cli.checks import Finding, Verdict
from rota.cli.database import Database
from rota.domain import duration

if TYPE_CHECKING:
    from rota.store.sqlite.health import Health

LARGE_WAL = 256 * 1024 * 1024
LITTLE_SPACE, NO_SPACE = 1024 * 1024 * 1024, 50 * 1024 * 1024
LEAST_TO_WRITE = 64 * 1024
SLOW_WRITE_S = 0.1


def database(database: Database) -> list[Finding]:
    from rota.domain.errors import StoreUnavailable
    from rota.store.sqlite import health
    from rota.store.sqlite.file import file_of

    path = file_of(database.settings.url)
    if not Path(path).exists():
        raise StoreUnavailable(f"there is no database at {path} yet: start `rota dev MODULE:APP` or set ROTA_URL")
    found = health.examine(database.settings.url, database.clock)
    return [
        _write(found),
        _files(found),
        _journal(found),
        _space(found),
        Finding("sqlite", Verdict.OK, found.sqlite_version),
    ]


def _write(found: Health) -> Finding:
    if found.write_s is None:
        is_full = found.is_full or found.free_bytes < LEAST_TO_WRITE
        advice = "free some space on its disk" if is_full else "make the file and its folder writable"
        if found.is_locked:
            advice = "let that process finish, or end it: until then nothing can be written"
        return Finding("write", Verdict.FAIL, found.write_error, advice)
    took = f"a durable write to {found.path} took {duration.words(found.write_s)}"
    if found.write_s > SLOW_WRITE_S:
        return Finding("write", Verdict.WARN, took, "use a faster disk, or see who else is writing")
    return Finding("write", Verdict.OK, took)


def _files(found: Health) -> Finding:
    if found.exposed:
        names = ", ".join(Path(path).name for path in found.exposed)
        words = f"every user of this machine can open {names}"
        return Finding("files", Verdict.WARN, words, f"chmod o= {' '.join(found.exposed)}")
    return Finding("files", Verdict.OK, "the database and its side files are closed to other users of the machine")


def _journal(found: Health) -> Finding:
    words = (
        f"journal mode {found.journal_mode}, WAL of {text.size(found.wal_bytes)}, database of {text.size(found.bytes)}"
    )
    if found.is_remote:
        words = f"the database is on {found.file_system}, where SQLite's locks do not work between machines"
        return Finding("journal", Verdict.FAIL, words, "move it to a local disk")
    if found.journal_mode != "wal":
        return Finding("journal", Verdict.WARN, words, "a worker sets it to wal when it starts")
    if found.wal_bytes > LARGE_WAL:
        return Finding("journal", Verdict.WARN, words, "find the program that keeps a read open on the database")
    return Finding("journal", Verdict.OK, words)


def _space(found: Health) -> Finding:
    words = f"{text.size(found.free_bytes)} free"
    if found.free_bytes < NO_SPACE:
        return Finding("disk", Verdict.FAIL, words, "free some space: soon nothing can be accepted")
    return Finding("disk", Verdict.WARN if found.free_bytes < LITTLE_SPACE else Verdict.OK, words)
