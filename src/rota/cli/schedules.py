"""`rota schedules`: what runs by itself, when next, and what became of its ticks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from rota.cli import ledger, output, params, text
from rota.cli.database import Database, with_database
from rota.cli.failure import NOT_WELL
from rota.cli.params import json_option
from rota.domain import duration

if TYPE_CHECKING:
    from rota.domain.schedule import Spec
    from rota.store.port import View
    from rota.store.timetable import ScheduleRow

MICROSECONDS = 1_000_000


@click.group(invoke_without_command=True)
@click.option("--app", metavar="NAME", help="Only schedules of this app.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=1000, show_default=True, help="How many rows at most."
)
@json_option
@with_database
def schedules(database: Database, app: str | None, limit: int, as_json: bool) -> None:
    """List schedules; pause, resume and remove them; read their ledger.

    \b
    rota schedules
    rota schedules ticks backup --from 90d --missed
    rota schedules pause backup --note "disk is full"
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    from rota.store import timetable

    rows = database.read(timetable.schedules, database.namespace, app, None, limit + 1)
    has_more, rows = len(rows) > limit, rows[:limit]
    ended = database.read(_statuses, database.namespace, [row.last_execution for row in rows if row.last_execution])
    now = database.clock.now()
    if as_json:
        output.print_json_rows(_data(row, ended) for row in rows)
    else:
        empty = "there are no schedules: give a job cron= or every=, and start a worker"
        output.listing(rows, _columns(rows, ended, now), as_json=False, empty=empty)
    if has_more:
        output.message("there are more: say --app, or a higher --limit")
    if overdue := sum(ledger.is_overdue(row, now) for row in rows):
        output.message(f"{text.count(overdue, 'schedule')} overdue: is a worker running?")


@schedules.command()
@click.argument("name")
@click.option("--app", metavar="NAME", help="Whose, if several apps have one of this name.")
@click.option("--note", default="", metavar="TEXT", help="Why; shown to whoever asks.")
@with_database
def pause(database: Database, name: str, app: str | None, note: str) -> None:
    """Stop a schedule until it is resumed; what it has started goes on."""
    from rota.ops import schedule as ops

    row = named(database, name, app)
    changed = database.transact(ops.pause, row.namespace, row.app, row.name, database.actor, note)
    output.message(f"schedule {row.name} is paused" if changed else f"schedule {row.name} was paused already")


@schedules.command()
@click.argument("name")
@click.option("--app", metavar="NAME", help="Whose, if several apps have one of this name.")
@with_database
def resume(database: Database, name: str, app: str | None) -> None:
    """Let a schedule go on from now; what it left out is not made up for."""
    from rota.ops import schedule as ops

    row = named(database, name, app)
    changed = database.transact(ops.resume, row.namespace, row.app, row.name, database.actor)
    output.message(f"schedule {row.name} goes on" if changed else f"schedule {row.name} was not paused")


@schedules.command()
@click.argument("name")
@click.option("--app", metavar="NAME", help="Whose, if several apps have one of this name.")
@with_database
def remove(database: Database, name: str, app: str | None) -> None:
    """End a schedule; its ledger stays.

    One that is declared in code comes back with the next worker that starts.
    """
    from rota.ops import schedule as ops

    row = named(database, name, app)
    database.transact(ops.remove, row.namespace, row.app, row.name, database.actor)
    again = "; its code still declares it, so a worker that starts will bring it back" if row.origin == "code" else ""
    output.message(f"schedule {row.name} is removed{again}")


@schedules.command()
@click.argument("name")
@click.option("--app", metavar="NAME", help="Whose, if several apps have one of this name.")
@click.option("--from", "start", type=params.past, metavar="TIME", help="Since then: 90d (ago), 2026-01-31T09:00Z.")
@click.option("--to", "end", type=params.past, metavar="TIME", help="Until then (default: now).")
@click.option("--missed", is_flag=True, help="Only ticks that started nothing, and why.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many rows at most.")
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
    low, high = ledger.between(start, end, database.clock.now())
    row, whose, its_name = _owner(database, name, app)
    found = ledger.read(database, whose, its_name, low, high, missed, limit)
    if as_json:
        output.print_json_rows(ledger.data(tick) for tick in found.shown)
    else:
        empty = "none was missed" if found.rows else "no ticks in that time" if start or end else "no ticks yet"
        output.listing(found.shown, ledger.COLUMNS, as_json=False, empty=empty)
    if found.has_more:
        output.message("there are more: say an earlier --to, or a higher --limit")
    for words in (*found.words(), *([] if row is None else ledger.not_decided(row, start, high, database.clock.now()))):
        output.message(words)


@schedules.command()
@click.option("--app", metavar="NAME", help="Only schedules of this app.")
@json_option
@with_database
def lint(database: Database, app: str | None, as_json: bool) -> None:
    """Point out herds, times that do not exist, and runs that take too long.

    The exit code is 1 if there is anything to point out. Schedules that are paused are left out.
    """
    from rota.domain.timetable_lint import lint as examine
    from rota.store import timetable

    rows = [row for row in database.read(timetable.schedules, database.namespace, app) if row.paused_at is None]
    took = database.read(timetable.run_times, database.namespace, sorted({(row.app, row.job) for row in rows}))
    specs = {f"{row.app}.{row.name}": row.spec for row in rows}
    times = {f"{row.app}.{row.name}": took[row.app, row.job] for row in rows if (row.app, row.job) in took}
    findings = examine(specs, database.clock.now(), times)
    if as_json:
        output.print_json_rows(output.data(finding) for finding in findings)
    else:
        for finding in findings:
            names = text.clipped(", ".join(finding.schedules), 200)
            print(text.harmless(f"{finding.kind}: {finding.message} ({names})"))
        output.message(f"{text.count(len(rows), 'schedule')}, {text.count(len(findings), 'finding')}")
    if findings:
        click.get_current_context().exit(NOT_WELL)


