"""`rota schedules`: what runs by itself, when next, and what became of its ticks."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from rota.cli import output, params, text
from rota.cli.database import Database, with_database
from rota.cli.params import json_option
from rota.domain import duration

if TYPE_CHECKING:
    from rota.store.timetable import ScheduleRow, TickRow

MICROSECONDS = 1_000_000
MOST_TICKS = 10_000


@click.group(invoke_without_command=True)
@click.option("--app", metavar="NAME", help="Only schedules of this app.")
@json_option
@with_database
def schedules(database: Database, app: str | None, as_json: bool) -> None:
    """List schedules; pause, resume and remove them; read their ledger.

    \b
    rota schedules
    rota schedules ticks backup --from 90d --missed
    rota schedules pause backup --note "disk is full"
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    from rota.store import timetable

    rows = database.read(timetable.schedules, database.namespace, app)
    if as_json:
        output.print_json_rows(_data(row) for row in rows)
    else:
        columns = _columns(database.clock.now())
        output.listing(rows, columns, as_json=False, empty="there are no schedules: give a job cron= or every=")


@schedules.command()
@click.argument("name")
@click.option("--app", metavar="NAME", help="Whose, if several apps have one of this name.")
@click.option("--note", default="", metavar="TEXT", help="Why; shown to whoever asks.")
@with_database
def pause(database: Database, name: str, app: str | None, note: str) -> None:
    """Stop a schedule until it is resumed; what it has started goes on."""
    from rota.domain import payload
    from rota.ops import schedule as ops

    row = named(database, name, app)
    words = payload.clean(note, 500)
    changed = database.transact(ops.pause, row.namespace, row.app, row.name, database.actor, words)
    output.message(f"schedule {row.name} is paused" if changed else f"schedule {row.name} was paused already")


@schedules.command()
@click.argument("name")
@click.option("--app", metavar="NAME", help="Whose, if several apps have one of this name.")
@with_database
def resume(database: Database, name: str, app: str | None) -> None:
    """Let a schedule go on from now; what would have come meanwhile is not made up for."""
    from rota.ops import schedule as ops

    row = named(database, name, app)
    changed = database.transact(ops.resume, row.namespace, row.app, row.name, database.actor)
    output.message(f"schedule {row.name} goes on" if changed else f"schedule {row.name} was not paused")


@schedules.command()
@click.argument("name")
@click.option("--app", metavar="NAME", help="Whose, if several apps have one of this name.")
@with_database
def remove(database: Database, name: str, app: str | None) -> None:
    """End a schedule; its ledger stays. One that is declared in code comes back with the next worker."""
    from rota.ops import schedule as ops

    row = named(database, name, app)
    database.transact(ops.remove, row.namespace, row.app, row.name, database.actor)
    again = "; its code still declares it, so a worker that starts will bring it back" if row.origin == "code" else ""
    output.message(f"schedule {row.name} is removed{again}")


@schedules.command()
@click.argument("name")
@click.option("--app", metavar="NAME", help="Whose, if several apps have one of this name.")
@click.option("--from", "start", type=params.past, metavar="TIME", help="Since then: 90d (ago), 2026-01-31T09:00Z.")
@click.option("--to", "end", type=params.moment, metavar="TIME", help="Until then.")
@click.option("--missed", is_flag=True, help="Only ticks that did not run, and why.")
@click.option(
    "--limit", type=click.IntRange(1, MOST_TICKS), default=50, show_default=True, help="How many rows at most."
)
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
    """Show the ledger: what became of every tick, newest first, and of the execution that it started."""
    from rota.store import timetable

    row = named(database, name, app)
    low, high = params.instant(start) or 0, params.instant(end) or 2**62
    found = database.read(timetable.ticks, row.namespace, row.app, row.name, low, high, MOST_TICKS)
    total = sum(tick.count for tick in found)
    ran = sum(tick.count for tick in found if tick.execution is not None)
    shown = [tick for tick in found if not missed or tick.execution is None][:limit]
    if as_json:
        output.print_json_rows(_tick_data(tick) for tick in shown)
        return
    output.listing(
        shown, _tick_columns(), as_json=False, empty="no ticks in that time" if not found else "none was missed"
    )
    output.message(f"{text.count(total, 'tick')} in the ledger, {ran:,} started an execution, {total - ran:,} did not")


