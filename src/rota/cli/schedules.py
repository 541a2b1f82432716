"""`rota schedules`: what runs by itself, when next, and what became of its ticks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from rota.cli import output, params, text
from rota.cli.database import Database, with_database
from rota.cli.failure import NOT_WELL
from rota.cli.params import json_option, limit_option, list_group, note_option, owner_option
from rota.domain import duration

if TYPE_CHECKING:
    from rota.store.port import View
    from rota.views.schedule import LintResult, Schedule
    from rota.views.tick import Ledger, Tick

STARTED = frozenset({"fired", "caught_up", "backfilled"})


@list_group
@click.option("--app", metavar="NAME", help="Only schedules of this app.")
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
    from rota.views import schedule as views

    found = database.read(views.schedules, database.namespace, app, limit)
    empty = "there are no schedules: give a job cron= or every=, and start a worker"
    columns = _columns(found.items, database.now())
    output.paged(found, columns, as_json=as_json, empty=empty, more=lambda _: "say --app")
    if overdue := sum(one.is_overdue for one in found.items):
        output.message(f"{text.count(overdue, 'schedule')} overdue: is a worker running?")


@schedules.command()
@click.argument("name")
@owner_option
@note_option
@with_database
def pause(database: Database, name: str, app: str | None, note: str) -> None:
    """Stop a schedule until it is resumed; what it has started goes on."""
    from rota.ops import schedule as ops
    from rota.views import lookup

    row = database.read(lookup.schedule, database.namespace, name, app)
    changed = database.transact(ops.pause, row.namespace, row.app, row.name, database.actor, note)
    output.message(f"schedule {row.name} {'is paused' if changed else 'was paused already'}")


@schedules.command()
@click.argument("name")
@owner_option
@with_database
def resume(database: Database, name: str, app: str | None) -> None:
    """Resume a schedule from now; ticks of the pause are not made up for."""
    from rota.ops import schedule as ops
    from rota.views import lookup

    row = database.read(lookup.schedule, database.namespace, name, app)
    changed = database.transact(ops.resume, row.namespace, row.app, row.name, database.actor)
    output.message(f"schedule {row.name} {'resumed' if changed else 'was not paused'}")


@schedules.command()
@click.argument("name")
@owner_option
@with_database
def remove(database: Database, name: str, app: str | None) -> None:
    """End a schedule; its ledger stays.

    One that is declared in code comes back with the next worker that starts.
    """
    from rota.ops import schedule as ops
    from rota.views import lookup

    row = database.read(lookup.schedule, database.namespace, name, app)
    database.transact(ops.remove, row.namespace, row.app, row.name, database.actor)
    again = "; its code still declares it, so a worker that starts will bring it back" if row.origin == "code" else ""
    output.message(f"schedule {row.name} is removed{again}")


@schedules.command()
@click.argument("name")
@owner_option
@click.option("--from", "start", type=params.past, metavar="TIME", help="Since then: 90d (ago), 2026-01-31T09:00Z.")
@click.option("--to", "end", type=params.past, metavar="TIME", help="Until then (default: now).")
@click.option("--missed", is_flag=True, help="Only ticks that started nothing, and why.")
@limit_option(50, 10_000)
@json_option
@with_database
def ticks(
    database: Database,
    name: str,
    app: str | None,
    start: datetime | None,
    end: datetime | None,
    missed: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Show the ledger: what became of every tick, newest first.

    The last line counts all ticks of that time, whatever the limit. A range of ticks with one outcome is one row.

    \b
    rota schedules ticks backup --from 90d
    rota schedules ticks backup --from 2026-07-01T00:00Z --to 2026-10-01T00:00Z --missed
    """
    between = params.between(start, end, database.clock.now())
    found, remarks, notes = database.read(_ledger, database.namespace, name, app, between, missed, limit)
    for words in remarks:
        output.message(words)
    empty = "none was missed" if found.outcomes else "no ticks in that time" if start or end else "no ticks yet"
    output.listing(found.items, _TICK_COLUMNS, as_json=as_json, empty=empty)
    if found.has_more:
        output.message("there are more: say an earlier --to, or a higher --limit")
    for words in (*_sums(found), *notes):
        output.message(words)


