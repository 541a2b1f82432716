"""What `rota doctor` looks at. A group of checks raises if the groups after it could not work either."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rota import __version__
from rota.cli import text
from rota.cli.database import Database
from rota.domain import duration

if TYPE_CHECKING:
    from rota.store.health import Health
    from rota.store.reader import WorkerRow

MICROSECONDS = 1_000_000
LARGE_WAL = 256 * 1024 * 1024
LITTLE_SPACE, NO_SPACE = 1024 * 1024 * 1024, 50 * 1024 * 1024
SLOW_WRITE_S = 0.1
CLOCK_SLACK_S = 0.5
STOPPED_SINCE_NEVER = 2**62


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(msgspec.Struct, frozen=True):
    """One line of the report."""

    check: str
    verdict: Verdict
    found: str
    advice: str = ""


def settings(database: Database) -> list[Finding]:
    from rota.config import FILE, Settings
    from rota.store.postgres_url import shown

    known = database.settings
    source = f", {FILE} and the environment" if Path(FILE).is_file() else " and the environment"
    found = [
        Finding("settings", Verdict.OK, f"{shown(known.url)}, namespace {known.namespace} (from defaults{source})")
    ]
    names = {f"ROTA_{field.upper()}" for field in Settings.__struct_fields__}
    for name in sorted(set(os.environ) - names):
        if name.startswith("ROTA_"):
            found.append(Finding("settings", Verdict.WARN, f"{name} is no setting", "check its spelling, or unset it"))
    return found


def database(database: Database) -> list[Finding]:
    from rota.domain.errors import StoreUnavailable
    from rota.store import health, readonly

    path = readonly.file_of(database.settings.url)
    if not Path(path).exists():
        raise StoreUnavailable(f"there is no database at {path} yet: start `rota dev MODULE:APP` or set ROTA_URL")
    found = health.examine(database.settings.url, database.clock)
    return [_write(found), _journal(found), _space(found), Finding("sqlite", Verdict.OK, found.sqlite_version)]


def schema(database: Database) -> list[Finding]:
    from rota.store import migrate, readonly

    behind = readonly.pending(database.settings.url)
    if behind:
        return [Finding("schema", Verdict.FAIL, f"lacks the migration {behind[0].name}", "run `rota migrate`")]
    return [Finding("schema", Verdict.OK, f"up to date ({migrate.known('sqlite')[-1].name})")]


def clock(database: Database) -> list[Finding]:
    from rota.store import reader

    clock = database.clock
    before = clock.now() / MICROSECONDS - clock.monotonic()
    stored, newest = database.read(reader.clock)
    apart_s = abs(clock.now() - stored) / MICROSECONDS
    jump_s = abs(clock.now() / MICROSECONDS - clock.monotonic() - before)
    ahead_s = (newest - stored) / MICROSECONDS
    if jump_s > CLOCK_SLACK_S:
        words = f"the clock jumped by {duration.words(jump_s)} while I looked"
        return [Finding("clock", Verdict.FAIL, words, "let it be kept by NTP, which slews instead of jumping")]
    if ahead_s > CLOCK_SLACK_S:
        words = f"the database holds times {duration.words(ahead_s)} in the future"
        return [Finding("clock", Verdict.WARN, words, "the clock went back, or another machine's is ahead: use NTP")]
    if apart_s > CLOCK_SLACK_S:
        words = f"{duration.words(apart_s)} between the database's clock and this machine's"
        return [Finding("clock", Verdict.WARN, words, "synchronise both with NTP")]
    return [Finding("clock", Verdict.OK, "steady, and the database agrees")]


def workers(database: Database) -> list[Finding]:
    from rota.store import reader

    now = database.clock.now()
    rows = database.read(reader.workers, database.namespace, STOPPED_SINCE_NEVER)
    live = [row for row in rows if row.lease_until > now]
    return [_alive(live), *_leases([row for row in rows if row.lease_until <= now]), *_versions(live)]


def queues(database: Database) -> list[Finding]:
    from rota.store import reader

    found = [
        Finding(
            "queues",
            Verdict.WARN,
            f"{text.count(row.queued, 'execution')} of app {row.app} wait in queue {row.queue}, which no worker serves",
            f"start `rota worker` for app {row.app}",
        )
        for row in database.read(reader.stranded, database.namespace)
    ]
    paused = [row.name for row in database.read(reader.queues, database.namespace) if row.paused_at is not None]
    found += [
        Finding("queues", Verdict.WARN, f"queue {name} is paused", f"`rota queues resume {name}`") for name in paused
    ]
    return found or [Finding("queues", Verdict.OK, "all waiting work has a worker")]


def dead_letters(database: Database) -> list[Finding]:
    from rota.store import reader

    count = database.read(reader.dead_count, database.namespace)
    if count:
        advice = "`rota dead list`, then replay or discard them"
        return [Finding("dead letters", Verdict.WARN, text.count(count, "dead letter"), advice)]
    return [Finding("dead letters", Verdict.OK, "none")]


GROUPS: tuple[Callable[[Database], list[Finding]], ...] = (
    settings,
    database,
    schema,
    clock,
    workers,
    queues,
    dead_letters,
)


def _write(found: Health) -> Finding:
    if found.write_s is None:
        return Finding("write", Verdict.FAIL, found.write_error, "make the file and its folder writable")
    took = f"a durable write to {found.path} took {duration.words(found.write_s)}"
    if found.write_s > SLOW_WRITE_S:
        return Finding("write", Verdict.WARN, took, "use a faster disk, or see who else is writing")
    return Finding("write", Verdict.OK, took)


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


def _alive(live: list[WorkerRow]) -> Finding:
    if not live:
        return Finding("workers", Verdict.WARN, "no worker is at work", "start `rota worker MODULE:APP`")
    return Finding("workers", Verdict.OK, f"{text.count(len(live), 'worker')} at work")


def _leases(gone: list[WorkerRow]) -> list[Finding]:
    if not gone:
        return [Finding("leases", Verdict.OK, "none has run out")]
    held = sum(row.running for row in gone)
    words = f"{text.count(len(gone), 'worker')} with a lease that ran out, holding {text.count(held, 'execution')}"
    return [Finding("leases", Verdict.WARN, words, "any live worker gives them to others within seconds: start one")]


def _versions(live: list[WorkerRow]) -> list[Finding]:
    versions = sorted({row.version for row in live} | {__version__})
    if len(versions) > 1:
        words = f"workers and this command run different versions: {', '.join(versions)}"
        return [Finding("versions", Verdict.WARN, words, "finish the deploy, so that all are the same")]
    return [Finding("versions", Verdict.OK, f"rota {__version__} everywhere")]