@schedules.command()
@click.option("--app", metavar="NAME", help="Only schedules of this app.")
@json_option
@with_database
def lint(database: Database, app: str | None, as_json: bool) -> None:
    """Point out herds, times that a changed clock leaves out, and runs that take longer than their interval."""
    from rota.domain.timetable_lint import lint as examine
    from rota.store import timetable

    rows = [row for row in database.read(timetable.schedules, database.namespace, app) if row.paused_at is None]
    took = database.read(timetable.run_times, database.namespace, sorted({(row.app, row.job) for row in rows}))
    specs = {f"{row.app}.{row.name}": row.spec for row in rows}
    times = {f"{row.app}.{row.name}": took[row.app, row.job] for row in rows if (row.app, row.job) in took}
    findings = examine(specs, database.clock.now(), times)
    if as_json:
        output.print_json_rows(output.data(finding) for finding in findings)
        return
    for finding in findings:
        names = text.clipped(", ".join(finding.schedules), 200)
        print(text.harmless(f"{finding.kind}: {finding.message} ({names})"))
    output.message(f"{text.count(len(rows), 'schedule')}, {text.count(len(findings), 'finding')}")
    if findings:
        raise SystemExit(1)


def named(database: Database, name: str, app: str | None) -> ScheduleRow:
    """The one schedule of that name, or of the job of that name."""
    from rota.domain.errors import UnknownSchedule, UsageError
    from rota.store import timetable

    rows = database.read(timetable.schedules, database.namespace, app, name)
    exact = [row for row in rows if row.name == name]
    rows = exact or rows
    if not rows:
        raise UnknownSchedule(f"there is no schedule {name!r}; `rota schedules` lists them")
    if len(rows) > 1:
        known = ", ".join(f"{row.app}.{row.name}" for row in rows[:5])
        raise UsageError(f"{name!r} may be any of {known}: say which with --app, or by the schedule's own name")
    return rows[0]


def _columns(now: int) -> output.Columns[ScheduleRow]:
    from rota.domain import wording

    return {
        "schedule": lambda row: f"{row.app}.{row.name}",
        "job": lambda row: row.job,
        "when": lambda row: wording.explain(row.spec.trigger),
        "next": lambda row: _next(row, now),
        "last": lambda row: text.ago(row.last_at, now),
        "outcome": lambda row: row.last_outcome or "-",
        "late": lambda row: "-" if row.last_late is None else duration.words(max(0, row.last_late) / MICROSECONDS),
        "origin": lambda row: row.origin,
    }


def _next(row: ScheduleRow, now: int) -> str:
    if row.paused_at is not None:
        return f"paused {text.ago(row.paused_at, now)}" + (f": {row.paused_note}" if row.paused_note else "")
    if row.next_at is None:
        return "when the last one ends" if row.waits_for else "never again"
    return text.when(row.next_at, now)


def _data(row: ScheduleRow) -> dict[str, Any]:
    from rota.domain import wording

    found = output.data(row)
    found["spec"] = output.decoded(found.pop("text"))
    found["held"] = [text.iso(at) for at in output.decoded(row.held)]
    found["when"] = wording.explain(row.spec.trigger)
    found["last_late_s"] = None if row.last_late is None else row.last_late / MICROSECONDS
    del found["last_late"]
    return found


def _tick_columns() -> output.Columns[TickRow]:
    return {
        "tick": lambda tick: _moment(tick.at),
        "until": lambda tick: "" if tick.count == 1 else _moment(tick.until),
        "ticks": lambda tick: f"{tick.count:,}",
        "outcome": lambda tick: tick.outcome,
        "execution": lambda tick: tick.execution or "",
        "status": lambda tick: tick.status or "",
    }


def _tick_data(tick: TickRow) -> dict[str, Any]:
    found = output.data(tick)
    return {**found, "at": text.iso(tick.at), "until": text.iso(tick.until)}


def _moment(at: int) -> str:
    return (text.iso(at) or "").replace(".000000Z", "Z")
