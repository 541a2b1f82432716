"""`rota schedules`: what runs by itself, when next, and what became of its ticks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from rota.cli import output, params, text
from rota.cli.database import Database, with_database
from rota.cli.failure import NOT_WELL
from rota.cli.params import json_option
from rota.domain import duration

if TYPE_CHECKING:
    from rota.domain.schedule import Spec
    from rota.store.port import View
    from rota.store.timetable import ScheduleRow, TickRow

MICROSECONDS = 1_000_000
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
OVERDUE_S = 10
PAGE, MOST_ROWS = 10_000, 1_000_000
STARTED = frozenset({"fired", "caught_up", "backfilled"})


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
    if overdue := sum(is_overdue(row, now) for row in rows):
        output.message(f"{text.count(overdue, 'schedule')} overdue: is a worker running?")


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
    low, high = between(start, end, database.clock.now())
    row, whose, its_name = _owner(database, name, app)
    found = ledger(database, whose, its_name, low, high, missed, limit)
    if as_json:
        output.print_json_rows(_tick_data(tick) for tick in found.shown)
    else:
        empty = "none was missed" if found.rows else "no ticks in that time"
        output.listing(found.shown, TICK_COLUMNS, as_json=False, empty=empty)
    if found.has_more:
        output.message("there are more: say an earlier --to, or a higher --limit")
    for words in (*found.words(), *([] if row is None else not_decided(row, start, high, database.clock.now()))):
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


def between(start: datetime | None, end: datetime | None, now: int) -> tuple[int, int]:
    """Two times of the command line as instants; the first of all and now, if they are not given."""
    for option, value in (("--from", start), ("--to", end)):
        if value is not None and not EARLIEST <= value < LATEST:
            raise click.UsageError(f"{option}: must be between the years 1970 and 8999, not {value.year}")
    low, high = params.instant(start) or 0, params.instant(end) or now
    if high < low:
        raise click.UsageError("--to: comes before --from" if end else "--from: is not in the past")
    return low, high


def is_overdue(row: ScheduleRow, now: int) -> bool:
    return row.next_at is not None and row.next_at < now - OVERDUE_S * MICROSECONDS


def not_decided(row: ScheduleRow, start: datetime | None, high: int, now: int) -> list[str]:
    """What the ledger cannot know: ticks that nobody has looked at, and the time before the schedule."""
    from rota.domain import trigger

    words = []
    low, end = max(row.cursor, (row.spec.start or 0) - 1), now if row.spec.end is None else min(now, row.spec.end)
    number = trigger.count(row.spec.trigger, low, min(high, end))
    since = _moment(row.cursor // MICROSECONDS * MICROSECONDS)
    if number and row.paused_at is not None:
        words.append(f"paused since {since}, which leaves out {text.count(number, 'tick')} so far")
    elif number and is_overdue(row, now):
        words.append(f"{text.count(number, 'tick')} since {since} not looked at yet: is a worker running?")
    if start is not None and (params.instant(start) or 0) < row.created_at:
        made = _moment(row.created_at // MICROSECONDS * MICROSECONDS)
        words.append(f"schedule {row.name} was made at {made}: before that it had no ticks")
    return words


def _owner(database: Database, name: str, app: str | None) -> tuple[ScheduleRow | None, str, str]:
    """The schedule, its app and its name; also of one that was removed, for its ledger stays."""
    from rota.domain.errors import UnknownSchedule, UsageError
    from rota.store import reader

    try:
        row = named(database, name, app)
    except UnknownSchedule:
        apps = [app] if app else sorted({job.app for job in database.read(reader.jobs, database.namespace)})
        found = [one for one in apps if next(_rows(database, one, name, 0, 2**62), None)]
        if not found:
            raise
        if len(found) > 1:
            raise UsageError(f"several apps had a schedule {name!r}: say which with --app") from None
        output.message(f"schedule {name} was removed")
        return None, found[0], name
    return row, row.app, row.name


# --- The ledger ----------------------------------------------------------------------------------


class Ledger:
    """Rows to show, and what all rows come to."""

    def __init__(self) -> None:
        self.shown: list[TickRow] = []
        self.has_more = False
        self.rows = 0
        self.outcomes: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()

    @property
    def started(self) -> int:
        return self.statuses.total()

    def add(self, tick: TickRow) -> None:
        self.rows += 1
        self.outcomes[tick.outcome] += tick.count
        if tick.execution is not None:
            self.statuses[tick.status or "without a recorded end"] += tick.count

    def words(self) -> list[str]:
        """The sums, for people."""
        if not self.rows:
            return []
        idle = Counter({name: number for name, number in self.outcomes.items() if name not in STARTED})
        total = text.count(self.outcomes.total(), "tick")
        words = f"{total}: {self.started:,} started{_counted(self.statuses)}, {idle.total():,} did not{_counted(idle)}"
        cut = f"only the newest {MOST_ROWS:,} rows were read: choose a shorter time"
        return [words, cut] if self.rows >= MOST_ROWS else [words]


def ledger(database: Database, app: str, name: str, low: int, high: int, missed: bool, limit: int) -> Ledger:
    """Everything between two instants; to show are at most `limit` rows, if `missed` only of what started nothing."""
    found = Ledger()
    for tick in _rows(database, app, name, low, high):
        found.add(tick)
        if missed and (tick.execution is not None or tick.outcome == "queued"):
            continue
        if len(found.shown) < limit:
            found.shown.append(tick)
        else:
            found.has_more = True
    return found


def _rows(database: Database, app: str, name: str, low: int, high: int) -> Iterator[TickRow]:
    from rota.store import timetable

    for _ in range(MOST_ROWS // PAGE):
        page = database.read(timetable.ticks, database.namespace, app, name, low, high, PAGE)
        yield from page
        if len(page) < PAGE:
            return
        high = page[-1].at - 1


def _counted(numbers: Counter[str]) -> str:
    listed = ", ".join(f"{number:,} {name}" for name, number in numbers.most_common())
    return f" ({listed})" if listed else ""


TICK_COLUMNS: output.Columns[TickRow] = {
    "tick": lambda tick: _moment(tick.at),
    "ticks": lambda tick: "1" if tick.count == 1 else f"{tick.count:,} until {_moment(tick.until)}",
    "outcome": lambda tick: tick.outcome,
    "status": lambda tick: tick.status or ("" if tick.execution is None else "-"),
    "id": lambda tick: tick.execution or "",  # Under this heading a narrow terminal does not cut it.
}


def _tick_data(tick: TickRow) -> dict[str, Any]:
    return {**output.data(tick), "at": text.iso(tick.at), "until": text.iso(tick.until)}


def _moment(at: int) -> str:
    """An instant, without a fraction if it has none. A narrow terminal breaks it at the space and does not cut it."""
    return (text.iso(at) or "").replace(".000000Z", "Z").replace("T", " ")


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
