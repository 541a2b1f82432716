"""The checks of `rota doctor` for PostgreSQL. A session that causes a problem is named by its pid and application."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from rota.cli import text
from rota.cli.database import Database
from rota.cli.doctor_checks import Check, Finding, check, durable_write, fail, ok, warn
from rota.domain import duration, retention
from rota.domain.size import words as size
from rota.store.postgres import health
from rota.store.postgres.health import PostgresHealth, Session, Table

OLDEST_VERSION = 150_000
LONG_S = 60.0
IDLE_S = 10.0
BLOCKED_S = 1.0
MANY_DEAD = 200_000
OLD_TRANSACTIONS = 1_000_000
SHORT_MS = 60_000
TINY_BUFFERS = 128 * 1024 * 1024
FULL = 0.8
FEW_DAYS = 3
MANY_STRAYS = 100_000
LOCKS_PER_DAY = 6
"""A statement that searches for an execution locks two tables of every day, with two indexes each."""
NOT_DURABLE = "accepted would not mean durable: a crash of the server could lose accepted executions"
MOST_SHOWN = 5
WANTED = {
    "default_transaction_isolation": ("read committed", "concurrent transactions of jobs and programs fail"),
    "default_transaction_read_only": ("off", "nothing can be accepted, claimed or ended"),
}
SHORT_TIMEOUTS = {
    "statement_timeout": "migrations and the pruning of history may be cancelled",
    "transaction_timeout": "migrations and the pruning of history may be cancelled",
    "idle_session_timeout": "connections that wait for work are closed",
}


@lru_cache(maxsize=1)
def _health(database: Database) -> PostgresHealth:
    """Examined once for all checks."""
    return health.examine(database.settings.url, database.clock)


@check("server")
def server(database: Database) -> Iterator[Finding]:
    found = _health(database)
    words = f"PostgreSQL {found.version}, database of {size(found.bytes)}"
    yield warn(words, "upgrade to PostgreSQL 15 or newer") if found.version_number < OLDEST_VERSION else ok(words)


@check("write")
def write(database: Database) -> Iterator[Finding]:
    found = _health(database)
    if found.write_s is None:
        yield fail(found.write_error, "let the role write, on a primary server")
    else:
        yield durable_write(found.shown, found.write_s)


@check("server settings", "durable, with autovacuum, and with spare capacity")
def server_settings(database: Database) -> Iterator[Finding]:
    found = _health(database)
    known = found.settings
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        if known.get(name) == "off":
            yield fail(f"{name} is off: {NOT_DURABLE}", f"set {name} = on")
    if known.get("autovacuum") == "off":
        yield fail("autovacuum is off: dead rows pile up, and every claim becomes slower", "set autovacuum = on")
    yield from _role_settings(found)
    buffers = int(known.get("shared_buffers", "0"))
    if buffers < TINY_BUFFERS:
        yield warn(f"shared_buffers is only {size(buffers)}", "give it a quarter of the machine's memory")
    yield from _capacity(found)


def _role_settings(found: PostgresHealth) -> Iterator[Finding]:
    """Settings that may be set for a role or a database."""
    for name, (value, effect) in WANTED.items():
        if (set_to := found.settings.get(name, value)) != value:
            advice = f"alter role {found.role} set {name} = '{value}', and see `alter database` as well"
            yield warn(f"{name} is {set_to} for this role: {effect}", advice)
    for name, effect in SHORT_TIMEOUTS.items():
        if 0 < int(found.settings.get(name, "0")) < SHORT_MS:
            words = f"{name} is {found.settings[name]} ms for this role: {effect}"
            yield warn(words, f"alter role {found.role} set {name} = 0 (Rota bounds its own calls)")


def _capacity(found: PostgresHealth) -> Iterator[Finding]:
    most = int(found.settings.get("max_connections", "0"))
    if most and found.connections >= FULL * most:
        words = f"{found.connections} of {most} connections are used"
        yield warn(words, "raise max_connections, or put a pooler in between")
    # Every session that searches for an execution locks the tables of all days, and the server's lock table is bounded.
    days = len(found.partitions.days) if found.partitions is not None else 0
    each = int(found.settings.get("max_locks_per_transaction", "0"))
    if each * most and days * LOCKS_PER_DAY * found.connections >= FULL * each * most:
        many = f"{text.count(days, 'day')} and {found.connections} connections"
        advice = f"set max_locks_per_transaction = {max(256, 2 * each)}"
        yield warn(f"{many} could need more locks than the server has", advice)


@check("connection")
def pooler(database: Database) -> Iterator[Finding]:
    found, listen_url = _health(database), database.settings.listen_url
    if listen_url and (why := health.unheard(listen_url)):
        words = f"no wake-ups come by listen_url ({why}): work is found by polling only"
        yield warn(words, "correct ROTA_LISTEN_URL, or leave it out")
    elif not found.is_pooled:
        yield ok("direct")
    elif listen_url:
        yield ok("through a pooler; wake-ups come directly (listen_url)")
    else:
        words = "through a pooler, which swallows wake-ups: work is found by polling only"
        yield warn(words, "set ROTA_LISTEN_URL to a direct URL of the same database")


@check("rights")
def rights(database: Database) -> Iterator[Finding]:
    found = _health(database)
    role = f"role {found.role}"
    if found.lacking:
        words = f"{role} lacks rights: {', '.join(found.lacking[:MOST_SHOWN])}"
        yield fail(words, f"grant them to {found.role}, or use the owner of the tables")
        return
    if not found.owns:
        words = f"{role} does not own the tables: it can neither create and drop partitions nor apply migrations"
        yield warn(words, "let at least the workers use the owner's role")
    if not found.sees_all:
        words = f"{role} sees only its own sessions in full; other roles' long transactions stay hidden"
        yield ok(words, f"grant pg_read_all_stats to {found.role}")
    if found.owns and found.sees_all:
        yield ok(f"{role} has all it needs")


@check("transactions", "none is long")
def transactions(database: Database) -> Iterator[Finding]:
    found = _health(database)
    long = [one for one in found.sessions if one.transaction_s >= (IDLE_S if _is_idle(one) else LONG_S)]
    holders = [one for one in found.holders if one.kind == "prepared transaction" or one.age > OLD_TRANSACTIONS]
    for one in long[: 2 * MOST_SHOWN]:
        yield _long(one)
    for holder in holders[:MOST_SHOWN]:
        words = f"the {holder.kind} {holder.name} keeps the rows of {holder.age:,} transactions from being cleaned up"
        yield warn(words, holder.remedy)


def _is_idle(one: Session) -> bool:
    return one.state.startswith("idle in transaction")


def _long(one: Session) -> Finding:
    doing = "has done nothing in a transaction" if one.state.startswith("idle") else "has been in a transaction"
    held = f", and keeps the rows of {one.holds_back:,} transactions from being cleaned up" if one.holds_back else ""
    words = f"{one.who} {doing} for {duration.words(one.transaction_s)}{held}: {one.query}"
    return warn(words, f"`select pg_terminate_backend({one.pid})` ends it")


@check("locks", "no session waits for one")
def locks(database: Database) -> Iterator[Finding]:
    blocked = (one for one in _health(database).blocked if one.waited_s >= BLOCKED_S)
    for one in islice(blocked, MOST_SHOWN):
        session = f"pid {one.pid} ({one.application or 'no application name'})"
        blocker = f"{one.by.who}, {one.by.state}: {one.by.query}"
        words = f"{session} has waited {duration.words(one.waited_s)} for a lock of {blocker}"
        yield warn(words, f"`select pg_terminate_backend({one.by.pid})` ends the session that blocks")


@check("bloat")
def bloat(database: Database) -> Iterator[Finding]:
    found = _health(database)
    off = [one.name for one in found.tables if not one.is_vacuumed]
    bloated = [one for one in found.tables if one.dead > MANY_DEAD and one.dead > 2 * one.live]
    for name in off:
        yield warn(f"autovacuum is switched off for {name}", f"alter table {name} reset (autovacuum_enabled)")
    oldest = max(found.sessions, key=lambda one: one.holds_back, default=None)
    cause = "let autovacuum keep up: more autovacuum_max_workers, a higher autovacuum_vacuum_cost_limit"
    if oldest is not None and oldest.transaction_s > IDLE_S:
        cause = f"{oldest.who} holds them back: `select pg_terminate_backend({oldest.pid})`"
    for one in bloated:
        yield warn(_dead_rows(one), cause)
    if not off and not bloated:
        largest = max(found.tables, key=lambda one: one.bytes, default=None)
        yield ok(f"of the small tables, {_dead_rows(largest)}" if largest else "no tables yet")


def _dead_rows(one: Table) -> str:
    vacuumed = "never" if one.vacuumed_s is None else f"{duration.words(one.vacuumed_s)} ago"
    rows = f"{text.count(one.dead, 'dead row')} for {text.count(one.live, 'live one')}"
    return f"{one.name} has {rows} ({size(one.bytes)}, last vacuumed {vacuumed})"


@check("partitions")
def partitions(database: Database) -> Iterator[Finding]:
    found = _health(database).partitions
    if found is None:
        return
    now = database.clock.now()
    last = retention.day_of(now) + FEW_DAYS * retention.DAY
    missing = [day for day in retention.days_wanted(now) if day not in found.days and day <= last]
    if missing:
        names = ", ".join(map(retention.day_name, missing[:MOST_SHOWN]))
        words = f"days without a partition: {names}; their executions go to the default partition"
        yield warn(words, "start a worker, which makes them; if one runs, see its log, and `transactions` above")
    if found.strays >= MANY_STRAYS:
        # A few are normal: dead letters and executions with a long delay outlive their days.
        names = ", ".join(map(retention.day_name, found.stray_days[-MOST_SHOWN:]))
        words = f"the default partition has {found.strays:,} or more executions, of days such as {names}"
        advice = "replay or discard dead letters; retention deletes the rest"
        yield warn(f"{words}: creating a partition takes long", advice)
    if not missing and found.strays < MANY_STRAYS:
        days = f"{text.count(len(found.days), 'day')}, {sum(day > now for day in found.days)} of them ahead"
        yield ok(f"{days}; {text.count(found.strays, 'execution')} in the default partition")


CHECKS: tuple[Check, ...] = (server, write, server_settings, pooler, rights, transactions, locks, bloat, partitions)
