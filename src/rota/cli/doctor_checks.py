"""The checks of `rota doctor` that every database has. A check raises if the checks after it could not work either."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import msgspec

from rota import __version__
from rota.cli import text
from rota.cli.database import Database
from rota.config import FILE, unknown_variables
from rota.domain import duration, requirement
from rota.domain.dependency import JobRef, cycle
from rota.domain.deploy import GRACE_LEASES
from rota.domain.instant import MICROSECONDS
from rota.domain.retention import DAY, DAY_S, GRACE
from rota.domain.url import masked
from rota.ops.retention import PASS_NAME
from rota.store import definition_reader, migrate, opening, reader, retention_reader
from rota.store.dependencies import edges
from rota.store.deploys import DeployRow, all_deploys
from rota.store.postgres.url import is_postgres
from rota.views import finding as finding_views
from rota.views import worker as worker_views
from rota.views.worker import Worker

MOST_BEHIND_S = 60.0
CLOCK_SLACK_S = 0.5
SLOW_WRITE_S = 0.1


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(msgspec.Struct, frozen=True):
    """One line of the report. The check fills in its own name."""

    verdict: Verdict
    found: str
    advice: str = ""
    check: str = ""


ok = functools.partial(Finding, Verdict.OK)
warn = functools.partial(Finding, Verdict.WARN)
fail = functools.partial(Finding, Verdict.FAIL)


class Check(NamedTuple):
    """A check by its name in the report, and the words for a check that finds nothing."""

    name: str
    find: Callable[[Database], Iterable[Finding]]
    fine: str

    def __call__(self, database: Database) -> list[Finding]:
        found = list(self.find(database)) or ([ok(self.fine)] if self.fine else [])
        return [msgspec.structs.replace(one, check=self.name) for one in found]


def durable_write(place: str, took_s: float) -> Finding:
    words = f"a durable write to {place} took {duration.words(took_s)}"
    if took_s > SLOW_WRITE_S:
        return warn(words, "use a faster disk or network, or find the other programs that write")
    return ok(words)


def check(name: str, fine: str = "") -> Callable[[Callable[[Database], Iterable[Finding]]], Check]:
    return lambda find: Check(name, find, fine)


@check("settings")
def settings(database: Database) -> Iterator[Finding]:
    known = database.settings
    source = f", {FILE} and the environment" if Path(FILE).is_file() else " and the environment"
    yield ok(f"{masked(known.url)}, namespace {known.namespace} (from defaults{source})")
    for name, near in unknown_variables(os.environ).items():
        yield warn(f"{name} is not a setting", f"did you mean {near}?" if near else "check its spelling, or unset it")


@check("schema")
def schema(database: Database) -> Iterator[Finding]:
    dialect = "postgres" if is_postgres(database.settings.url) else "sqlite"
    if behind := opening.pending(database.settings.url):
        yield fail(f"lacks the migration {behind[0].name}", "run `rota migrate`")
    else:
        yield ok(f"up to date ({migrate.known(dialect)[-1].name})")


@check("clock", "steady, and the database agrees")
def clock(database: Database) -> Iterator[Finding]:
    clock = database.clock
    before = clock.now() / MICROSECONDS - clock.monotonic()
    stored, newest = database.read(reader.clock)
    apart_s = abs(clock.now() - stored) / MICROSECONDS
    jump_s = abs(clock.now() / MICROSECONDS - clock.monotonic() - before)
    ahead_s = (newest - stored) / MICROSECONDS
    if jump_s > CLOCK_SLACK_S:
        words = f"the clock jumped by {duration.words(jump_s)} during this check"
        yield fail(words, "let it be kept by NTP, which slews instead of jumping")
    elif ahead_s > CLOCK_SLACK_S:
        words = f"the database holds times {duration.words(ahead_s)} in the future"
        yield warn(words, "the clock went back, or another machine's is ahead: use NTP")
    elif apart_s > CLOCK_SLACK_S:
        words = f"{duration.words(apart_s)} between the database's clock and this machine's"
        yield warn(words, "synchronise both with NTP")
    else:
        yield from _clients(database)


def _clients(database: Database) -> Iterator[Finding]:
    """An id contains the time of the client that enqueued: the newest ids show which client's clock is off."""
    for actor, ahead in database.read(retention_reader.enqueuers, database.namespace).items():
        if ahead > CLOCK_SLACK_S * MICROSECONDS or ahead < -MOST_BEHIND_S * MICROSECONDS:
            apart = f"{duration.words(abs(ahead) / MICROSECONDS)} {'ahead of' if ahead > 0 else 'behind'}"
            words = f"executions that {actor or 'an unknown client'} enqueued lately have ids made by a clock {apart}"
            yield warn(f"{words} the database's", "synchronise that machine with NTP")


