"""`rota load`: how much there is to do and how many slots there are for it, for people and for autoscalers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.params import MICROSECONDS, length

if TYPE_CHECKING:
    from rota.domain.load import Figures, Measured, Report


@click.command()
@click.option("--app", metavar="NAME", help="Only work of this app.")
@click.option("--queue", metavar="NAME", help="Only work of this queue.")
@click.option("--pool", metavar="NAME", help="Only work for this pool.")
@click.option(
    "--target",
    type=length,
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="In what time the suggested slots should work off what waits.",
)
@click.option(
    "--slots",
    type=click.IntRange(1, 10_000_000),
    metavar="N",
    help="Slots of one worker, for the suggested number of workers (default: as the live ones have).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for programs.")
@with_database
def load(
    database: Database,
    app: str | None,
    queue: str | None,
    pool: str | None,
    target: float,
    slots: int | None,
    as_json: bool,
) -> None:
    """Say how much waits, how busy workers are, and how many slots would do.

    \b
    rota load
    rota load --pool cpu --target 30s --json
    """
    from rota.domain import load as figures
    from rota.store import load as measuring

    if target <= 0:
        raise click.BadParameter("it takes some time to work off what waits.", param_hint="'--target'")
    measured = database.read(measuring.measure, database.namespace)
    measured = _only(measured, app, queue, pool)
    report = figures.report(measured, target, slots or figures.usual_slots(measured, database.settings.concurrency))
    if as_json:
        output.print_json(_as_data(measured.at, target, report))
    else:
        _print(report)


def _only(measured: Measured, app: str | None, queue: str | None, pool: str | None) -> Measured:
    from rota.domain.load import pool_of

    lanes = [
        lane
        for lane in measured.lanes
        if app in (None, lane.app) and queue in (None, lane.queue) and pool in (None, pool_of(lane))
    ]
    return msgspec.structs.replace(measured, lanes=lanes)


def _as_data(at: int, target_s: float, report: Report) -> dict[str, Any]:
    from rota.domain.load import WINDOW_S

    return {
        "at": text.iso(at),
        "target_s": target_s,
        "window_s": WINDOW_S,
        "slots_of_a_worker": report.slots_of_a_worker,
        "total": msgspec.structs.asdict(report.total),
        "groups": [
            {
                "app": group.app,
                "queue": group.queue,
                "pool": group.pool,
                "paused": group.paused,
                **msgspec.structs.asdict(group.figures),
            }
            for group in report.groups
        ],
    }


def _print(report: Report) -> None:
    if not report.groups:
        output.message("there are no queues yet")
        return
    rows = [
        [group.app, group.queue + (" (paused)" if group.paused else ""), group.pool, *_cells(group.figures)]
        for group in report.groups
    ]
    headings = ["app", "queue", "pool", "ready", "oldest", "due soon", "running", "slots", "free", "busy"]
    headings += ["in/s", "ended/s", "run", "suggested"]
    output.table(headings, [*rows, ["(all)", "", "", *_cells(report.total)]])


def _cells(figures: Figures) -> list[str]:
    return [
        str(figures.ready),
        _length(figures.oldest_ready_s),
        str(figures.due_soon),
        str(figures.running),
        str(figures.slots),
        str(figures.free_slots),
        "-" if figures.busy_share is None else f"{figures.busy_share:.0%}",
        f"{figures.arrivals_per_s:g}",
        f"{figures.ended_per_s:g}",
        _length(figures.run_s),
        str(figures.suggested_slots),
    ]


def _length(seconds: float | None) -> str:
    return "-" if seconds is None else text.length(0, round(seconds * MICROSECONDS))
