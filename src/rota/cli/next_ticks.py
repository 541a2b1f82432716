"""`rota next`: when a cron expression fires, without a database."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import click

from rota.cli import layout, options, output
from rota.clock import MACHINE
from rota.domain import clock_changes, ticks, trigger, trigger_words
from rota.domain.instant import MICROSECONDS
from rota.domain.ticks import Gap, Repeat
from rota.domain.trigger import Cron

MOST = 10_000
YEAR_S = 366 * 86_400


@click.command("next")
@click.argument("expression")
@click.option("--tz", default="UTC", show_default=True, metavar="ZONE", help="The IANA time zone of the expression.")
@click.option("-n", "count", type=options.number(MOST), default=10, metavar="N", help="How many ticks (default: 10).")
@click.option("--from", "start", type=options.moment, metavar="TIME", help="Only ticks after this time (default: now).")
@click.option(
    "--dst-gap",
    type=click.Choice(["next", "skip"]),
    default="next",
    show_default=True,
    help="A time that a clock change leaves out: run right after the gap, or skip.",
)
@click.option(
    "--dst-overlap",
    type=click.Choice(["first", "second", "both"]),
    default="first",
    show_default=True,
    help="Which one to run of a time that comes twice.",
)
@click.option(
    "--job", default="", metavar="APP.JOB", help="The job for H, which stands for a different number in each job."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of instants in UTC.")
def next_ticks(
    expression: str,
    tz: str,
    count: int,
    start: datetime | None,
    dst_gap: str,
    dst_overlap: str,
    job: str,
    as_json: bool,
) -> None:
    """Explain a cron expression in words, and print its next ticks.

    It needs no database. The explanation and the warnings go to stderr.

    \b
    rota next "0 9 * * 1-5" --tz Europe/Berlin -n 5
    rota next "30 2 * * *" --tz Europe/Berlin --from 2026-03-28T00:00Z
    """
    wanted = Cron(expression, tz, Gap(dst_gap), Repeat(dst_overlap), job)
    trigger.check(wanted)
    after = MACHINE.now() // MICROSECONDS if start is None else int(start.timestamp())
    every = ticks.ticks(*trigger.parts(wanted), after, wanted.repeat)
    found = list(islice((tick for tick in every if not (tick.in_gap and wanted.gap is Gap.SKIP)), count))
    output.message(trigger_words.explain(wanted))
    # A year covers all clock changes; a longer list of ticks is checked for up to ten years.
    last = max([after, *(tick.at for tick in found)])
    for warning in clock_changes.warnings(wanted, after, max(after + YEAR_S, min(last, after + 10 * YEAR_S))):
        output.message(f"warning: {warning.text}")
    if as_json:
        print(output.to_json([_utc(tick.at) for tick in found], indent=2))
    else:
        rows = [[_utc(tick.at), _local(tick.at, tz), "after the gap" if tick.in_gap else ""] for tick in found]
        layout.table(["utc", "local", "note"], rows)


def _utc(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _local(at: int, tz: str) -> str:
    return f"{datetime.fromtimestamp(at, ZoneInfo(tz)):%Y-%m-%d %H:%M:%S %Z (%a)}"