def _live_workers(database: Database) -> list[Worker]:
    return [one for one in database.read(worker_views.workers, database.namespace) if not one.is_lost]


@check("workers")
def workers(database: Database) -> Iterator[Finding]:
    live = _live_workers(database)
    if live:
        yield ok(f"{text.count(len(live), 'worker')} at work")
    else:
        yield warn("no worker is at work", "start `rota worker MODULE:APP`")
    for row in live:
        if isinstance(row.trouble, dict):
            yield from (_trouble(row, what, why) for what, why in row.trouble.items())


def _trouble(row: Worker, what: str, why: str) -> Finding:
    if what == requirement.STANDS_STILL:
        words = f"{row.name}: process {row.pid} on {row.host} stands still: {why}"
        advice = f"`kill -CONT {row.pid}`, or detach the debugger: after a lease it is killed, which counts as a crash"
        return warn(words, advice)
    advice = "see its log; after a deploy check the app, otherwise ulimit -n, ulimit -u and memory"
    return warn(f"{row.name} can start no process for {what}: {why}", advice)


@check("leases", "none has run out")
def leases(database: Database) -> Iterator[Finding]:
    lost = [one for one in database.read(worker_views.workers, database.namespace) if one.is_lost]
    if lost:
        held = text.count(sum(one.busy for one in lost), "execution")
        words = f"{text.count(len(lost), 'worker')} with a lease that ran out, holding {held}"
        yield warn(words, "any live worker returns them to their queues within seconds: start one")


@check("versions", f"rota {__version__} everywhere")
def versions(database: Database) -> Iterator[Finding]:
    found = sorted({one.version for one in _live_workers(database)} | {__version__})
    if len(found) > 1:
        words = f"workers and this command run different versions: {', '.join(found)}"
        yield warn(words, "finish the deploy, so that all are the same")


@check("deploys", "all live workers of each app have the same deploy")
def deploys(database: Database) -> Iterator[Finding]:
    """Live workers of several deploys are a roll-out in progress: not an error, but worth showing."""
    live: dict[str, list[DeployRow]] = {}
    rows = database.read(all_deploys, database.namespace)
    for row in rows:
        if row.workers:
            live.setdefault(row.app, []).append(row)
    for app, several in live.items():
        if len(several) > 1:
            yield _rollout(app, several, database.clock.now())
    for row in rows:
        if row.is_in_force and not row.workers and row.app in live:
            yield _without_worker(row, live[row.app][0].number)


def _rollout(app: str, rows: list[DeployRow], now: int) -> Finding:
    names = ", ".join(f"{row.number}{' (in force)' if row.is_in_force else ''}" for row in rows)
    since = sorted(row.live_since or now for row in rows)[1]
    began = duration.words((now - since) / MICROSECONDS)
    words = f"app {app} has live workers of the deploys {names}; the second began {began} ago"
    return ok(words, "finish the roll-out, or `rota deploys use` another one")


def _without_worker(row: DeployRow, other: int) -> Finding:
    """The workers of the deploy in force are restarting, or a roll-back to the live deploy is about to happen."""
    words = f"app {row.app}: deploy {row.number} is in force without a live worker; deploy {other} has one"
    use = f"`rota deploys use {row.app} {other}`"
    return ok(words, f"deploy {other} takes over after {GRACE_LEASES} leases, or at once with {use}")


