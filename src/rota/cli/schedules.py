"""`rota schedules`: list schedules, control them, and read their ledgers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from rota.cli import options, output, text
from rota.cli.database import Database, with_database
from rota.cli.failure import UNSUCCESSFUL
from rota.cli.options import app_option, json_option, limit_option, list_group, note_option, owner_option
from rota.domain import duration
from rota.ops import schedule as ops
from rota.store.port import View
from rota.views import lookup
from rota.views import schedule as views
from rota.views import tick as tick_views
from rota.views import worker as workers
from rota.views.schedule import Schedule
from rota.views.shape import rfc3339
from rota.views.tick import Ledger, Tick

STARTED = frozenset({"fired", "caught_up", "backfilled"})


@list_group
@app_option
@limit_option(1000, 1_000_000)
@json_option
@with_database
def schedules(database: Database, app: str | None, limit: int, as_json: bool) -> None:
    """List schedules; pause, resume and remove them; read their ledger.

    \b
    rota schedules
    rota schedules ticks backup --from 90d --missed
    rota schedules pause backup --note "disk is full"
    """
    found = database.read(views.schedules, database.namespace, app, limit)
    empty = text.none_of(app, "schedules", "there are no schedules: give a job cron= or every=, and start a worker")
    more = "--app NAME" if found.has_more else ""
    output.listing(found.items, _columns(found.items), as_json=as_json, empty=empty, more=more, spare=_SPARE)
    if overdue := sum(one.is_overdue for one in found.items):
        output.message(f"{text.count(overdue, 'schedule')} overdue: is a worker running?")
    served = {one.app for one in database.read(workers.workers, database.namespace) if not one.is_lost}
    for name in sorted({one.app for one in found.items if one.paused is None} - served):
        output.message(f"app {name} has no live worker, so its schedules start nothing: `rota worker` starts one")


@schedules.command()
@click.argument("name")
@owner_option
@note_option
@with_database
def pause(database: Database, name: str, app: str | None, note: str) -> None:
    """Stop a schedule until it is resumed; running executions continue."""
    row = database.read(lookup.schedule, database.namespace, name, app)
    changed = database.transact(ops.pause, row.namespace, row.app, row.name, database.actor, note)
    output.message(f"schedule {row.name} {'is paused' if changed else 'was paused already'}")


@schedules.command()
@click.argument("name")
@owner_option
@with_database
def resume(database: Database, name: str, app: str | None) -> None:
    """Resume a schedule from now; ticks missed during the pause do not run."""
    row = database.read(lookup.schedule, database.namespace, name, app)
    changed = database.transact(ops.resume, row.namespace, row.app, row.name, database.actor)
    output.message(f"schedule {row.name} {'resumed' if changed else 'was not paused'}")


@schedules.command()
@click.argument("name")
@owner_option
@with_database
def remove(database: Database, name: str, app: str | None) -> None:
    """Remove a schedule; its ledger stays.

    A schedule that code declares comes back with the next deploy of that code.
    """
    row = database.read(lookup.schedule, database.namespace, name, app)
    database.transact(ops.remove, row.namespace, row.app, row.name, database.actor)
    again = "; its code still declares it, so the next deploy adds it again" if row.origin == "code" else ""
    output.message(f"schedule {row.name} is removed{again}")


@schedules.command()
@click.argument("name")
@owner_option
@click.option("--from", "start", type=options.past, metavar="TIME", help="Since then: 90d (ago), 2026-01-31T09:00Z.")
@click.option("--to", "end", type=options.past, metavar="TIME", help="Until then (default: now).")
@click.option("--missed", is_flag=True, help="Only ticks that started nothing, and why.")
@limit_option(50, 10_000)
@json_option
@with_database
def ticks(
    database: Database,
    name: str,
    app: str | None,
    start: int | None,
    end: int | None,
    missed: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Show the ledger: every tick and its outcome, newest first.

    The last line counts all ticks of that time, whatever the limit. A range of ticks with the same outcome is one row.

    \b
    rota schedules ticks backup --from 90d
    rota schedules ticks backup --from 2026-07-01T00:00Z --missed
    """
    between = options.between(start, end, database.clock.now())
    found, remarks, notes = database.read(_ledger, database.namespace, name, app, between, missed, limit)
    for words in remarks:
        output.message(words)
    empty = "none was missed" if found.outcomes else "no ticks in that time" if start or end else "no ticks yet"
    more = "an earlier --to" if found.has_more else ""
    output.listing(found.items, _TICK_COLUMNS, as_json=as_json, empty=empty, more=more)
    for words in (*_sums(found), *notes):
        output.message(words)


