"""`rota executions`: what was asked to run, newest first."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from rota import ids
from rota.cli import output, text
from rota.cli.database import Database, with_database
from rota.cli.params import filter_options, instant, json_option, page_options
from rota.domain.status import Status

if TYPE_CHECKING:
    from rota.cli.output import Columns
    from rota.store.reader import ExecutionRow, Filter


@click.command()
@click.option(
    "--status",
    type=click.Choice([status.value for status in Status], case_sensitive=False),
    metavar="STATUS",
    help=f"Only those that are {', '.join(status.value for status in Status)}.",
)
@click.option("--app", metavar="NAME", help="Only those of this app.")
@filter_options
@page_options
@json_option
@with_database
def executions(
    database: Database,
    status: str | None,
    app: str | None,
    job: str | None,
    queue: str | None,
    error: str | None,
    since: datetime | None,
    limit: int,
    before: str | None,
    as_json: bool,
) -> None:
    """List executions, newest first.

    \b
    rota executions --status failed --since 2h
    rota executions --job send --json | jq '.[].id'
    """
    from rota.store import reader

    wanted = reader.Filter(
        status=Status(status) if status else None,
        job=job,
        app=app,
        queue=queue,
        error=error,
        since=instant(since),
        before=before or ids.LAST_ID,
        limit=limit + 1,
    )
    _refuse_contradiction(wanted)
    found = database.read(reader.executions, database.namespace, wanted)
    rows = found[:limit]
    output.listing(rows, _columns(database.clock.now()), as_json=as_json, empty="no executions match")
    if len(found) > limit:
        output.message(f"there are more: --before {rows[-1].id}, or a higher --limit")


def _refuse_contradiction(wanted: Filter) -> None:
    if wanted.error and wanted.status not in (None, Status.FAILED):
        raise click.UsageError(f"--error finds failed executions, so it does not go with --status {wanted.status}")


def _columns(now: int) -> Columns[ExecutionRow]:
    return {
        "id": lambda row: row.id,
        "status": lambda row: row.status.value,
        "job": lambda row: f"{row.app}.{row.job}",
        "queue": lambda row: row.queue,
        "attempts": lambda row: str(row.attempts),
        "created": lambda row: text.ago(row.created_at, now),
        "took": lambda row: text.length(row.started_at, row.finished_at or (now if row.started_at else None)),
        "reason": lambda row: "" if row.reason == "completed" else row.reason,
    }