# --- Which schedule, and which time --------------------------------------------------------------


def named(database: Database, name: str, app: str | None) -> ScheduleRow:
    """The one schedule of that name, or of the job of that name. `app.name`, as the list shows it, will do too."""
    from rota.domain.errors import UnknownSchedule

    rows = candidates(database, name, app)
    rows = [row for row in rows if row.name == name] or rows
    if not rows:
        raise UnknownSchedule(f"there is no schedule {name!r}; `rota schedules` lists them")
    return the_only(rows, name, "the schedule's own name")


def candidates(database: Database, name: str, app: str | None) -> list[ScheduleRow]:
    from rota.store import timetable

    rows = database.read(timetable.schedules, database.namespace, app, name)
    if rows or app is not None:
        return rows
    # An app's name may have dots, too.
    for at in (at for at, char in enumerate(name) if char == "."):
        rows = database.read(timetable.schedules, database.namespace, name[:at], name[at + 1 :])
        if rows:
            return [row for row in rows if row.name == name[at + 1 :]] or rows
    return []


def the_only(rows: Sequence[ScheduleRow], name: str, otherwise: str) -> ScheduleRow:
    from rota.domain.errors import UsageError

    if len(rows) == 1:
        return rows[0]
    known = ", ".join(f"{row.app}.{row.name}" for row in rows[:5]) + (", …" if len(rows) > 5 else "")
    how = "--app" if len({row.app for row in rows}) > 1 else otherwise
    raise UsageError(f"{name!r} may be any of {known}: say which with {how}")


def _owner(database: Database, name: str, app: str | None) -> tuple[ScheduleRow | None, str, str]:
    """The schedule, its app and its name; also of one that was removed, for its ledger stays."""
    from rota.domain.errors import UnknownSchedule, UsageError
    from rota.store import reader

    try:
        row = named(database, name, app)
    except UnknownSchedule:
        apps = [app] if app else sorted({job.app for job in database.read(reader.jobs, database.namespace)})
        found = [one for one in apps if next(ledger.rows(database, one, name, 0, 2**62), None)]
        if not found:
            raise
        if len(found) > 1:
            raise UsageError(f"several apps had a schedule {name!r}: say which with --app") from None
        output.message(f"schedule {name} was removed")
        return None, found[0], name
    if name not in (row.name, f"{row.app}.{row.name}"):
        output.message(f"{name} is a job; this is its schedule {row.name}")
    return row, row.app, row.name


# --- How schedules are shown ---------------------------------------------------------------------


def _statuses(view: View, namespace: str, ids: Sequence[str]) -> dict[str, str]:
    """Where executions stand; without those that are no longer kept."""
    from rota.domain.errors import UnknownExecution
    from rota.store import reader

    found = {}
    for id in ids:
        try:
            found[id] = reader.status(view, namespace, id).value
        except UnknownExecution:
            continue
    return found


def _columns(rows: Sequence[ScheduleRow], ended: dict[str, str], now: int) -> output.Columns[ScheduleRow]:
    from rota.domain import wording

    columns: dict[str, Any] = {
        "schedule": lambda row: f"{row.app}.{row.name}",
        "job": lambda row: row.job,
        "when": lambda row: wording.explain(row.spec.trigger),
        "next": lambda row: _next(row, now),
        "last": lambda row: text.ago(row.last_at, now),
        "outcome": lambda row: row.last_outcome or "-",
        "late": lambda row: "-" if row.last_late is None else duration.words(max(0, row.last_late) / MICROSECONDS),
        "status": lambda row: ended.get(row.last_execution or "", "-"),
    }
    if all(row.name.partition(":")[0] == row.job for row in rows):
        del columns["job"]  # The name says it.
    return columns


def _next(row: ScheduleRow, now: int) -> str:
    if row.paused_at is not None:
        by = f" by {row.paused_by}" if row.paused_by else ""
        return f"paused {text.ago(row.paused_at, now)}{by}" + (f": {row.paused_note}" if row.paused_note else "")
    if row.next_at is None:
        return "when the last one ends" if row.waits_for else "never again"
    return text.when(row.next_at, now)


def _data(row: ScheduleRow, ended: dict[str, str]) -> dict[str, Any]:
    from rota.domain import wording

    found = output.data(row)
    del found["text"], found["removed_at"]
    found["cursor"] = text.iso(row.cursor)
    found["held"] = [text.iso(at) for at in output.decoded(row.held)]
    found["last_late_s"] = None if row.last_late is None else found.pop("last_late") / MICROSECONDS
    found.pop("last_late", None)
    found["last_status"] = ended.get(row.last_execution or "")
    found["when"] = wording.explain(row.spec.trigger)
    found["spec"] = _spec(row.spec)
    return found


def _spec(spec: Spec) -> dict[str, Any]:
    """What its owner decided, with what was left to the defaults."""
    import msgspec

    found = {name: msgspec.to_builtins(getattr(spec, name)) for name in spec.__struct_fields__}
    found["arguments"] = output.decoded(spec.arguments)
    found["start"], found["end"] = text.iso(spec.start), text.iso(spec.end)
    trigger = found["trigger"]
    for name in ("period", "phase", "delay"):
        if name in trigger:
            trigger[f"{name}_s"] = trigger.pop(name) / MICROSECONDS
    if "instants" in trigger:
        trigger["instants"] = [text.iso(at) for at in trigger["instants"]]
    return found
