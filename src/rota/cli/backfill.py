"""`rota backfill`: run the past ticks of a schedule that have not run."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import click

from rota.cli import options, output, text
from rota.cli.database import Database, with_database
from rota.domain.errors import UsageError
from rota.domain.instant import MICROSECONDS
from rota.domain.trigger import After
from rota.ids import IdSource
from rota.ops import backfill as ops
from rota.store import reader
from rota.store.schedule_reader import ScheduleRow
from rota.views import lookup, tick
from rota.views import schedule as views

MOST = 10_000
LOOK_S = 0.5


@click.command()
@click.argument("job")
@click.option(
    "--from",
    "start",
    type=options.past_or_day,
    required=True,
    metavar="TIME",
    help="The first instant: 2026-01-31T09:00Z, 2026-01-31 (in the schedule's zone), or 2d (ago).",
)
@click.option(
    "--to", "end", type=options.past_or_day, metavar="TIME", help="The last instant (default: now); a day is included."
)
@options.owner_option
@click.option("--schedule", metavar="NAME", help="Which schedule, if the job has several.")
@click.option(
    "--most",
    type=options.number(1_000_000),
    default=MOST,
    metavar="N",
    help=f"Refuse if there are more ticks than this (default: {MOST:,}).",
)
@click.option(
    "--at-once",
    type=options.number(10_000),
    metavar="N",
    help="Never more than N of these executions pending or running; the command waits meanwhile.",
)
@click.option("--dry-run", is_flag=True, help="Only say how many ticks there are, and how many have run.")
@with_database
def backfill(
    database: Database,
    job: str,
    start: int | date,
    end: int | date | None,
    app: str | None,
    schedule: str | None,
    most: int,
    at_once: int | None,
    dry_run: bool,
) -> None:
    """Run the ticks of a past period that have not run, each once.

    Safe to rerun: ticks that have already run are skipped. With --at-once the command runs until it has started the
    last tick; if it is interrupted, run it again.

    \b
    rota backfill report --from 2026-01-01 --to 2026-01-31
    rota backfill etl --from 30d --at-once 4
    rota backfill report --from 2d --dry-run
    """
    now = database.clock.now()
    row = database.read(lookup.schedule_of_job, database.namespace, job, schedule, app)
    last = end if end is None else _instant(end, row, is_end=True)
    low, high = options.between(_instant(start, row), last, now)
    if isinstance(row.spec.trigger, After):
        raise UsageError(f"schedule {row.name!r} has a fixed delay, and so no ticks of its own in the past")
    open_ticks = views.undecided(row, high, now)
    high = min(high, row.cursor)  # Ticks after the cursor are left to the workers.
    total = ops.count(row.spec, low - 1, high)
    if total > most and not dry_run:
        raise UsageError(
            f"--from, --to: there are {total:,} ticks in that time; choose a shorter one, or allow more with --most"
        )
    if dry_run:
        found = database.read(tick.ledger, row.namespace, row.app, row.name, low, high, missed=False, limit=0)
        started = sum(found.started.values())
        output.message(f"{text.count(total, 'tick')} of {row.name} in that time, of which {started:,} have run")
    else:
        _run(database, row, low, high, total, at_once)
    for words in open_ticks:
        output.message(words)


def _instant(given: int | date, row: ScheduleRow, *, is_end: bool = False) -> int:
    """A day means its first instant in the zone of the schedule; as the end of a period, its last instant."""
    if isinstance(given, int):
        return given
    day = given + timedelta(days=1) if is_end else given
    begins = datetime.combine(day, time(), ZoneInfo(row.spec.tz))
    return round(begins.timestamp() * MICROSECONDS) - is_end


def _run(database: Database, row: ScheduleRow, low: int, high: int, total: int, at_once: int | None) -> None:
    """Runs a bounded number of ticks in each transaction."""
    sums, places = Counter[str](), _Places(database, row, low, high, at_once)
    after: int | None = low - 1
    with output.progress(total, f"backfilling {row.name}") as advance:
        while after is not None:
            most = places.free()
            step = database.transact(
                ops.backfill, row.namespace, row.app, row.name, after, high, database.actor, places.new_ids, most
            )
            advance(step.started + step.known + step.left_out)
            sums.update(started=step.started, known=step.known, left_out=step.left_out)
            after = step.after
    more = f"; {sums['known']:,} had run before" if sums["known"] else ""
    more += f"; {sums['left_out']:,} left out, as the schedule says" if sums["left_out"] else ""
    output.message(f"started {text.count(sums['started'], 'tick')} of {row.name}{more}")


class _Places:
    """Limits how many executions of a backfill are unended at once (`--at-once`).

    Executions that earlier calls of the command started for the same period count, too.
    """

    def __init__(self, database: Database, row: ScheduleRow, low: int, high: int, at_once: int | None) -> None:
        self._database, self._at_once = database, at_once
        self._source = IdSource(database.clock)
        self._unended: list[str] = []
        if at_once is not None:
            found = database.read(tick.ledger, row.namespace, row.app, row.name, low, high, missed=False, limit=MOST)
            self._unended = [one.execution_id for one in found.items if one.execution_id is not None]

    def free(self) -> int:
        """Waits until there is a place."""
        if self._at_once is None:
            return ops.MOST
        while True:
            self._unended = self._database.read(reader.unended, self._database.namespace, self._unended)
            if len(self._unended) < self._at_once:
                return min(ops.MOST, self._at_once - len(self._unended))
            threading.Event().wait(LOOK_S)

    def new_ids(self, count: int) -> list[str]:
        made = self._source.many(count)
        self._unended += made
        return made
