"""`rota backfill`: run the past ticks of a schedule that have not run."""

from __future__ import annotations

from collections import Counter

import click

from rota.cli import options, output, text
from rota.cli.database import Database, with_database
from rota.domain.errors import UsageError
from rota.domain.trigger import After
from rota.ids import IdSource
from rota.ops import backfill as ops
from rota.store.schedule_reader import ScheduleRow
from rota.views import lookup, tick
from rota.views import schedule as views

MOST = 10_000


@click.command()
@click.argument("job")
@click.option(
    "--from",
    "start",
    type=options.past,
    required=True,
    metavar="TIME",
    help="The first instant: 2026-01-31T09:00Z, or 2d (ago).",
)
@click.option("--to", "end", type=options.past, metavar="TIME", help="The last instant (default: now).")
@options.owner_option
@click.option("--schedule", metavar="NAME", help="Which schedule, if the job has several.")
@click.option(
    "--most",
    type=options.number(1_000_000),
    default=MOST,
    metavar="N",
    help=f"Refuse if there are more ticks than this (default: {MOST:,}).",
)
@click.option("--dry-run", is_flag=True, help="Only say how many ticks there are, and how many have run.")
@with_database
def backfill(
    database: Database,
    job: str,
    start: int,
    end: int | None,
    app: str | None,
    schedule: str | None,
    most: int,
    dry_run: bool,
) -> None:
    """Run the ticks of a past period that have not run, each once.

    Safe to rerun: ticks that have already run are skipped.

    \b
    rota backfill report --from 2026-01-01T00:00Z --to 2026-02-01T00:00Z
    rota backfill report --from 2d --dry-run
    """
    now = database.clock.now()
    low, high = options.between(start, end, now)
    row = database.read(lookup.schedule_of_job, database.namespace, job, schedule, app)
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
        _run(database, row, low, high, total)
    for words in open_ticks:
        output.message(words)


def _run(database: Database, row: ScheduleRow, low: int, high: int, total: int) -> None:
    """Runs a bounded number of ticks in each transaction."""
    ids, sums = IdSource(database.clock), Counter[str]()
    after: int | None = low - 1
    with output.progress(total, f"backfilling {row.name}") as advance:
        while after is not None:
            step = database.transact(
                ops.backfill, row.namespace, row.app, row.name, after, high, database.actor, ids.many
            )
            advance(step.started + step.known + step.left_out)
            sums.update(started=step.started, known=step.known, left_out=step.left_out)
            after = step.after
    more = f"; {sums['known']:,} had run before" if sums["known"] else ""
    more += f"; {sums['left_out']:,} left out, as the schedule says" if sums["left_out"] else ""
    output.message(f"started {text.count(sums['started'], 'tick')} of {row.name}{more}")
