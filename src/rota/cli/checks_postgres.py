"""What `rota doctor` looks at on PostgreSQL. Whoever is to blame is named: by process number and application."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from rota.cli import text
from rota.cli.checks import Finding, Verdict
from rota.cli.database import Database
from rota.domain import duration, retention

if TYPE_CHECKING:
    from rota.store.postgres.health import PostgresHealth, Session, Table

OLDEST_VERSION = 140_000
SLOW_WRITE_S = 0.1
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
"""A statement that looks for an execution locks two tables of every day, with two indexes each."""
NOT_DURABLE = "accepted would not mean durable: a crash of the server could lose what was accepted"
ENCODING = "UTF8"
MOST_SHOWN = 5


@lru_cache(maxsize=1)
def _health(database: Database) -> PostgresHealth:
    """One look for all groups."""
    from rota.store.postgres import health as postgres_health

    return postgres_health.examine(database.settings.url, database.clock)


def server(database: Database) -> list[Finding]:
    found = _health(database)
    words = f"PostgreSQL {found.version}, database of {text.size(found.bytes)}"
    if found.version_number < OLDEST_VERSION:
        return [Finding("server", Verdict.WARN, words, "upgrade to PostgreSQL 14 or newer"), *_write(found)]
    return [Finding("server", Verdict.OK, words), *_write(found)]


def server_settings(database: Database) -> list[Finding]:
    found = _health(database)
    known = found.settings
    findings = [
        Finding("server settings", Verdict.FAIL, f"{name} is off: {NOT_DURABLE}", f"set {name} = on")
        for name in ("fsync", "full_page_writes", "synchronous_commit")
        if known.get(name) == "off"
    ]
    if known.get("autovacuum") == "off":
        words = "autovacuum is off: dead rows pile up, and every claim becomes slower"
        findings.append(Finding("server settings", Verdict.FAIL, words, "set autovacuum = on"))
    findings += _encoding(known) + _defaults(found)
    for name in ("statement_timeout", "transaction_timeout"):
        if 0 < int(known.get(name, "0")) < SHORT_MS:
            words = (
                f"{name} is {known[name]} ms for this role: migrations and the pruning of history may not get through"
            )
            advice = f"alter role {found.role} set {name} = 0 (Rota bounds its own calls)"
            findings.append(Finding("server settings", Verdict.WARN, words, advice))
    if 0 < int(known.get("idle_session_timeout", "0")) < SHORT_MS:
        words = f"idle_session_timeout is {known['idle_session_timeout']} ms: connections that wait for work are cut"
        findings.append(Finding("server settings", Verdict.WARN, words, f"alter role {found.role} set it to 0"))
    if int(known.get("shared_buffers", "0")) < TINY_BUFFERS:
        words = f"shared_buffers is only {text.size(int(known.get('shared_buffers', '0')))}"
        findings.append(Finding("server settings", Verdict.WARN, words, "give it a quarter of the machine's memory"))
    findings += _connections(found) + _locks_in_all(found)
    return findings or [Finding("server settings", Verdict.OK, "durable, with autovacuum, and with room")]


def pooler(database: Database) -> list[Finding]:
    from rota.store.postgres import health as postgres_health

    found, listen_url = _health(database), database.settings.listen_url
    if listen_url and (why := postgres_health.unheard(listen_url)):
        words = f"no wake-ups come by listen_url ({why}): work is found by polling only"
        return [Finding("connection", Verdict.WARN, words, "correct ROTA_LISTEN_URL, or leave it out")]
    if not found.is_pooled:
        return [Finding("connection", Verdict.OK, "direct")]
    if listen_url:
        return [Finding("connection", Verdict.OK, "through a pooler; wake-ups come directly (listen_url)")]
    words = "through a pooler, which swallows wake-ups: work is found by polling only"
    return [Finding("connection", Verdict.WARN, words, "set ROTA_LISTEN_URL to a direct URL of the same database")]


def rights(database: Database) -> list[Finding]:
    found = _health(database)
    if found.lacking:
        words = f"role {found.role} lacks rights: {', '.join(found.lacking[:MOST_SHOWN])}"
        return [Finding("rights", Verdict.FAIL, words, f"grant them to {found.role}, or use the owner of the tables")]
    findings = []
    if not found.owns:
        words = f"role {found.role} does not own the tables: it can make and drop no days, and apply no migrations"
        advice = "let at least the workers use the owner's role"
        findings.append(Finding("rights", Verdict.WARN, words, advice))
    if not found.sees_all:
        words = f"role {found.role} sees only its own sessions in full; other roles' long transactions stay hidden"
        findings.append(Finding("rights", Verdict.OK, words, f"grant pg_read_all_stats to {found.role}"))
    return findings or [Finding("rights", Verdict.OK, f"role {found.role} has all it needs")]


def transactions(database: Database) -> list[Finding]:
    found = _health(database)
    findings = []
    for one in found.sessions:
        is_idle = one.state.startswith("idle in transaction")
        if one.transaction_s >= (IDLE_S if is_idle else LONG_S):
            findings.append(_long(one))
    for holder in found.holders:
        if holder.kind == "prepared transaction" or holder.age > OLD_TRANSACTIONS:
            words = (
                f"the {holder.kind} {holder.name} keeps the rows of {holder.age:,} transactions from being cleaned up"
            )
            findings.append(Finding("transactions", Verdict.WARN, words, holder.remedy))
    return findings[: 2 * MOST_SHOWN] or [Finding("transactions", Verdict.OK, "none is long")]


def locks(database: Database) -> list[Finding]:
    findings = [
        Finding(
            "locks",
            Verdict.WARN,
            f"pid {one.pid} ({one.application or 'no application name'}) has waited {duration.words(one.waited_s)} for "
            f"a lock of {one.by.who}, {one.by.state}: {one.by.query}",
            f"`select pg_terminate_backend({one.by.pid})` ends the one that blocks",
        )
        for one in _health(database).blocked
        if one.waited_s >= BLOCKED_S
    ]
    return findings[:MOST_SHOWN] or [Finding("locks", Verdict.OK, "nobody waits for one")]


def bloat(database: Database) -> list[Finding]:
    found = _health(database)
    findings = [
        Finding("bloat", Verdict.WARN, f"autovacuum is switched off for {one.name}", f"alter table {one.name} reset it")
        for one in found.tables
        if not one.is_vacuumed
    ]
    oldest = max(found.sessions, key=lambda one: one.holds_back, default=None)
    for one in found.tables:
        if one.dead > MANY_DEAD and one.dead > 2 * one.live:
            cause = (
                f"{oldest.who} holds them back: `select pg_terminate_backend({oldest.pid})`"
                if oldest is not None and oldest.transaction_s > IDLE_S
                else "see that autovacuum keeps up: more autovacuum_max_workers, a higher autovacuum_vacuum_cost_limit"
            )
            findings.append(Finding("bloat", Verdict.WARN, _dead_rows(one), cause))
    return findings or [Finding("bloat", Verdict.OK, _largest(found.tables))]


def partitions(database: Database) -> list[Finding]:
    found = _health(database).partitions
    if found is None:
        return []
    now = database.clock.now()
    missing = [day for day in retention.days_wanted(now) if day not in found.days]
    within = [day for day in missing if day <= retention.day_of(now) + FEW_DAYS * retention.DAY]
    findings = []
    if within:
        names = ", ".join(map(retention.day_name, within[:MOST_SHOWN]))
        words = f"days without a partition: {names}; their executions go to the default partition"
        advice = "start a worker, whose janitor makes them; if one runs, see its log, and `transactions` above"
        findings.append(Finding("partitions", Verdict.WARN, words, advice))
    findings += _strays(found.strays, found.stray_days)
    ahead = sum(day > now for day in found.days)
    strays = text.count(found.strays, "execution")
    words = f"{text.count(len(found.days), 'day')}, {ahead} of them ahead; {strays} in the default partition"
    return findings or [Finding("partitions", Verdict.OK, words)]


GROUPS: tuple[Callable[[Database], list[Finding]], ...] = (
    server,
    server_settings,
    pooler,
    rights,
    transactions,
    locks,
    bloat,
    partitions,
)


def _write(found: PostgresHealth) -> list[Finding]:
    if found.write_s is None:
        return [Finding("write", Verdict.FAIL, found.write_error, "let the role write, on a primary server")]
    took = f"a durable write to {found.shown} took {duration.words(found.write_s)}"
    if found.write_s > SLOW_WRITE_S:
        return [Finding("write", Verdict.WARN, took, "use a faster disk or network, or see who else is writing")]
    return [Finding("write", Verdict.OK, took)]


def _encoding(known: dict[str, str]) -> list[Finding]:
    encoding = known.get("server_encoding", ENCODING)
    if encoding == ENCODING:
        return []
    words = f"the database has the encoding {encoding}: text that it cannot hold is refused, or read as other text"
    advice = f"make a database with ENCODING '{ENCODING}' TEMPLATE template0, and use that one"
    return [Finding("server settings", Verdict.FAIL, words, advice)]


def _defaults(found: PostgresHealth) -> list[Finding]:
    """How transactions begin for this role, where nobody says how."""
    wanted = {
        "default_transaction_isolation": ("read committed", "transactions of jobs and programs that meet fail"),
        "default_transaction_read_only": ("off", "nothing can be accepted, claimed or ended"),
    }
    return [
        Finding(
            "server settings",
            Verdict.WARN,
            f"{name} is {found.settings[name]} for this role: {then}",
            f"alter role {found.role} set {name} = '{value}', and see `alter database` as well",
        )
        for name, (value, then) in wanted.items()
        if found.settings.get(name, value) != value
    ]


def _connections(found: PostgresHealth) -> list[Finding]:
    most = int(found.settings.get("max_connections", "0"))
    if not most or found.connections < FULL * most:
        return []
    words = f"{found.connections} of {most} connections are used"
    return [Finding("server settings", Verdict.WARN, words, "raise max_connections, or put a pooler in between")]


def _locks_in_all(found: PostgresHealth) -> list[Finding]:
    """Every session that looks for an execution holds locks on all days: the server has room for so many."""
    days = len(found.partitions.days) if found.partitions is not None else 0
    each = int(found.settings.get("max_locks_per_transaction", "0"))
    room = each * int(found.settings.get("max_connections", "0"))
    if not room or days * LOCKS_PER_DAY * found.connections < FULL * room:
        return []
    words = f"{text.count(days, 'day')} and {found.connections} connections could need more locks than the server has"
    advice = f"set max_locks_per_transaction = {max(256, 2 * each)}"
    return [Finding("server settings", Verdict.WARN, words, advice)]


def _long(one: Session) -> Finding:
    doing = "has done nothing in a transaction" if one.state.startswith("idle") else "has been in a transaction"
    held = f", and keeps the rows of {one.holds_back:,} transactions from being cleaned up" if one.holds_back else ""
    words = f"{one.who} {doing} for {duration.words(one.transaction_s)}{held}: {one.query}"
    return Finding("transactions", Verdict.WARN, words, f"`select pg_terminate_backend({one.pid})` ends it")


def _dead_rows(one: Table) -> str:
    when = "never" if one.vacuumed_s is None else f"{duration.words(one.vacuumed_s)} ago"
    size = text.size(one.bytes)
    dead = text.count(one.dead, "dead row")
    live = text.count(one.live, "live one")
    return f"{one.name} has {dead} for {live} ({size}, last vacuumed {when})"


def _largest(tables: list[Table]) -> str:
    largest = max(tables, key=lambda one: one.bytes, default=None)
    return "no tables yet" if largest is None else f"of the small tables, {_dead_rows(largest)}"


def _strays(count: int, days: list[int]) -> list[Finding]:
    """Some are as they should be: dead letters and what waits for long outlive their days."""
    if count < MANY_STRAYS:
        return []
    names = ", ".join(map(retention.day_name, days[-MOST_SHOWN:]))
    words = f"{count:,} or more executions are in the default partition, of days such as {names}: new days take long"
    return [
        Finding("partitions", Verdict.WARN, words, "replay or discard dead letters; the rest goes with its retention")
    ]