@check("attention", "nothing needs attention")
def attention(database: Database) -> Iterator[Finding]:
    """The same findings as the overview of the dashboard has, worst first."""
    for one in database.read(finding_views.findings, database.namespace):
        commands = [action.command for action in one.actions if action.command is not None]
        advice = one.advice or (f"`{commands[-1]}`" if commands else "")
        yield warn(f"{one.text}. {one.evidence[:1].upper()}{one.evidence[1:]}", advice)


@check("queues", "none is paused")
def queues(database: Database) -> Iterator[Finding]:
    """Also those without work waiting, which are no finding."""
    for queue in database.read(reader.queues, database.namespace):
        if queue.paused_at is not None:
            yield warn(f"queue {queue.name} is paused", f"`rota queues resume {queue.name}`")
    paused = [job for job in database.read(definition_reader.all_jobs, database.namespace) if job.paused_at is not None]
    found = database.read(finding_views.findings, database.namespace) if paused else []
    advice = {(one.subject.app, one.subject.id): one.advice for one in found if one.advice}
    for job in paused:
        why = f" by {job.paused_by}" + (f": {job.paused_note}" if job.paused_note else "")
        resume = f"`rota jobs resume {job.name}`"
        yield warn(f"job {job.app}.{job.name} is paused{why}", advice.get((job.app, job.name), resume))


@check("dependencies", "every job that others depend on is declared")
def dependencies(database: Database) -> Iterator[Finding]:
    """A deploy or a roll-back may remove a job that others depend on, or bring back a cycle."""
    known = database.read(edges, database.namespace)
    rows = database.read(all_deploys, database.namespace) if known else []
    declared = {row.app: row.declared.jobs for row in rows if row.is_in_force}
    for edge in known:
        if edge.upstream not in declared.get(edge.upstream_app, {edge.upstream: ""}):
            words = f"job {edge.dependent} depends on {edge.ref}, which the deploy in force does not have"
            yield warn(words, f"it never starts by itself: change its depends_on, or deploy {edge.ref} again")
    by_job: dict[JobRef, list[JobRef]] = {}
    for edge in known:
        by_job.setdefault(edge.dependent, []).append(edge.ref)
    if found := cycle(by_job, by_job):
        yield warn(f"jobs depend on each other: {' → '.join(map(str, found))}", "change depends_on of one of them")


@check("dead letters", "none")
def dead_letters(database: Database) -> Iterator[Finding]:
    if count := database.read(reader.dead_count, database.namespace):
        yield warn(text.count(count, "dead letter"), "`rota dead`, then replay or discard them")


@check("retention")
def retention(database: Database) -> Iterator[Finding]:
    days = database.settings.retention_days
    found = database.read(retention_reader.history, days * DAY_S, PASS_NAME, GRACE + DAY)
    kept = "forever" if days == 0 else text.count(days, "day")
    oldest = "there is no history yet"
    if found.oldest_at is not None:
        oldest = f"the oldest is {duration.words(max(0, found.now - found.oldest_at) / MICROSECONDS)} old"
    words = f"history is kept {kept}; {oldest}"
    if not found.overdue:
        yield ok(words)
        return
    advice = "no worker has ever pruned: start one, and look into its log"
    if found.last.done_at:
        ended = duration.words((found.now - found.last.done_at) / MICROSECONDS)
        advice = f"the last pass ended {ended} ago: check that a worker is running, and its log"
    many = "1,000 or more" if found.overdue >= retention_reader.MOST_OVERDUE else f"{found.overdue:,}"
    yield warn(f"{words}; {many} executions should have been deleted long ago", advice)


CHECKS: tuple[Check, ...] = (
    schema,
    clock,
    workers,
    leases,
    versions,
    deploys,
    attention,
    queues,
    dependencies,
    dead_letters,
    retention,
)
"""In order, after `settings` and the checks of the database itself."""