def _ledger(
    view: View, namespace: str, name: str, app: str | None, between: tuple[int, int], missed: bool, limit: int
) -> tuple[Ledger, list[str], list[str]]:
    """The ledger, remarks on the name, and notes on ticks that the ledger cannot have."""
    row, owner, full_name, remarks = lookup.ledger(view, namespace, name, app)
    found = tick_views.ledger(view, namespace, owner, full_name, *between, missed, limit)
    return found, remarks, [] if row is None else views.not_in_ledger(row, *between, view.now)


@schedules.command()
@app_option
@json_option
@with_database
def lint(database: Database, app: str | None, as_json: bool) -> None:
    """Find herds, times that do not exist, and runs longer than their interval.

    The exit code is 1 if there are findings. Paused schedules are left out.
    """
    found = database.read(views.lint, database.namespace, app)
    if as_json:
        output.print_json_rows(found.findings)
    else:
        for finding in found.findings:
            names = text.clipped(", ".join(finding.schedules), 200)
            print(text.harmless(f"{finding.kind}: {finding.message} ({names})"))
        output.message(f"{text.count(found.schedules, 'schedule')}, {text.count(len(found.findings), 'finding')}")
    if found.findings:
        click.get_current_context().exit(UNSUCCESSFUL)


def _columns(rows: list[Schedule]) -> output.Columns[Schedule]:
    columns: dict[str, Any] = {
        "schedule": lambda one: f"{one.app}.{one.name}",
        "job": lambda one: one.job,
        "when": lambda one: one.words,
        "next": _next,
        "next at": lambda one: one.next_at and rfc3339(one.next_at.replace(microsecond=0)),
        "last tick": lambda one: one.last_tick and one.last_tick.at,
        "outcome": lambda one: one.last_tick and one.last_tick.outcome,
        "late": _late,
        "last run": lambda one: one.last_tick and one.last_tick.status,
    }
    if all(one.name.partition(":")[0] == one.job for one in rows):
        del columns["job"]  # The name says it.
    return columns


def _next(one: Schedule) -> str:
    if one.paused is not None:
        return text.pause(one.paused)
    if one.next_at is None:
        return "when the last one ends" if one.waits_for else "never again"
    return text.ago(one.next_at)


def _late(one: Schedule) -> str | None:
    if one.last_tick is None or one.last_tick.late_by is None:
        return None
    return duration.words(max(0.0, one.last_tick.late_by.total_seconds()))


_SPARE = ("next at", "job", "late", "outcome", "last tick")
_TICK_COLUMNS: output.Columns[Tick] = {
    "tick": lambda tick: rfc3339(tick.at),
    "ticks": lambda tick: "" if tick.count == 1 else f"{tick.count:,} until {rfc3339(tick.until)}",
    "outcome": lambda tick: tick.outcome,
    "status": lambda tick: tick.status or ("" if tick.execution_id is None else "-"),
    "id": lambda tick: tick.execution_id or "",
}


def _sums(found: Ledger) -> list[str]:
    if not found.outcomes:
        return []
    idle = {name: number for name, number in found.outcomes.items() if name not in STARTED}
    started, not_started = sum(found.started.values()), sum(idle.values())
    total = text.count(sum(found.outcomes.values()), "tick")
    words = f"{total}: {started:,} started{_counted(found.started)}, {not_started:,} did not{_counted(idle)}"
    cut = f"only the newest {tick_views.MOST_ROWS:,} rows were read: choose a shorter time"
    return [words, cut] if found.is_capped else [words]


def _counted(numbers: Mapping[str, int]) -> str:
    by_number = sorted(numbers.items(), key=lambda one: -one[1])
    listed = ", ".join(f"{number:,} {name}" for name, number in by_number)
    return f" ({listed})" if listed else ""