def _ledger(
    view: View, namespace: str, name: str, app: str | None, between: tuple[int, int], missed: bool, limit: int
) -> tuple[Ledger, list[str], list[str]]:
    """The ledger, remarks on the name, and notes on ticks that the ledger cannot have."""
    from rota.views import lookup, schedule, tick

    row, whose, its_name, remarks = lookup.ledger(view, namespace, name, app)
    found = tick.ledger(view, namespace, whose, its_name, *between, missed, limit)
    return found, remarks, [] if row is None else schedule.not_in_ledger(row, *between, view.now)


@schedules.command()
@click.option("--app", metavar="NAME", help="Only schedules of this app.")
@json_option
@with_database
def lint(database: Database, app: str | None, as_json: bool) -> None:
    """Point out herds, times that do not exist, and runs that take too long.

    The exit code is 1 if there is anything to point out. Schedules that are paused are left out.
    """
    from rota.views import schedule as views

    found = database.read(views.lint, database.namespace, app)
    if as_json:
        output.print_json_rows(found.findings)
    else:
        _print_findings(found)
    if found.findings:
        click.get_current_context().exit(NOT_WELL)


def _print_findings(found: LintResult) -> None:
    for finding in found.findings:
        names = text.clipped(", ".join(finding.schedules), 200)
        print(text.harmless(f"{finding.kind}: {finding.message} ({names})"))
    output.message(f"{text.count(found.schedules, 'schedule')}, {text.count(len(found.findings), 'finding')}")


def _columns(rows: list[Schedule], now: datetime) -> output.Columns[Schedule]:
    columns: dict[str, Any] = {
        "schedule": lambda one: f"{one.app}.{one.name}",
        "job": lambda one: one.job,
        "when": lambda one: one.words,
        "next": lambda one: _next(one, now),
        "last": lambda one: text.ago(one.last_tick and one.last_tick.at, now),
        "outcome": lambda one: (one.last_tick and one.last_tick.outcome) or "-",
        "late": _late,
        "status": lambda one: (one.last_tick and one.last_tick.status) or "-",
    }
    if all(one.name.partition(":")[0] == one.job for one in rows):
        del columns["job"]  # The name says it.
    return columns


def _next(one: Schedule, now: datetime) -> str:
    if one.paused is not None:
        return text.pause(one.paused, now)
    if one.next_at is None:
        return "when the last one ends" if one.waits_for else "never again"
    return text.when(one.next_at, now)


def _late(one: Schedule) -> str:
    if one.last_tick is None or one.last_tick.late_by is None:
        return "-"
    return duration.words(max(0.0, one.last_tick.late_by))


_TICK_COLUMNS: output.Columns[Tick] = {
    "tick": lambda tick: _moment(tick.at),
    "ticks": lambda tick: "1" if tick.count == 1 else f"{tick.count:,} until {_moment(tick.until)}",
    "outcome": lambda tick: tick.outcome,
    "status": lambda tick: tick.status or ("" if tick.execution_id is None else "-"),
    "id": lambda tick: tick.execution_id or "",  # Under this heading a narrow terminal does not cut it.
}


def _moment(at: datetime) -> str:
    """A narrow terminal breaks it at the space and does not cut it."""
    from rota.views.shape import rfc3339

    return rfc3339(at).replace("T", " ")


def _sums(found: Ledger) -> list[str]:
    from rota.views.tick import MOST_ROWS

    if not found.outcomes:
        return []
    idle = {name: number for name, number in found.outcomes.items() if name not in STARTED}
    started, not_started = sum(found.started.values()), sum(idle.values())
    total = text.count(sum(found.outcomes.values()), "tick")
    words = f"{total}: {started:,} started{_counted(found.started)}, {not_started:,} did not{_counted(idle)}"
    cut = f"only the newest {MOST_ROWS:,} rows were read: choose a shorter time"
    return [words, cut] if found.is_capped else [words]


def _counted(numbers: Mapping[str, int]) -> str:
    by_number = sorted(numbers.items(), key=lambda one: -one[1])
    listed = ", ".join(f"{number:,} {name}" for name, number in by_number)
    return f" ({listed})" if listed else ""
