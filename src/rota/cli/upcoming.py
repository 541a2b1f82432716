"""`rota next`: when a cron expression fires, without a database."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import click

from rota.cli import output, params
from rota.clock import SystemClock

MICROSECONDS = 1_000_000
MOST = 10_000
YEAR_S = 366 * 86_400


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
    help="What a changed clock leaves out.",
)
@click.option(
    "--dst-overlap",
    type=click.Choice(["first", "second", "both"]),
    default="first",
    show_default=True,
    help="What comes twice.",
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

    \b
    rota next "0 9 * * 1-5" --tz Europe/Berlin -n 5
    rota next "30 2 * * *" --tz Europe/Berlin --from 2026-03-28T00:00Z
    """
    from rota.domain import cron, ticks, wording
    from rota.domain.ticks import Gap, Overlap
    from rota.domain.trigger import Cron
    from rota.domain.zone import zone

    parsed, where = cron.parse(expression, job), zone(tz)
    gap, overlap = Gap(dst_gap), Overlap(dst_overlap)
    after = (params.instant(start) or SystemClock().now()) // MICROSECONDS
    every = (tick for tick in ticks.ticks(parsed, where, after, overlap) if not (tick.in_gap and gap is Gap.SKIP))
    found = list(islice(every, count))
    output.message(wording.explain(Cron(expression, tz, gap, overlap, job)))
    last = max([after + YEAR_S, *(tick.at for tick in found)])
    for warning in _warnings(parsed, where, after, last, gap, overlap):
        output.message(f"warning: {warning}")
    if as_json:
        output.print_json([f"{datetime.fromtimestamp(tick.at, UTC):%Y-%m-%dT%H:%M:%SZ}" for tick in found])
    else:
        rows = [[_utc(tick.at), _local(tick.at, tz), "after the gap" if tick.in_gap else ""] for tick in found]
        output.table(["utc", "local", "note"], rows)


def _warnings(parsed: object, where: object, after: int, until: int, gap: object, overlap: object) -> list[str]:
    from rota.domain import ticks
    from rota.domain.cron import Cron
    from rota.domain.ticks import Gap
    from rota.domain.zone import Zone

    assert isinstance(parsed, Cron)
    assert isinstance(where, Zone)
    left_out = [tick.at for tick in islice(ticks.gaps(parsed, where, after, until), 3)]
    twice = list(islice(ticks.repeats(parsed, where, after, until), 3))
    what = "it is skipped" if gap is Gap.SKIP else "it runs once, right after the gap"
    words = [f"the clocks leave a time out on {_local(at, where.name)[:10]}: {what}" for at in left_out]
    return words + [
        f"a time comes twice on {_local(at, where.name)[:10]}: it runs {_times(str(overlap))}" for at in twice
    ]


def _times(overlap: str) -> str:
    return {"first": "once, the first time", "second": "once, the second time", "both": "both times"}[overlap]


def _utc(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _local(at: int, tz: str) -> str:
    return f"{datetime.fromtimestamp(at, ZoneInfo(tz)):%Y-%m-%d %H:%M:%S %Z (%a)}"
