"""`rota backfill`: run the ticks of a past time that have not run."""

from __future__ import annotations

from datetime import datetime

import click

from rota.cli import output, params, text
from rota.cli.database import Database, with_database
from rota.cli.schedules import named

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
@click.option("--dry-run", is_flag=True, help="Only say how many ticks there are.")
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
    """Run the ticks of a past time that have not run; asked twice, nothing runs twice.

    \b
    rota backfill report --from 2026-01-01T00:00Z --to 2026-02-01T00:00Z
    rota backfill report --from 2d --dry-run
    """
    from rota.domain.errors import UsageError
    from rota.ids import IdSource
    from rota.ops import backfill as ops

    row = named(database, schedule or job, app)
    low = params.instant(start) or 0
    high = params.instant(end) or database.clock.now()
    if high < low:
        raise UsageError("--to: comes before --from")
    total = ops.count(row.spec, low - 1, high)
    if dry_run:
        output.message(f"{text.count(total, 'tick')} of {row.name} in that time")
        return
    if total > most:
        raise UsageError(
            f"there are {total:,} ticks in that time: choose a shorter one, or allow it with --most {total}"
        )
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
    more += f"; {left_out:,} are left out by their calendar" if left_out else ""
    output.message(f"started {text.count(started, 'tick')} of {row.name}{more}")
