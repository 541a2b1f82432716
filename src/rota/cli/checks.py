"""What `rota doctor` looks at on every database. A group raises if the groups after it could not work either."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rota import __version__
from rota.cli import text
from rota.cli.database import Database
from rota.domain import duration, requirement
from rota.domain.deploy import GRACE_LEASES
from rota.domain.instant import MICROSECONDS

if TYPE_CHECKING:
    from rota.store.deploys import DeployRow
    from rota.store.history import History
    from rota.store.reader import JobRow, Stranded
    from rota.views.worker import Worker

MOST_BEHIND_S = 60.0
CLOCK_SLACK_S = 0.5


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
    from rota.config import FILE, strange
    from rota.domain.url import masked

    known = database.settings
    source = f", {FILE} and the environment" if Path(FILE).is_file() else " and the environment"
    found = [
        Finding("settings", Verdict.OK, f"{masked(known.url)}, namespace {known.namespace} (from defaults{source})")
    ]
    for name, near in strange(os.environ).items():
        advice = f"did you mean {near}?" if near else "check its spelling, or unset it"
        found.append(Finding("settings", Verdict.WARN, f"{name} is no setting", advice))
    return found


def schema(database: Database) -> list[Finding]:
    from rota.store import migrate, opening
    from rota.store.postgres import url as postgres_url

    behind = opening.pending(database.settings.url)
    if behind:
        return [Finding("schema", Verdict.FAIL, f"lacks the migration {behind[0].name}", "run `rota migrate`")]
    dialect = "postgres" if postgres_url.is_postgres(database.settings.url) else "sqlite"
    return [Finding("schema", Verdict.OK, f"up to date ({migrate.known(dialect)[-1].name})")]


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
    return _enqueuers(database) or [Finding("clock", Verdict.OK, "steady, and the database agrees")]


def _enqueuers(database: Database) -> list[Finding]:
    """An id says when it was made, by the clock of whoever enqueued: some of the newest show whose is off."""
    from rota.store import history

    found = []
    for actor, ahead in database.read(history.enqueuers, database.namespace).items():
        if ahead > CLOCK_SLACK_S * MICROSECONDS or ahead < -MOST_BEHIND_S * MICROSECONDS:
            apart = f"{duration.words(abs(ahead) / MICROSECONDS)} {'ahead of' if ahead > 0 else 'behind'}"
            words = f"what {actor or 'somebody'} enqueued lately was made by a clock {apart} the database's"
            found.append(Finding("clock", Verdict.WARN, words, "synchronise that machine with NTP"))
    return found


def workers(database: Database) -> list[Finding]:
    from rota.views import worker as views

    found = database.read(views.workers, database.namespace)
    live = [one for one in found if not one.is_lost]
    return [_alive(live), *_troubles(live), *_leases([one for one in found if one.is_lost]), *_versions(live)]


def deploys(database: Database) -> list[Finding]:
    """Live workers of several deploys are a roll-out in progress: not an error, but worth showing."""
    from rota.store.deploys import all_deploys

    live: dict[str, list[DeployRow]] = {}
    rows = database.read(all_deploys, database.namespace)
    for row in rows:
        if row.workers:
            live.setdefault(row.app, []).append(row)
    now = database.clock.now()
    found = [_rollout(app, several, now) for app, several in live.items() if len(several) > 1]
    found += [_left(row, live[row.app]) for row in rows if row.is_in_force and not row.workers and row.app in live]
    return found or [Finding("deploys", Verdict.OK, "all live workers of each app have the same deploy")]


def queues(database: Database) -> list[Finding]:
    from rota.store import reader

    found = [
        Finding(
            "queues",
            Verdict.WARN,
            f"{_waiting(row)} in queue {row.queue}, {_lacking(row)}",
            f"start `rota worker` for app {row.app}{_flags(row)}",
        )
        for row in database.read(reader.stranded, database.namespace)
    ]
    paused = [row.name for row in database.read(reader.queues, database.namespace) if row.paused_at is not None]
    found += [
        Finding("queues", Verdict.WARN, f"queue {name} is paused", f"`rota queues resume {name}`") for name in paused
    ]
    found += [_paused(row) for row in database.read(reader.jobs, database.namespace) if row.paused_at is not None]
    return found or [Finding("queues", Verdict.OK, "all waiting work has a worker")]


def _left(row: DeployRow, live: list[DeployRow]) -> Finding:
    """The workers of the deploy in force are restarting, or a roll-back to the live deploy is about to happen."""
    other = live[0].number
    words = f"app {row.app}: deploy {row.number} is in force without a live worker; deploy {other} has one"
    advice = (
        f"deploy {other} takes over after {GRACE_LEASES} leases, or at once with `rota deploys use {row.app} {other}`"
    )
    return Finding("deploys", Verdict.OK, words, advice)


def _rollout(app: str, rows: list[DeployRow], now: int) -> Finding:
    names = ", ".join(f"{row.number}{' (in force)' if row.is_in_force else ''}" for row in rows)
    since = sorted(row.live_since or now for row in rows)[1]
    began = duration.words((now - since) / MICROSECONDS)
    words = f"app {app} has live workers of the deploys {names}; the second began {began} ago"
    return Finding("deploys", Verdict.OK, words, "finish the roll-out, or `rota deploys use` another one")


def _paused(row: JobRow) -> Finding:
    """Its executions wait aside, in no queue."""
    why = f" by {row.paused_by}" + (f": {row.paused_note}" if row.paused_note else "")
    return Finding("queues", Verdict.WARN, f"job {row.app}.{row.name} is paused{why}", f"`rota jobs resume {row.name}`")


def _waiting(row: Stranded) -> str:
    return f"{text.count(row.queued, 'execution')} of app {row.app} {'waits' if row.queued == 1 else 'wait'}"


def _lacking(row: Stranded) -> str:
    if row.job:
        return f"and no worker of it has the job {row.job}"
    wanted = requirement.words(row.requirements)
    return f"and no worker of it has {wanted}" if wanted else "which no worker serves"


def _flags(row: Stranded) -> str:
    if row.job:
        return f" with code that has {row.job}, and with all that it needs; or cancel what waits"
    return " with --pool, --tag or --resource" if requirement.words(row.requirements) else ""


def dead_letters(database: Database) -> list[Finding]:
    from rota.store import reader

    count = database.read(reader.dead_count, database.namespace)
    if count:
        advice = "`rota dead list`, then replay or discard them"
        return [Finding("dead letters", Verdict.WARN, text.count(count, "dead letter"), advice)]
    return [Finding("dead letters", Verdict.OK, "none")]


def retention(database: Database) -> list[Finding]:
    from rota.domain.retention import DAY, DAY_S, GRACE
    from rota.ops.retention import CHORE
    from rota.store import history

    days = database.settings.retention_days
    found = database.read(history.history, days * DAY_S, CHORE, GRACE + DAY)
    kept = "for ever" if days == 0 else text.count(days, "day")
    oldest = "there is no history yet" if found.oldest_at is None else f"the oldest is {_age(found)} old"
    words = f"history is kept {kept}; {oldest}"
    if found.overdue:
        many = "1,000 or more" if found.overdue >= history.MOST_OVERDUE else f"{found.overdue:,}"
        late = f"{words}; {many} executions should have gone long ago"
        return [Finding("retention", Verdict.WARN, late, _advice(found))]
    return [Finding("retention", Verdict.OK, words)]


def _age(found: History) -> str:
    return duration.words(max(0, found.now - (found.oldest_at or 0)) / MICROSECONDS)


def _advice(found: History) -> str:
    if found.last.done_at == 0:
        return "no worker has ever pruned: start one, and look into its log"
    ended = duration.words((found.now - found.last.done_at) / MICROSECONDS)
    return f"the last pass ended {ended} ago: look for a worker and into its log"


def _alive(live: list[Worker]) -> Finding:
    if not live:
        return Finding("workers", Verdict.WARN, "no worker is at work", "start `rota worker MODULE:APP`")
    return Finding("workers", Verdict.OK, f"{text.count(len(live), 'worker')} at work")


def _troubles(live: list[Worker]) -> list[Finding]:
    """Workers that stand still or cannot start processes. If a deploy is broken, that is all of them."""
    return [
        _trouble(row, what, why) for row in live if isinstance(row.trouble, dict) for what, why in row.trouble.items()
    ]


def _trouble(row: Worker, what: str, why: str) -> Finding:
    if what == requirement.STANDS_STILL:
        words = f"{row.name}: process {row.pid} on {row.host} stands still: {why}"
        advice = f"`kill -CONT {row.pid}`, or detach the debugger: after a lease it is killed, which counts as a crash"
        return Finding("workers", Verdict.WARN, words, advice)
    advice = "see its log; look at its app in a deploy, else at ulimit -n, ulimit -u and memory"
    return Finding("workers", Verdict.WARN, f"{row.name} can start no process for {what}: {why}", advice)


def _leases(gone: list[Worker]) -> list[Finding]:
    if not gone:
        return [Finding("leases", Verdict.OK, "none has run out")]
    held = sum(row.busy for row in gone)
    words = f"{text.count(len(gone), 'worker')} with a lease that ran out, holding {text.count(held, 'execution')}"
    return [Finding("leases", Verdict.WARN, words, "any live worker gives them to others within seconds: start one")]


def _versions(live: list[Worker]) -> list[Finding]:
    versions = sorted({row.version for row in live} | {__version__})
    if len(versions) > 1:
        words = f"workers and this command run different versions: {', '.join(versions)}"
        return [Finding("versions", Verdict.WARN, words, "finish the deploy, so that all are the same")]
    return [Finding("versions", Verdict.OK, f"rota {__version__} everywhere")]
