"""`rota backfill`: run the ticks of a past time that have not run."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from rota.cli import output, params, text
from rota.cli.database import Database, with_database

if TYPE_CHECKING:
    from rota.store.schedule_reader import ScheduleRow

MOST = 10_000


@click.command()
@click.argument("job")
@click.option(
    "--from",
    "start",
    type=params.past,
    required=True,
    metavar="TIME",
    help="The first instant: 2026-01-31T09:00Z, or 2d (ago).",
)
@click.option("--to", "end", type=params.past, metavar="TIME", help="The last instant (default: now).")
@click.option("--app", metavar="NAME", help="Whose job, if several apps have one of this name.")
@click.option("--schedule", metavar="NAME", help="Which schedule, if the job has several.")
@click.option(
    "--most",
    type=click.IntRange(1, 1_000_000),
    default=MOST,
    show_default=True,
    help="Refuse if there would be more ticks.",
)
@click.option("--dry-run", is_flag=True, help="Only say how many ticks there are, and how many have run.")
@with_database
def backfill(
    database: Database,
    job: str,
    start: datetime,
    end: datetime | None,
    app: str | None,
    schedule: str | None,
    most: int,
    dry_run: bool,
) -> None:
    """Run the ticks of a past time that have not run, each once.

    Safe to rerun: ticks that have already run are skipped.

    \b
    rota backfill report --from 2026-01-01T00:00Z --to 2026-02-01T00:00Z
    rota backfill report --from 2d --dry-run
    """
    from rota.domain.errors import UsageError
    from rota.domain.trigger import After
    from rota.ops import backfill as ops
    from rota.views import lookup, tick
    from rota.views import schedule as views

    now = database.clock.now()
    low, high = params.between(start, end, now)
    row = database.read(lookup.schedule_of_job, database.namespace, job, schedule, app)
    if isinstance(row.spec.trigger, After):
        raise UsageError(f"schedule {row.name!r} has a fixed delay, and so no ticks of its own in the past")
    open_ticks = views.undecided(row, high, now)
    high = min(high, row.cursor)  # What is not decided yet is not the past.
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
    """A piece at a time, each in a transaction of its own."""
    from rota.ids import IdSource
    from rota.ops import backfill as ops

    ids = IdSource(database.clock)
    started = known = left_out = 0
    after: int | None = low - 1
    with output.progress(total, f"backfilling {row.name}") as advance:
        while after is not None:
            step = database.transact(
                ops.backfill, row.namespace, row.app, row.name, after, high, database.actor, ids.many
            )
            advance(step.started + step.known + step.left_out)
            started, known, left_out = started + step.started, known + step.known, left_out + step.left_out
            after = step.after
    more = f"; {known:,} had run before" if known else ""
    more += f"; {left_out:,} left out, as the schedule says" if left_out else ""
    output.message(f"started {text.count(started, 'tick')} of {row.name}{more}")
