"""`rota load`: how much work there is and how many slots there are for it, for people and for autoscalers."""

from __future__ import annotations

import click

from rota.cli import layout, output
from rota.cli.database import Database, with_database
from rota.cli.options import length, number, object_option
from rota.domain import duration
from rota.domain.load import Figures
from rota.views import load as views


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
    help="The time in which the suggested slots should complete the waiting work.",
)
@click.option(
    "--slots",
    type=number(10_000_000),
    metavar="N",
    help="Slots of one worker, for the suggested number of workers (default: as live workers have).",
)
@object_option
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
    """Show the waiting work, how busy workers are, and how many slots would do.

    \b
    rota load
    rota load --pool cpu --target 30s --json
    """
    if target <= 0:
        raise click.BadParameter("it must be longer than zero.", param_hint="'--target'")
    scope = views.Scope(app, queue, pool)
    found = database.read(views.load, database.namespace, scope, target, slots, database.settings.concurrency)
    if as_json:
        print(output.to_json(found, indent=2))
        return
    if not found.groups:
        output.message("there are no queues yet")
        return
    rows = [
        [group.app, group.queue + (" (paused)" if group.paused else ""), group.pool, *_cells(group)]
        for group in found.groups
    ]
    headings = ["app", "queue", "pool", "ready", "oldest", "due soon", "running", "slots", "suggested", "free", "busy"]
    headings += ["new/s", "ended/s", "run time"]
    spare = ("due soon", "new/s", "ended/s", "busy", "free", "run time", "pool")
    layout.table(headings, [*rows, ["(all)", "", "", *_cells(found.total)]], spare)


def _cells(figures: Figures) -> list[layout.Cell]:
    return [
        figures.ready,
        _length(figures.oldest_ready_s),
        figures.due_soon,
        figures.running,
        figures.slots,
        figures.suggested_slots,
        figures.free_slots,
        None if figures.busy_share is None else f"{figures.busy_share:.0%}",
        f"{figures.arrivals_per_s:g}",
        f"{figures.ended_per_s:g}",
        _length(figures.run_s),
    ]


def _length(seconds: float | None) -> str | None:
    return None if seconds is None else duration.words(seconds)
