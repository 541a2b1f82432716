"""`rota next`: when a cron expression fires, without a database."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import click

from rota.cli import output, params
from rota.clock import SystemClock
from rota.domain.instant import MICROSECONDS

if TYPE_CHECKING:
    from rota.domain.trigger import Cron

MOST = 10_000
MOST_WARNINGS = 3
YEAR_S = 366 * 86_400
_TIMES = {"first": "once, the first time", "second": "once, the second time", "both": "both times"}


@click.command("next")
@click.argument("expression")
@click.option("--tz", default="UTC", show_default=True, metavar="ZONE", help="The IANA zone that its times are of.")
@click.option("-n", "count", type=click.IntRange(1, MOST), default=10, show_default=True, help="How many ticks.")
@click.option("--from", "start", type=params.moment, metavar="TIME", help="Those after this instant (default: now).")
@click.option(
    "--dst-gap",
    type=click.Choice(["next", "skip"]),
    default="next",
    show_default=True,
    help="What a changed clock leaves out comes right after the gap, or not.",
)
@click.option(
    "--dst-overlap",
    type=click.Choice(["first", "second", "both"]),
    default="first",
    show_default=True,
    help="Which one counts of a time that comes twice.",
)
@click.option(
    "--job", default="", metavar="APP.JOB", help="Whose H is meant: it stands for another number in each job."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array of instants in UTC, for programs.")
def upcoming(
    expression: str,
    tz: str,
    count: int,
    start: datetime | None,
    dst_gap: str,
    dst_overlap: str,
    job: str,
    as_json: bool,
) -> None:
    """Say in words what a cron expression means, and print its next ticks.

    It needs no database. The words and the warnings go to stderr.

    \b
    rota next "0 9 * * 1-5" --tz Europe/Berlin -n 5
    rota next "30 2 * * *" --tz Europe/Berlin --from 2026-03-28T00:00Z
    """
    from rota.domain import ticks, trigger, wording
    from rota.domain.ticks import Gap, Repeat

    params.check_year("--from", start)
    wanted = trigger.Cron(expression, tz, Gap(dst_gap), Repeat(dst_overlap), job)
    trigger.check(wanted)
    after = (SystemClock().now() if start is None else round(start.timestamp() * MICROSECONDS)) // MICROSECONDS
    every = ticks.ticks(*trigger.parts(wanted), after, wanted.repeat)
    found = list(islice((tick for tick in every if not (tick.in_gap and wanted.gap is Gap.SKIP)), count))
    output.message(wording.explain(wanted))
    # A year has all that a zone does to an expression; of a longer list some more.
    last = max([after, *(tick.at for tick in found)])
    for warning in _warnings(wanted, after, max(after + YEAR_S, min(last, after + 10 * YEAR_S))):
        output.message(f"warning: {warning}")
    if as_json:
        print(output.to_json([_utc(tick.at) for tick in found], indent=2))
    else:
        rows = [[_utc(tick.at), _local(tick.at, tz), "after the gap" if tick.in_gap else ""] for tick in found]
        output.table(["utc", "local", "note"], rows)


def _warnings(wanted: Cron, after: int, until: int) -> list[str]:
    """What changed clocks do to the expression, in the order of time."""
    from rota.domain import ticks, trigger
    from rota.domain.ticks import Gap

    parts = trigger.parts(wanted)
    left_out = [tick.at for tick in islice(ticks.gaps(*parts, after, until), MOST_WARNINGS)]
    twice = list(islice(ticks.repeats(*parts, after, until), MOST_WARNINGS))
    instead = "it is left out" if wanted.gap is Gap.SKIP else "it runs once, right after the gap"
    words = [(at, f"its time does not exist on {ticks.missing_day(*parts, at)}: {instead}") for at in left_out]
    words += [
        (at, f"its time comes twice on {_local(at, wanted.tz)[:10]}: it runs {_TIMES[wanted.repeat]}") for at in twice
    ]
    return [warning for _, warning in sorted(words)[:MOST_WARNINGS]]


def _utc(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _local(at: int, tz: str) -> str:
    return f"{datetime.fromtimestamp(at, ZoneInfo(tz)):%Y-%m-%d %H:%M:%S %Z (%a)}"
